// A connection that connects when it is first needed, and again after `close`.

import { CONNECT_MS } from './limits';
import { within } from './waiting';
import type { Driver, Line } from './wire';

export class Channel {
  private opening: Promise<Line> | null = null;
  private abandon: (error: Error) => void = () => {};
  private isNew = true;
  /** Null if CLIENT ID is not permitted. */
  clientId: number | null = null;
  /** The server that said `clientId`. */
  peer: string | null = null;

  constructor(
    private readonly driver: () => Promise<Driver>,
    private readonly key: Buffer,
    /** Called when it has connected again. */
    private readonly onAgain: () => void,
  ) {}

  open(): Promise<Line> {
    if (!this.opening) {
      const opening = new Promise<Line>((resolve, reject) => {
        this.abandon = reject;
        this.connect(() => this.opening === opening).then(resolve, reject);
      });
      this.opening = opening;
      opening.catch(() => {
        if (this.opening === opening) this.opening = null;
      });
    }
    return this.opening;
  }

  private async connect(isWanted: () => boolean): Promise<Line> {
    const line = await (await this.driver()).connect(this.key, CONNECT_MS);
    try {
      const [id] = line.ask([['CLIENT', 'ID']]);
      const reply = await within(id!, CONNECT_MS, 'CLIENT ID', () => line.close());
      if (!isWanted()) throw new Error('the connection was given up');
      this.clientId = typeof reply === 'number' ? reply : null;
      this.peer = line.peer;
    } catch (error) {
      line.close();
      throw error;
    }
    if (!this.isNew) this.onAgain();
    this.isNew = false;
    return line;
  }

  /** Closes the connection: whoever waits for it, or for a reply, gets an error. */
  close(): void {
    const { opening } = this;
    this.opening = null;
    this.clientId = this.peer = null;
    this.abandon(new Error('the connection was given up'));
    opening?.then((line) => line.close()).catch(() => {});
  }
}

// A connection that connects when it is first needed, and again after `close`.

import { CONNECT_MS } from './limits';
import { within } from './waiting';
import type { Command, Driver, Line } from './wire';

export class Channel {
  private opening: Promise<Line> | null = null;
  private abandon: (error: Error) => void = () => {};
  private isNew = true;
  private line: Line | null = null;
  /** The connection before this one, if the server was late on it, until there is a new one. */
  private left: Line | null = null;
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

  /** The connection, if there is one. */
  get opened(): Line | null {
    return this.line;
  }

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
    this.left?.close();
    this.left = null;
    this.line = line;
    if (!this.isNew) this.onAgain();
    this.isNew = false;
    return line;
  }

  /** Closes the connection: whoever waits for it, or for a reply, gets an error. */
  close(): void {
    this.drop();
    this.left?.close();
    this.left = null;
  }

  /** `close`, if it still has this connection; `leave` if replies to others are still to be read. */
  give(line: Line, isLeft: boolean): void {
    if (this.line !== line) return;
    if (isLeft) this.leave();
    else this.close();
  }

  /** As `close`, but for a connection that was left. */
  drop(): void {
    const { opening } = this;
    this.forget();
    this.abandon(new Error('the connection was given up'));
    opening?.then((line) => line.close()).catch(() => {});
  }

  /** Gives up a connection on which the server is late. It stays open until there is a new one, for `last`. */
  leave(): void {
    if (!this.line) return this.drop();
    this.left?.close();
    this.left = this.line;
    this.forget();
  }

  private forget(): void {
    this.opening = this.line = this.clientId = this.peer = null;
  }

  /** Sends without waiting for replies, and closes the connection. A server that stands still reads this when it goes on. */
  last(commands: readonly Command[]): void {
    const line = this.left ?? this.line;
    this.left = null;
    if (!line) return;
    if (line === this.line) this.forget();
    for (const reply of line.ask(commands)) reply.catch(() => {});
    setImmediate(() => line.close()); // node-redis writes at the end of this turn
  }
}

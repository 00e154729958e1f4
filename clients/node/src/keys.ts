// The keys that a queue is, and what is sent to them.

import { randomUUID } from 'node:crypto';
import { Channel } from './channel';
import { type Client, drive } from './driver';
import { QueueFull } from './errors';
import { withoutModule } from './fatal';
import { ANSWER_MS, FIRST_TROUBLE_MS } from './limits';
import { type Bytes, crc32, toBytes } from './text';
import { sleep, within } from './waiting';
import { type Command, type Driver, isServerError, type Line, transaction, type Word } from './wire';

/** For jobs without an id: by their time, so that ids made one after the other are near each other. */
export const newId = () => Date.now().toString(16).padStart(12, '0') + randomUUID().replaceAll('-', '').slice(12);

export const sum = (replies: unknown[]) => replies.reduce<number>((total, reply) => total + Number(reply), 0);

/** The key is elsewhere, or will be. */
const MOVED = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING) /;
const TRIES = 5;

/** What callers get of it. */
function told(error: unknown): unknown {
  if (isServerError(error) && /^MAX(LEN|BYTES) /.test(error.message)) {
    return new QueueFull(error.message, { cause: error });
  }
  return withoutModule(error) ?? error;
}

/** Throws the first error. */
function answersOf(replies: readonly unknown[]): unknown[] {
  const refused = replies.find((reply) => reply instanceof Error);
  if (refused) throw refused;
  const answers = replies.at(-1) as unknown[];
  const failed = answers.find((answer) => answer instanceof Error);
  if (failed) throw failed;
  return answers;
}

/** One key, or one for each shard. */
export class Keys {
  /** The keys that it is: one, or one for each shard. */
  readonly keys: readonly Buffer[];
  private driving: Promise<Driver> | null = null;
  /** For transactions. */
  private readonly channels = new Map<string, Channel>();

  constructor(
    private readonly client: Client,
    readonly name: string,
    readonly shards: number,
  ) {
    const key = toBytes(name, "a queue's name");
    this.keys = shards ? Array.from({ length: shards }, (_, n) => toBytes(`${name}:{${n}}`)) : [key];
  }

  /** @internal */
  driver(): Promise<Driver> {
    this.driving ??= drive(this.client);
    return this.driving;
  }

  /**
   * Closes the connection, if the queue was made by a URL. The next command connects anew. An idle connection does not keep
   * the process.
   */
  async close(): Promise<void> {
    for (const channel of this.channels.values()) channel.close();
    this.channels.clear();
    if (typeof this.client !== 'string' || !this.driving) return;
    const driver = await this.driving.catch(() => null);
    this.driving = null;
    await driver?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Carries the calls out. `key`: of calls without one, whose server they are for. */
  protected async run(calls: readonly Command[], key?: Buffer): Promise<unknown[]> {
    if (calls.length === 0) return [];
    try {
      return await (await this.driver()).run(calls, key);
    } catch (error) {
      throw told(error);
    }
  }

  /** Carries them out together or not at all, on a connection of the queue's own; again, where it is lost or the key moves. */
  protected async together(key: Buffer, calls: readonly Command[]): Promise<unknown[]> {
    const channel = this.channel(key);
    for (let tries = 1; ; tries++) {
      try {
        return await this.transact(await channel.open(), calls);
      } catch (error) {
        channel.close();
        const isRefused = isServerError(error) && !MOVED.test(error.message);
        if (isRefused || tries === TRIES) throw told(error);
        await sleep(FIRST_TROUBLE_MS * tries);
      }
    }
  }

  private async transact(line: Line, calls: readonly Command[]): Promise<unknown[]> {
    line.hold(true);
    try {
      const all = Promise.all(line.ask(transaction(calls)));
      return answersOf(await within(all, ANSWER_MS, 'the server', () => line.close()));
    } finally {
      line.hold(false);
    }
  }

  private channel(key: Buffer): Channel {
    const name = key.toString('latin1');
    const known = this.channels.get(name);
    if (known) return known;
    const made = new Channel(
      () => this.driver(),
      key,
      () => {},
    );
    this.channels.set(name, made);
    return made;
  }

  /** An id for that key: that one, or one like it. */
  idOf(key: Buffer, id: string): Buffer {
    for (let n = 0; ; n++) {
      const made = toBytes(n === 0 ? id : `${id}~${n}`);
      if (this.key(made).equals(key)) return made;
    }
  }

  protected key(id: Bytes): Buffer {
    return this.shards ? this.keys[crc32(toBytes(id)) % this.shards]! : this.keys[0]!;
  }

  protected async one(id: Bytes, command: string, ...rest: Word[]): Promise<any> {
    return (await this.run([[command, this.key(id), toBytes(id), ...rest]]))[0];
  }

  protected each(command: string, ...rest: Word[]): Promise<unknown[]> {
    return this.run(this.keys.map((key): Command => [command, key, ...rest]));
  }

  protected byKey(ids: Iterable<Bytes>): [key: Buffer, ids: Buffer[]][] {
    const groups = new Map<Buffer, Buffer[]>();
    for (const id of ids) {
      const key = this.key(id);
      const group = groups.get(key);
      if (group) group.push(toBytes(id));
      else groups.set(key, [toBytes(id)]);
    }
    return [...groups];
  }

  protected async counted(ids: readonly Bytes[], call: (key: Buffer, ids: Buffer[]) => Command): Promise<number> {
    return sum(await this.run(this.byKey(ids).map(([key, some]) => call(key, some))));
  }
}

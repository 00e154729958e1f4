// The keys of a queue, and commands to them.

import { randomUUID } from 'node:crypto';
import { Channel } from './channel';
import { type Client, drive } from './driver';
import { DqError, Refused } from './errors';
import { refused, withoutModule } from './fatal';
import { ANSWER_MS, FIRST_TROUBLE_MS } from './limits';
import { textOf } from './format';
import { type Bytes, crc32, toBytes } from './text';
import { sleep, within } from './waiting';
import { type Command, type Driver, type Line, transaction, type Word } from './wire';

/** An id for a job without one. It begins with the time, so that jobs added one after the other have ids close together. */
export const newId = () => Date.now().toString(16).padStart(12, '0') + randomUUID().replaceAll('-', '').slice(12);

export const sum = (replies: unknown[]) => replies.reduce<number>((total, reply) => total + Number(reply), 0);

/** The key has moved or moves to another server, or the server cannot answer yet. */
const MOVED = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING)$/;
const isMoved = (error: unknown) => error instanceof Refused && MOVED.test(error.code);
const TRIES = 5;

/** The replies to these commands. Throws the first error among them. */
function answersOf(calls: readonly Command[], replies: readonly unknown[], tail = partly): unknown[] {
  const at = replies.findIndex((reply) => reply instanceof Error);
  if (at >= 0) throw refused(replies[at] as Error, calls[at]!, undefined, tail(calls, replies));
  return [...replies];
}

/** How many jobs these commands have added although one of them was refused: not even EXEC takes those back. */
function partly(calls: readonly Command[], replies: readonly unknown[]): string {
  let [added, all] = [0, 0];
  for (const [n, [name, , count]] of calls.entries()) {
    if (!/^DQ\.M?ADD$/.test(name)) continue;
    all += name === 'DQ.MADD' ? Number(count) : 1;
    if (!(replies[n] instanceof Error)) added += [replies[n]].flat().filter((id) => id !== null).length;
  }
  return added > 0 ? `; ${added} of ${all} jobs were added` : '';
}

/** The error after a sending whose answer is lost. */
export const unsure = (lost: unknown) =>
  new DqError(`${textOf(lost)}: it is not known whether the jobs were added`, { cause: lost });

/** Whether the commands must be sent. `lost`: what befell the sending before, whose answer is lost; null if there is none. */
export type IsDue = (lost: unknown) => Promise<boolean>;

/** One key, or one for each shard. */
export class Keys {
  /** The keys that it is: one, or one for each shard. */
  readonly keys: readonly Buffer[];
  private driving: Promise<Driver> | null = null;
  /** The connections for transactions. */
  private readonly channels = new Map<string, Channel>();

  constructor(
    private readonly client: Client,
    readonly name: string,
    readonly shards: number,
  ) {
    const key = toBytes(name, "a queue's name");
    this.keys = shards ? Array.from({ length: shards }, (_, n) => toBytes(`${name}:{${n}}`)) : [key];
  }

  /** Neither client nor URL is shown, as they may have a password. */
  toString(): string {
    return `Queue(${this.shards ? `${this.name}, ${this.shards} shards` : this.name})`;
  }

  toJSON(): { name: string; shards: number } {
    return { name: this.name, shards: this.shards };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** @internal */
  driver(): Promise<Driver> {
    this.driving ??= drive(this.client);
    return this.driving;
  }

  /**
   * Closes the connection, if the queue was made from a URL. The next command connects again. An idle connection does not keep
   * the process alive.
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

  /** Sends commands. `key`: which server gets commands without a key. */
  protected async run(calls: readonly Command[], key?: Buffer): Promise<unknown[]> {
    if (calls.length === 0) return [];
    try {
      return answersOf(calls, await (await this.driver()).run(calls, key));
    } catch (error) {
      throw withoutModule(error) ?? error;
    }
  }

  /**
   * Sends commands in one transaction, on a connection of the queue's own; again, if the key moves, or if the connection is
   * lost, as long as `isDue` (which may throw) says so. Returns null if they had their effect, and the answer is lost.
   */
  protected async together(key: Buffer, calls: readonly Command[], isDue: IsDue): Promise<unknown[] | null> {
    let lost: unknown = null;
    const channel = this.channel(key);
    for (let tries = 1; ; tries++) {
      try {
        const line = await channel.open();
        if (!(await isDue(lost))) return null;
        return await this.transact(line, calls).catch((error: unknown) => {
          lost = error instanceof Refused ? null : error; // what `isDue` is refused says nothing of the sending before
          if (lost !== null || isMoved(error)) channel.give(line, lost === null); // others may be sent on it, too
          throw error;
        });
      } catch (error) {
        const isFinal = error instanceof DqError && !isMoved(error);
        if (isFinal || tries === TRIES) throw lost === null ? (withoutModule(error) ?? error) : unsure(lost);
        await sleep(FIRST_TROUBLE_MS * tries);
      }
    }
  }

  private async transact(line: Line, calls: readonly Command[]): Promise<unknown[]> {
    line.hold(true);
    try {
      const all = transaction(calls);
      const replies = await within(Promise.all(line.ask(all)), ANSWER_MS, 'the server', () => line.close());
      const queued = answersOf([calls[0]!, ...calls, calls[0]!], replies, () => ''); // MULTI and EXEC count as the first
      return answersOf(calls, queued.at(-1) as unknown[]);
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

  /** An id for this key: the given one, or one like it. */
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

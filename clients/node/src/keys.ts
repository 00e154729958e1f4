// The keys that a queue is, and what is sent to them.

import { randomUUID } from 'node:crypto';
import { type Client, drive } from './driver';
import { QueueFull } from './errors';
import { withoutModule } from './fatal';
import { type Bytes, crc32, toBytes } from './text';
import { type Command, type Driver, isServerError, type Word } from './wire';

/** For jobs without an id: by their time, so that ids made one after the other are near each other. */
export const newId = () => Date.now().toString(16).padStart(12, '0') + randomUUID().replaceAll('-', '').slice(12);

export const sum = (replies: unknown[]) => replies.reduce<number>((total, reply) => total + Number(reply), 0);

/** One key, or one for each shard. */
export class Keys {
  /** The keys that it is: one, or one for each shard. */
  readonly keys: readonly Buffer[];
  private driving: Promise<Driver> | null = null;

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
    if (typeof this.client !== 'string' || !this.driving) return;
    const driver = await this.driving.catch(() => null);
    this.driving = null;
    await driver?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Carries the calls out. */
  protected async run(calls: readonly Command[]): Promise<unknown[]> {
    if (calls.length === 0) return [];
    try {
      return await (await this.driver()).run(calls);
    } catch (error) {
      if (isServerError(error) && /^MAX(LEN|BYTES) /.test(error.message)) {
        throw new QueueFull(error.message, { cause: error });
      }
      throw withoutModule(error) ?? error;
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

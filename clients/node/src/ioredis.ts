// The driver of ioredis: Redis (Sentinel, TLS, sockets) and Cluster. Its types are not used, as it is optional.

import { ANSWER_MS, CONNECT_MS } from './limits';
import { slotOf } from './text';
import { within } from './waiting';
import { asReply, type Command, type Driver, identity, isServerError, type Line, unixSocket } from './wire';

type Redis = any;

/** Options of a worker's own connection: no command is sent twice, waits for a reconnect, or is cut off by a timeout. */
const LINE = {
  lazyConnect: true,
  retryStrategy: null,
  sentinelRetryStrategy: null,
  reconnectOnError: null,
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  enableReadyCheck: false,
  enableAutoPipelining: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
  disconnectTimeout: 1,
  maxRetriesPerRequest: 0,
  stringNumbers: false,
  readOnly: false,
  protocol: 2, // begins without HELLO: some servers and proxies do not know it
  replyMapping: undefined,
};

class IoredisLine implements Line {
  readonly peer: string;

  constructor(private readonly redis: Redis) {
    const { host, port, path } = redis.options;
    const { remoteAddress = host, remotePort = port } = redis.stream ?? {};
    this.peer = path ?? `${remoteAddress}:${remotePort}`;
  }

  ask(commands: readonly Command[]): Promise<unknown>[] {
    const stream = this.redis.stream;
    stream?.cork?.();
    try {
      const replies: Promise<unknown>[] = [];
      for (let n = 0; n < commands.length; n++) {
        const command = commands[n]!;
        replies.push(this.redis.callBuffer(command[0], command.slice(1)).then(undefined, asReply));
      }
      return replies;
    } finally {
      stream?.uncork?.();
    }
  }

  hold(isHeld: boolean): void {
    this.redis.stream?.[isHeld ? 'ref' : 'unref']?.();
  }

  close(): void {
    this.redis.disconnect();
  }
}

/** ioredis attaches commands to errors, with the password. */
function withoutCommand(error: any): unknown {
  if (error?.command) delete error.command;
  return error;
}

/** Connects, or throws the error that came meanwhile. */
async function connected(redis: Redis): Promise<void> {
  let said: Error | undefined;
  const listen = (error: Error) => (said ??= error);
  redis.on('error', listen);
  try {
    await redis.connect();
    // That the database does not exist is only reported as an event.
    if (said && isServerError(said)) throw said;
  } catch (error) {
    redis.disconnect();
    throw withoutCommand(said ?? error);
  }
}

export class IoredisDriver implements Driver {
  private opening: Promise<void> | null = null;
  private pending = 0;

  constructor(
    private readonly client: Redis,
    private readonly isOwn: boolean,
  ) {
    if (client.options?.keyPrefix) {
      throw new TypeError("ioredis' keyPrefix does not reach dq's commands: put the prefix into the queue's name");
    }
  }

  private get isCluster(): boolean {
    return typeof this.client.nodes === 'function' && 'slots' in this.client;
  }

  async run(commands: readonly Command[], key?: Buffer): Promise<unknown[]> {
    if (!this.isOwn) return this.send(commands, key);
    this.pending++;
    try {
      if (this.client.status !== 'ready') await (this.opening ??= this.open());
      this.client.stream?.ref?.();
      return await this.send(commands, key);
    } finally {
      this.pending--;
      if (this.pending === 0) this.client.stream?.unref?.(); // idle, it does not keep the process alive
    }
  }

  private async open(): Promise<void> {
    try {
      await within(connected(this.client), CONNECT_MS, 'connecting', () => this.client.disconnect());
    } finally {
      this.opening = null;
    }
  }

  private async send(commands: readonly Command[], key?: Buffer): Promise<unknown[]> {
    if (this.isCluster) return Promise.all(commands.map((command) => this.toCluster(command, key)));
    if (commands.length === 1) {
      return [await this.client.callBuffer(commands[0]![0], commands[0]!.slice(1)).then(undefined, asReply)];
    }
    const pipeline = this.client.pipeline();
    for (const [name, ...words] of commands) pipeline.callBuffer(name, words);
    const replies: [Error | null, unknown][] = await pipeline.exec();
    return replies.map(([error, reply]) => (error ? asReply(error) : reply));
  }

  /** ioredis cannot find the key in commands that are new to it, so the slot is set here. */
  private async toCluster([name, ...words]: Command, key = words[0] as Buffer): Promise<unknown> {
    const { Command } = require('ioredis');
    const command = new Command(name, words, { replyEncoding: null });
    command.slot = slotOf(key);
    return this.client.sendCommand(command).then(undefined, asReply);
  }

  async connect(key: Buffer, timeoutMs: number): Promise<Line> {
    let redis: Redis;
    const connecting = (async () => {
      redis = (await this.node(key)).duplicate(LINE);
      await connected(redis);
    })();
    const end = () => void connecting.catch(() => {}).then(() => redis?.disconnect()); // also if it connects too late
    await within(connecting, timeoutMs, 'connecting', () => {
      redis?.disconnect();
      end();
    });
    return new IoredisLine(redis);
  }

  private async node(key: Buffer): Promise<Redis> {
    if (!this.isCluster) return this.client;
    // A keyed command first: it follows a slot that moved, so the client knows the node.
    await this.toCluster(['DQ.LEN', key]);
    const name = this.client.slots[slotOf(key)]?.[0];
    const node = this.client.nodes('master').find(({ options }: Redis) => `${options.host}:${options.port}` === name);
    if (!node) throw new Error(`the node of the queue is not known yet: ${name}`);
    return node;
  }

  async reach(key: Buffer): Promise<string> {
    if (this.isCluster) return `${identity(this.client)} ${slotOf(key)}`;
    const { sentinels, name, host, port, path, db, username } = this.client.options;
    if (sentinels) return `${identity(this.client)}`;
    return JSON.stringify([name, path ?? [host, port], db ?? 0, username ?? null]);
  }

  async close(): Promise<void> {
    if (this.isOwn) this.client.disconnect();
  }
}

/** No automatic retries: a command whose reply was lost is an error, and the next command connects again. */
export async function openIoredis(url: string): Promise<Driver> {
  const { Redis } = require('ioredis');
  const options = { ...LINE, connectTimeout: CONNECT_MS, commandTimeout: ANSWER_MS };
  const socket = unixSocket(url);
  return new IoredisDriver(socket ? new Redis({ ...options, ...socket }) : new Redis(url, options), true);
}

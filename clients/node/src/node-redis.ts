// The driver of node-redis: a client, a cluster or a Sentinel. Its types are not used, as it is optional.

import { ANSWER_MS, CONNECT_MS } from './limits';
import { slotOf } from './text';
import { within } from './waiting';
import { asReply, type Command, type Driver, identity, type Line, unixSocket, type Word } from './wire';

type Redis = any;

/** Makes replies bytes: 36 is "$", a bulk string of the protocol, and 61 is "=", a verbatim string. */
const BYTES = { typeMapping: { 36: Buffer, 61: Buffer } };

const text = (word: Word) => (typeof word === 'number' ? String(word) : word);
const words = (command: Command) => command.map(text);

/** RESP2, which begins without HELLO: some servers and proxies do not know it. */
const NO_HELLO = { RESP: 2, maintNotifications: 'disabled' };

/** Options of a worker's own connection: nothing is cut off by a timeout, and it ends when it breaks. */
const line = (socket: object) => ({
  ...NO_HELLO,
  socket: { ...socket, reconnectStrategy: false, socketTimeout: undefined, connectTimeout: CONNECT_MS },
  disableOfflineQueue: false,
  pingInterval: undefined,
  commandsQueueMaxLength: undefined,
  readonly: false,
  commandOptions: { ...BYTES, timeout: undefined },
});

class NodeRedisLine implements Line {
  readonly peer: string;

  constructor(private readonly client: Redis) {
    const { host, port, path } = client.options?.socket ?? {};
    this.peer = path ?? `${host}:${port}`;
  }

  /** Commands of one turn of the event loop are sent in one write. */
  ask(commands: readonly Command[]): Promise<unknown>[] {
    return commands.map((command) => this.client.sendCommand(words(command), LINE_OPTIONS).then(undefined, asReply));
  }

  hold(isHeld: boolean): void {
    if (isHeld) this.client.ref();
    else this.client.unref();
  }

  close(): void {
    end(this.client);
  }
}

const LINE_OPTIONS = { ...BYTES, timeout: undefined };

function end(client: Redis): void {
  try {
    client.destroy ? client.destroy() : client.disconnect().catch(() => {});
  } catch {
    // closed already
  }
}

export class NodeRedisDriver implements Driver {
  private opening: Promise<unknown> | null = null;
  private pending = 0;

  constructor(
    private readonly given: Redis,
    private readonly isOwn: boolean,
  ) {
    if (isOwn) given.on('error', () => {}); // each command reports its own error
  }

  /** The client, connected. */
  private async client(): Promise<Redis> {
    if (!this.given.isOpen && !this.opening) {
      this.opening = Promise.resolve(this.given.connect()).finally(() => (this.opening = null));
    }
    await this.opening;
    return this.given;
  }

  private get isCluster(): boolean {
    return typeof this.given.nodeClient === 'function';
  }

  private get isSentinel(): boolean {
    return typeof this.given.getMasterNode === 'function';
  }

  async run(commands: readonly Command[], key?: Buffer): Promise<unknown[]> {
    if (!this.isOwn) return this.send(commands, key);
    this.pending++;
    this.given.ref();
    try {
      return await within(this.send(commands, key), ANSWER_MS, 'the server', () => end(this.given));
    } finally {
      this.pending--;
      if (this.pending === 0) this.given.unref(); // idle, it does not keep the process alive
    }
  }

  private async send(commands: readonly Command[], key?: Buffer): Promise<unknown[]> {
    const client = await this.client();
    return Promise.all(
      commands.map((command) => {
        const where = this.isCluster ? [key ?? command[1], false] : this.isSentinel ? [false] : [];
        return client.sendCommand(...where, words(command), BYTES).then(undefined, asReply);
      }),
    );
  }

  async connect(key: Buffer, timeoutMs: number): Promise<Line> {
    let client: Redis;
    const connected = (async () => {
      client = await this.duplicate(key);
      client.on('error', () => {});
      await client.connect();
    })();
    try {
      await within(connected, timeoutMs, 'connecting', () => client && end(client));
    } catch (error) {
      connected.then(() => end(client)).catch(() => {});
      if (client) end(client);
      throw error;
    }
    return new NodeRedisLine(client);
  }

  private async duplicate(key: Buffer): Promise<Redis> {
    const copy = (client: Redis) => client.duplicate(line(client.options?.socket));
    if (this.isCluster) {
      // A keyed command first: it follows a slot that moved, so the client knows the node.
      await this.send([['DQ.LEN', key]]);
      return copy(await this.given.nodeClient(this.given.slots[slotOf(key)].master));
    }
    // A connection to the Sentinel's master, which the client replaces after a failover.
    if (this.isSentinel) return (await this.client())._execute(false, async (master: Redis) => copy(master));
    return copy(this.given);
  }

  async reach(key: Buffer): Promise<string> {
    if (this.isCluster) return `${identity(this.given)} ${slotOf(key)}`;
    if (this.isSentinel) return identity(this.given);
    const { socket = {}, database, username } = this.given.options ?? {};
    return JSON.stringify([null, socket.path ?? [socket.host, socket.port], database ?? 0, username ?? null]);
  }

  async close(): Promise<void> {
    if (this.isOwn) end(this.given);
  }
}

/** No automatic retries: a command whose reply was lost is an error, and the next command connects again. */
export async function openNodeRedis(url: string): Promise<Driver> {
  const { createClient } = require('redis');
  const { path, username, password, db } = unixSocket(url) ?? {};
  const socket = { reconnectStrategy: false, connectTimeout: CONNECT_MS, ...(path && { path }) };
  return new NodeRedisDriver(
    createClient({ ...NO_HELLO, ...(path ? { username, password, database: db } : { url }), socket }),
    true,
  );
}

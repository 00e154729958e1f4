// What the rest needs of a Redis client, whichever it is.

import { ConfigurationError } from './errors';
import { afterAll } from './waiting';

export type Word = string | number | Buffer;
/** The second word of all of dq's commands is the key. */
export type Command = readonly [name: string, ...words: Word[]];

/** A connection of its own, that nothing but its owner uses, and that never connects again by itself. */
export interface Line {
  /**
   * Sends all of them in one write. Answers as they come: a reply, an error that the server answers as a value, or a
   * rejection where the connection ended before.
   */
  ask(commands: readonly Command[]): Promise<unknown>[];
  close(): void;
}

export interface Driver {
  /** The replies, bytes as Buffers; throws the first error. */
  run(commands: readonly Command[]): Promise<unknown[]>;
  /** Connects to the server that has the key. No timeout of the client's own holds on it. */
  connect(key: Buffer, timeoutMs: number): Promise<Line>;
  /** Equal where one connection can wait for both keys. */
  reach(key: Buffer): Promise<string>;
  close(): Promise<void>;
}

/** Of ioredis: `Redis` or `Cluster`. */
export interface IoredisClient {
  callBuffer(command: string, ...args: any[]): Promise<unknown>;
  duplicate(...args: any[]): any;
}

/** Of node-redis: what `createClient`, `createCluster` or `createSentinel` make. */
export interface NodeRedisClient {
  sendCommand(...args: any[]): Promise<any>;
  duplicate(...args: any[]): any;
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
}

/** A URL, or a client of ioredis or node-redis. */
export type Client = string | IoredisClient | NodeRedisClient;

/** Both clients make such errors; both say nothing else in that form. */
export function isServerError(error: unknown): error is Error {
  return error instanceof Error && /^-?[A-Z][A-Z0-9]{2,}( |$)/.test(error.message);
}

/** For the `catch` of a command: what the server answered is an answer. */
export function asReply(error: unknown): unknown {
  if (isServerError(error)) return error;
  throw error;
}

/** Rejects when it takes longer; `onLate` ends what is waited for. */
export async function within<T>(promise: Promise<T>, ms: number, what: string, onLate: () => void): Promise<T> {
  let inTime = () => {};
  const late = new Promise<never>((_, reject) => {
    inTime = afterAll(ms, () => {
      reject(new Error(`${what}: no answer within ${Math.round(ms)} ms`));
      onLate();
    });
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    inTime();
  }
}

const numbers = new WeakMap<object, number>();
let last = 0;

/** Equal for the same object only. */
export function identity(client: object): string {
  if (!numbers.has(client)) numbers.set(client, ++last);
  return `client ${numbers.get(client)}`;
}

/** What `unix://user:password@/path?db=1` says. */
export function unixSocket(url: string) {
  const match = /^unix:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?(\/[^?#]*)(?:\?.*\bdb=(\d+))?/.exec(url);
  if (!match) return null;
  const [username, password, path] = match.slice(1, 4).map((part) => part && decodeURIComponent(part));
  return { path: path!, username: username || undefined, password, db: Number(match[4] ?? 0) };
}

/** Of a URL: ioredis where it is installed, else node-redis. Of a client: the one that it is of. */
export async function drive(client: Client): Promise<Driver> {
  if (typeof client === 'string') return open(client);
  if ('callBuffer' in client) return new (await import('./ioredis.js')).IoredisDriver(client, false);
  if ('sendCommand' in client) return new (await import('./node-redis.js')).NodeRedisDriver(client, false);
  throw new TypeError('a queue needs a URL, or a client of ioredis or node-redis');
}

async function open(url: string): Promise<Driver> {
  if (await isInstalled('ioredis')) return (await import('./ioredis.js')).openIoredis(url);
  if (await isInstalled('redis')) return (await import('./node-redis.js')).openNodeRedis(url);
  throw new ConfigurationError('neither ioredis nor redis is installed: npm install ioredis');
}

async function isInstalled(name: string): Promise<boolean> {
  try {
    await import(name);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return false;
    throw error;
  }
}

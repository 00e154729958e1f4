// The client libraries: ioredis and node-redis.

import { ConfigurationError } from './errors';
import { typeOf } from './format';
import type { Driver } from './wire';

/** A client of ioredis: `Redis` or `Cluster`. */
export interface IoredisClient {
  callBuffer(command: string, ...args: any[]): Promise<unknown>;
  duplicate(...args: any[]): any;
}

/** A client of node-redis: from `createClient`, `createCluster` or `createSentinel`. */
export interface NodeRedisClient {
  sendCommand(...args: any[]): Promise<any>;
  duplicate(...args: any[]): any;
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
}

/** A URL, or a client of ioredis or node-redis. */
export type Client = string | IoredisClient | NodeRedisClient;

/** The driver of a client. For a URL it is ioredis if that is installed, else node-redis. */
export async function drive(client: Client): Promise<Driver> {
  if (typeof client === 'string') return open(client);
  if ('callBuffer' in client) return new (await import('./ioredis.js')).IoredisDriver(client, false);
  if ('sendCommand' in client) return new (await import('./node-redis.js')).NodeRedisDriver(client, false);
  throw new TypeError('a queue needs a URL, or a client of ioredis or node-redis');
}

async function open(url: string): Promise<Driver> {
  // Of other URLs ioredis makes the path of a socket, which its errors show.
  if (!/^(rediss?|unix):\/\//i.test(url)) {
    throw new ConfigurationError('the URL of a server begins with redis://, rediss:// or unix://');
  }
  try {
    if (await isInstalled('ioredis')) return await (await import('./ioredis.js')).openIoredis(url);
    if (await isInstalled('redis')) return await (await import('./node-redis.js')).openNodeRedis(url);
  } catch (error) {
    // The error itself may hold the URL, and so a password.
    throw new ConfigurationError(
      `the client cannot be made of this URL (${(error as NodeJS.ErrnoException).code ?? typeOf(error)})`,
    );
  }
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

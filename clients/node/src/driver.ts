// Which client library: ioredis or node-redis.

import { ConfigurationError } from './errors';
import type { Driver } from './wire';

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

// The client libraries: ioredis and node-redis.

import { ConfigurationError } from './errors';
import { typeOf } from './format';
import { IoredisDriver, openIoredis } from './ioredis';
import { NodeRedisDriver, openNodeRedis } from './node-redis';
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
  if ('callBuffer' in client) return new IoredisDriver(client, false);
  if ('sendCommand' in client) return new NodeRedisDriver(client, false);
  throw new TypeError('a queue needs a URL, or a client of ioredis or node-redis');
}

async function open(url: string): Promise<Driver> {
  // Of other URLs ioredis makes the path of a socket, which its errors show.
  if (!/^(rediss?|unix):\/\//i.test(url)) {
    throw new ConfigurationError('the URL of a server begins with redis://, rediss:// or unix://');
  }
  try {
    if (isInstalled('ioredis')) return await openIoredis(url);
    if (isInstalled('redis')) return await openNodeRedis(url);
  } catch (error) {
    // The error itself may hold the URL, and so a password.
    throw new ConfigurationError(
      `the client cannot be made of this URL (${(error as NodeJS.ErrnoException).code ?? typeOf(error)})`,
    );
  }
  throw new ConfigurationError('neither ioredis nor redis is installed: npm install ioredis');
}

/** `require`, as an `import()` parses the client once more, for the names that it exports. */
function isInstalled(name: string): boolean {
  try {
    require(name);
    return true;
  } catch (error) {
    // Not what it needs itself and does not find.
    if (String((error as Error).message).startsWith(`Cannot find module '${name}'`)) return false;
    throw error;
  }
}

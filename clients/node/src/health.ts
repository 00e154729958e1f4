// Health checks for supervisors: an HTTP endpoint, or a file that is touched while the worker is healthy.

import { closeSync, openSync, utimesSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { ConfigurationError } from './errors';
import { textOf } from './format';

const TOUCH_MS = 1000;

/** Answers until it is closed. `illness`: why the worker is not healthy; null if it is. */
export async function probe(where: string, illness: () => string | null): Promise<() => void> {
  const address = /^\[?([^/\]]*)\]?:(\d+)$/.exec(where);
  try {
    return address ? await byHttp(address[1]!, Number(address[2]), illness) : byFile(where, illness);
  } catch (error) {
    const example = "health takes an address, '127.0.0.1:8081', or the path of a file";
    throw new ConfigurationError(`the health probe ${where}: ${textOf(error)}: ${example}`, { cause: error });
  }
}

async function byHttp(host: string, port: number, illness: () => string | null): Promise<() => void> {
  const server: Server = createServer((_, response) => {
    const ill = illness();
    response.writeHead(ill === null ? 200 : 503, { 'content-type': 'text/plain', connection: 'close' });
    response.end(ill === null ? 'ok\n' : `${ill}\n`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host || undefined, resolve);
  });
  server.on('error', () => {});
  return () => server.close();
}

function byFile(path: string, illness: () => string | null): () => void {
  const touch = () => {
    if (illness() !== null) return;
    closeSync(openSync(path, 'a'));
    utimesSync(path, new Date(), new Date());
  };
  touch();
  // A full disk is no reason to stop.
  const timer = setInterval(() => {
    try {
      touch();
    } catch {
      // the file's age shows it
    }
  }, TOUCH_MS);
  return () => clearInterval(timer);
}

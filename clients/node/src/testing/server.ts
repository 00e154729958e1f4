// A server for tests, whose clock stands still until the test moves it.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, closeSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { drive } from '../driver';
import { type Duration, fromMs, instantToMs, maybeFromMs, toMs } from '../times';
import { sleep } from '../waiting';
import type { Command, Driver } from '../wire';

const PATIENCE_MS = 30_000;
const UNITS = { days: 86_400_000, hours: 3_600_000, minutes: 60_000, seconds: 1000, milliseconds: 1 };

/** A time span: `{ days: 30, hours: 1 }`, or milliseconds. */
export type Span = Duration | { [unit in keyof typeof UNITS]?: number };

/** The server's clock. It stands still, begins at the real time, and never goes back. */
export class Clock {
  constructor(private readonly ask: (...words: (string | number)[]) => Promise<unknown>) {}

  async now(): Promise<Date> {
    return fromMs(await this.ask('GET'));
  }

  /** Moves the clock. What becomes due on the way has happened when it returns. */
  async advance(span: Span): Promise<Date> {
    const parts = typeof span === 'number' ? { milliseconds: span } : span;
    const ms = Object.entries(parts).reduce((sum, [unit, n]) => sum + n * UNITS[unit as keyof typeof UNITS], 0);
    return fromMs(await this.ask('ADVANCE', toMs(ms)));
  }

  async set(instant: Date): Promise<Date> {
    return fromMs(await this.ask('SET', instantToMs(instant)));
  }

  /** Moves to the next instant at which anything happens; null if nothing will happen. */
  async next(): Promise<Date | null> {
    return maybeFromMs(await this.ask('NEXT'));
  }
}

export interface TestServerOptions {
  /** By default the variable DQ_SERVER, or valkey-server or redis-server of the PATH. */
  program?: string;
  /**
   * By default the file that the variable DQ_MODULE names. Without that, the program dq says both: that of the variable
   * DQ_PROGRAM, of the package dq-server, or of the PATH.
   */
  module?: string;
}

/** Redis or Valkey with the module and its test clock, on a socket in a folder of its own. */
export class TestServer {
  readonly url: string;
  readonly clock = new Clock((...words) => this.command(['DQ.CLOCK', ...words]));
  private driver: Driver | null = null;

  private constructor(
    private readonly process: ChildProcess,
    private readonly folder: string,
  ) {
    this.url = `unix://${folder}/socket`;
  }

  static async start(options: TestServerOptions = {}): Promise<TestServer> {
    const named = options.module ?? process.env.DQ_MODULE;
    const packed = named ? null : packedFiles();
    const program = options.program ?? process.env.DQ_SERVER ?? packed?.server ?? findProgram();
    const module = named || (packed?.module ?? '');
    if (!existsSync(module)) {
      throw new Error(`the dq module, ${module}: set DQ_MODULE to the path of libdq.so`);
    }
    const folder = mkdtempSync(join(tmpdir(), 'dq-test-'));
    const log = openSync(join(folder, 'log'), 'a');
    const settings = ['--port', '0', '--unixsocket', join(folder, 'socket'), '--dir', folder, '--save', ''];
    const clock = ['--loadmodule', resolve(module), 'test-clock', 'yes'];
    const child = spawn(program, [...settings, ...clock], { stdio: ['ignore', log, log] });
    child.on('error', () => {}); // a failed start is reported below
    closeSync(log);
    const server = new TestServer(child, folder);
    await server.answers(program);
    return server;
  }

  private async answers(program: string): Promise<void> {
    for (const end = performance.now() + PATIENCE_MS; ;) {
      try {
        await this.command(['PING']);
        return;
      } catch (error) {
        if (this.process.exitCode === null && this.process.pid && performance.now() < end) {
          await sleep(10);
          continue;
        }
        const log = readFileSync(join(this.folder, 'log'), 'utf8').slice(-2000);
        await this.close();
        throw new Error(`${program} does not start:\n${log}`, { cause: error });
      }
    }
  }

  private async command(command: Command): Promise<unknown> {
    this.driver ??= await drive(this.url);
    const [reply] = await this.driver.run([command]);
    if (reply instanceof Error) throw reply;
    return reply;
  }

  /** Deletes all data. */
  async clear(): Promise<void> {
    await this.command(['FLUSHALL']);
  }

  async close(): Promise<void> {
    await this.driver?.close();
    if (this.process.pid && this.process.exitCode === null && this.process.signalCode === null) {
      const isOver = new Promise((resolve) => this.process.once('exit', resolve));
      this.process.kill('SIGKILL');
      await isOver;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The functions of node:test; those of vitest and jest have other names (`beforeAll`, `afterAll`). */
export interface Suite {
  before(start: () => Promise<void>): unknown;
  after(end: () => Promise<void>): unknown;
  beforeEach(clear: () => Promise<void>): unknown;
}

/** One server for the tests of a file, empty for each: `const dq = withServer({ before, after, beforeEach })`. */
export function withServer(suite: Suite, options: TestServerOptions = {}): Pick<TestServer, 'url' | 'clock'> {
  let server: TestServer | undefined;
  const started = () => {
    if (!server) throw new Error('the server runs during tests only');
    return server;
  };
  suite.before(async () => {
    server = await TestServer.start(options);
  });
  suite.beforeEach(() => started().clear());
  suite.after(async () => server?.close());
  return {
    get url() {
      return started().url;
    },
    get clock() {
      return started().clock;
    },
  };
}

/** The server and the module in the program dq. */
function packedFiles(): { server: string; module: string } {
  const said = spawnSync(packedProgram(), ['dev', '--which'], { encoding: 'utf8' });
  const [server, module] = said.error ? [] : said.stdout.split('\n');
  if (!server || !module) {
    const why = said.stderr?.trim() || 'set DQ_MODULE to the path of libdq.so, or install the package dq-server';
    throw new Error(`the dq module: ${why}`);
  }
  return { server, module };
}

function packedProgram(): string {
  if (process.env.DQ_PROGRAM) return process.env.DQ_PROGRAM;
  try {
    return join(require.resolve('dq-server/package.json', { paths: [process.cwd(), __dirname] }), '../bin/dq');
  } catch {
    return 'dq';
  }
}

function findProgram(): string {
  for (const name of ['valkey-server', 'redis-server']) {
    const folder = (process.env.PATH ?? '').split(delimiter).find((each) => existsSync(join(each, name)));
    if (folder) return join(folder, name);
  }
  throw new Error('no valkey-server or redis-server in the PATH: set DQ_SERVER');
}

#!/usr/bin/env node
// dq-worker: runs the worker of a module, or its handlers, in one process or in several that are restarted when they die.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ConfigurationError } from './errors';
import { Handler } from './handler';
import { Queue } from './queue';
import { textOf } from './format';
import { isChild, NO_RESTART, supervise, whenStopped } from './supervisor';
import { Worker } from './worker';

const USAGE = `usage: dq-worker [options] module...

Runs the worker that a module exports, or handlers, until SIGTERM or SIGINT:

    export default new Worker(queue, handle, { concurrency: 10 });
    export const close = handler(async (job) => {}, { kind: 'close' });

jobs.js:close names one export: a worker, a function that makes one, a handler, or
an array of handlers. With --queue, a function is a handler, also that by default.

  --queue name      a queue of handlers; several in strict order; by default the
                    queues that the modules export
  --url url         its server; by default DQ_URL, or REDIS_URL
  --concurrency n   how many handlers run at a time, in each process; 10
  --processes n     n processes run it, and one that dies is started again. Their
                    environment's DQ_PROCESS counts them from 0
  --reload          in development: starts again when a file of JavaScript,
                    TypeScript or JSON below the working directory changes
  --health where    "127.0.0.1:8081" or a file; %d is the number of the process
`;

const OPTIONS = {
  queue: { type: 'string', multiple: true, default: [] as string[] },
  url: { type: 'string' },
  concurrency: { type: 'string', default: '10' },
  processes: { type: 'string', default: '1' },
  reload: { type: 'boolean', default: false },
  health: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const argumentsOf = (args: string[]) => parseArgs({ args, options: OPTIONS, allowPositionals: true });
type Given = ReturnType<typeof argumentsOf>['values'];

// By what they can do: the module may have another copy of the library.
const isWorker = (given: any): given is Worker => typeof given?.run === 'function' && typeof given?.stop === 'function';
const isHandler = (given: any): given is Handler => typeof given?.processor === 'function' && 'backoffMs' in given;
const isQueue = (given: any): given is Queue => typeof given?.driver === 'function' && 'shards' in given;

/** What a target names: its worker, or handlers, by name; and the queues of its module. */
async function found(target: string, mayBeHandler: boolean): Promise<{ parts: [string, unknown][]; queues: Queue[] }> {
  const [, file = target, name] = (existsSync(target) ? null : /^(.+):([\w$]+)$/.exec(target)) ?? [];
  const module = await import(pathToFileURL(resolve(file)).href);
  const exported: Record<string, any> = isModule(module.default) ? { ...module.default, ...module } : module;
  const queues = Object.values(exported).filter(isQueue);
  if (name !== undefined && !(name in exported)) throw new ConfigurationError(`${file} exports no ${name}`);
  const given = exported[name ?? 'default'];
  const only = async (): Promise<unknown[]> =>
    typeof given !== 'function' ? [given].flat() : mayBeHandler ? [new Handler(given)] : [await given()].flat();
  if (name !== undefined || typeof given === 'function') {
    return { parts: (await only()).map((each) => [`${file}:${name ?? 'default'}`, each]), queues };
  }
  const [alone, lists] = [false, true].map((isList) =>
    Object.entries(exported).filter(([, each]) => Array.isArray(each) === isList),
  );
  const parts = [...alone!, ...lists!].flatMap(([key, value]) =>
    [value].flat().map((each): [string, unknown] => [`${file}:${key}`, each]),
  );
  const workers = parts.filter(([, each]) => isWorker(each));
  return { parts: workers.length > 0 ? workers : parts, queues };
}

/** `module.exports` of a CommonJS module, which is its default export. */
const isModule = (given: any) =>
  typeof given === 'object' && given !== null && Object.getPrototypeOf(given) === Object.prototype;

async function workerOf(targets: string[], given: Given): Promise<Worker> {
  const modules = await Promise.all(targets.map((target) => found(target, given.queue.length > 0)));
  const parts = new Map<unknown, string>(); // each once, by its first name
  for (const [name, part] of modules.flatMap((each) => each.parts)) if (!parts.has(part)) parts.set(part, name);
  const [workers, handlers] = [[...parts.keys()].filter(isWorker), [...parts.keys()].filter(isHandler)];
  if (workers.length + handlers.length > 1 && workers.length > 0) {
    const names = workers.map((worker) => parts.get(worker)).join(' or ');
    throw new ConfigurationError(`a process runs one worker and nothing else: name ${names} alone`);
  }
  if (workers.length > 0) return workers[0]!;
  const where = targets.join(', ');
  if (handlers.length === 0) {
    throw new ConfigurationError(
      `${where} exports no worker and no handler: export default new Worker(...), or handler(...)`,
    );
  }
  const url = given.url ?? (process.env.DQ_URL || process.env.REDIS_URL || 'redis://localhost');
  const named = given.queue.map((name) => new Queue(url, name));
  const queues = named.length > 0 ? named : [...new Set(modules.flatMap((each) => each.queues))];
  if (queues.length === 0) {
    throw new ConfigurationError(`for the handlers of ${where} name their queue, --queue orders`);
  }
  const health = given.health?.replace('%d', process.env.DQ_PROCESS ?? '0');
  return new Worker(queues, handlers, { concurrency: numberOf(given, 'concurrency'), health });
}

function numberOf(given: Given, name: 'processes' | 'concurrency'): number {
  const number = Number(given[name]);
  if (Number.isInteger(number) && number >= 1) return number;
  throw new TypeError(`--${name} must be 1 or more`);
}

async function work(targets: string[], given: Given): Promise<void> {
  const worker = await workerOf(targets, given);
  const isSupervised = isChild();
  if (isSupervised) whenStopped(() => void worker.stop());
  await worker.run({ signals: !isSupervised });
}

async function main(words: string[]): Promise<number> {
  const { values, positionals } = argumentsOf(words);
  if (values.help || positionals.length === 0) {
    process.stdout.write(USAGE);
    return values.help ? 0 : NO_RESTART;
  }
  const processes = numberOf(values, 'processes');
  numberOf(values, 'concurrency');
  if (!isChild() && (processes > 1 || values.reload)) return supervise(__filename, words, processes, values.reload);
  await work(positionals, values);
  return 0;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    const isOurs = error instanceof ConfigurationError || error instanceof TypeError;
    process.stderr.write(`dq-worker: ${textOf(error)}\n`);
    process.exit(isOurs ? NO_RESTART : 1);
  },
);

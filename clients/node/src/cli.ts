#!/usr/bin/env node
// dq-worker: runs the workers that a file exports, in one process or in several that are restarted when they die.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ConfigurationError } from './errors';
import { textOf } from './shown';
import { isChild, NO_RESTART, supervise, whenStopped } from './supervisor';
import type { Worker } from './worker';

const USAGE = `usage: dq-worker [--processes n] file

Runs the worker that the file exports, or several, until SIGTERM or SIGINT:

    export default new Worker(queue, handle, { concurrency: 10 });

With --processes, n processes run it, and one that dies is started again. Their
environment's DQ_WORKER counts them from 0.
`;

const isWorker = (given: any): given is Worker => typeof given?.run === 'function' && typeof given?.stop === 'function';

/** The workers that a file exports: by default or by name. The default export may be a function that makes them. */
async function workersOf(file: string): Promise<Worker[]> {
  const exported = await import(pathToFileURL(resolve(file)).href);
  const given = exported.default ?? Object.values(exported);
  const made = typeof given === 'function' ? await given() : given;
  const workers = [made].flat().filter(isWorker);
  if (workers.length === 0) throw new ConfigurationError(`${file} exports no worker: export default new Worker(...)`);
  return workers;
}

async function work(file: string): Promise<void> {
  const workers = await workersOf(file);
  const isSupervised = isChild();
  if (isSupervised) whenStopped(() => workers.forEach((worker) => void worker.stop()));
  // If one worker cannot run, the others end, too, so that whatever watches the process notices.
  const runs = workers.map((worker) => worker.run({ signals: !isSupervised }));
  await Promise.all(runs).catch(async (error: unknown) => {
    await Promise.all(workers.map((worker) => worker.stop()));
    throw error;
  });
}

function argumentsOf(args: string[]) {
  const options = { processes: { type: 'string', default: '1' }, help: { type: 'boolean', short: 'h' } } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const processes = Number(values.processes);
  if (!Number.isInteger(processes) || processes < 1) throw new TypeError('--processes must be 1 or more');
  return { files: positionals, isHelp: values.help === true, processes };
}

async function main(): Promise<number> {
  const { files, isHelp, processes } = argumentsOf(process.argv.slice(2));
  const [file] = files;
  if (isHelp || file === undefined || files.length > 1) {
    process.stdout.write(USAGE);
    return isHelp ? 0 : NO_RESTART;
  }
  if (processes > 1) return supervise(__filename, file, processes);
  await work(file);
  return 0;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    const isOurs = error instanceof ConfigurationError || error instanceof TypeError;
    process.stderr.write(`dq-worker: ${textOf(error)}\n`);
    process.exit(isOurs ? NO_RESTART : 1);
  },
);

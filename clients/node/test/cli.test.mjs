// dq-worker: in one process, and in several that die.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { Queue } from 'dq-redis';
import { withServer } from 'dq-redis/testing';
import { until } from './until.mjs';

const dq = withServer({ before, after, beforeEach });
const program = new URL('../dist/cli.js', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'dq-cli-'));
const started = new Set();
after(() => {
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

function written(text, name = `w${started.size}.mjs`) {
  const library = new URL('../dist/index.js', import.meta.url).href;
  const all = `import dq from '${library}';\nconst queue = new dq.Queue(process.env.DQ_URL, 'q');\n${text}`;
  writeFileSync(join(folder, name), all);
  return name;
}

/** dq-worker with a file that exports that. */
function run(text, ...options) {
  return called(...options, written(text));
}

function called(...words) {
  const env = { ...process.env, DQ_URL: dq.url };
  const options = { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] };
  const child = spawn(process.execPath, [program, ...words], options);
  started.add(child);
  const said = { out: '', err: '' };
  child.stdout.on('data', (some) => (said.out += some));
  child.stderr.on('data', (some) => (said.err += some));
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
  return { child, said, ended };
}

const WORKER = `export default new dq.Worker(queue, (job) => {
  if (job.data === 'die') process.exit(9);
  console.log(job.id, process.env.DQ_PROCESS ?? 'alone');
}, { concurrency: 1, lease: 600 });`;

test('a file that exports a worker', { timeout: 120_000 }, async () => {
  const queue = new Queue(dq.url, 'q');
  await queue.add(1, { id: 'a' });
  const { child, said, ended } = run(WORKER);
  await until(
    () => said.out === 'a alone\n',
    () => `${said.out}${said.err}`,
  );
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  await queue.close();
});

test('several processes: one that dies is started again, and all are stopped', { timeout: 120_000 }, async () => {
  const queue = new Queue(dq.url, 'q');
  await queue.configure({ attempts: 0 });
  const { child, said, ended } = run(WORKER, '--processes', '3');
  const waits = async () => ((await queue.stats())?.waitingClients ?? 0) === 3;
  await until(waits, () => `three wait: ${said.err}`);
  await queue.add('die', { id: 'bad', attempts: 1 });
  await until(
    () => said.err.includes('started again'),
    () => said.err,
  );
  await until(waits, () => `three wait again: ${said.err}`);
  await queue.addMany(Array.from({ length: 30 }, (_, n) => ({ data: n, id: `j${n}` })));
  await until(
    () => said.out.split('\n').length === 31,
    () => said.out,
  );
  assert.match(said.out, /j0 [012]\n/);
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.equal(await queue.len({ state: 'ready' }), 0);
  await queue.close();
});

test('what no restart mends ends all of them', { timeout: 120_000 }, async () => {
  const { said, ended } = run('export default new dq.Worker(queue);', '--processes', '2');
  assert.equal(await ended, 2);
  assert.match(said.err, /has no handler/);
});

const HANDLERS = `export const close = dq.handler(async (job) => console.log('closed', job.data), { kind: 'close' });
export const all = [close, dq.handler(async (job) => console.log('reminded', job.data), { kind: 'remind' })];
export const plain = async (job) => console.log('plain', job.data);
export default plain;`;

/** What a process says when these jobs are there. */
async function says(words, jobs, wanted, name = 'q') {
  const queue = new Queue(dq.url, name);
  await queue.addMany(jobs);
  const { child, said, ended } = called(...words);
  await until(
    () => wanted.every((line) => said.out.includes(`${line}\n`)),
    () => `${said.out}${said.err}`,
  );
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  await queue.close();
}

test('handlers of modules', { timeout: 120_000 }, async () => {
  const kinds = [
    { data: 1, kind: 'close' },
    { data: 2, kind: 'remind' },
  ];
  const both = ['closed 1', 'reminded 2'];
  const module = written(HANDLERS.replace('export default plain;', 'export { queue };'), 'jobs.mjs');
  await says([module], kinds, both);
  await says(['--queue', 'other', '--url', dq.url, '--concurrency', '2', module], kinds, both, 'other');
  await says(['--queue=q', `${module}:all`], kinds, both);
  await says(['--queue=q', `${module}:plain`], [{ data: 3 }], ['plain 3']);
  await says(['--queue=q', written(HANDLERS, 'default.mjs')], [{ data: 4 }], ['plain 4']);
  const two = [`export const a = dq.handler((job) => console.log('a'), { kind: 'close' });`, 'export { queue };'];
  await says([written(two[0], 'a.mjs'), written(two[1], 'b.mjs')], kinds, ['a']);
});

const WORKERS = `const { Queue, Worker } = require('${new URL('../dist/index.js', import.meta.url).pathname}');
const queue = new Queue(process.env.DQ_URL, 'q');
const made = (name) => new Worker(queue, (job) => console.log(name, job.data));
const [early, late] = ['early', 'late'].map(made);
module.exports = Object.assign({ queue }, { early, late, all: [early, late], make: () => made('made') });`;

test('of several workers the one that is named', { timeout: 120_000 }, async () => {
  writeFileSync(join(folder, 'workers.cjs'), WORKERS);
  await says(['workers.cjs:late'], [{ data: 5 }], ['late 5']);
  await says(['workers.cjs:make'], [{ data: 6 }], ['made 6']);
  const handler = written(HANDLERS, 'handlers.mjs');
  for (const [words, names] of [
    [['workers.cjs'], 'workers.cjs:early or workers.cjs:late'],
    [['workers.cjs:late', 'workers.cjs:early'], 'workers.cjs:late or workers.cjs:early'],
    [['workers.cjs:late', `${handler}:close`], 'workers.cjs:late'],
  ]) {
    const { said, ended } = called(...words);
    assert.equal(await ended, 2);
    assert.ok(said.err.includes(`name ${names} alone`), said.err);
  }
});

test('in development it starts again when a file changes', { timeout: 120_000 }, async () => {
  const queue = new Queue(dq.url, 'q');
  const worker = (text) =>
    written(`export default new dq.Worker(queue, (job) => console.log('${text}', job.data));`, 'reloaded.mjs');
  const { child, said, ended } = called('--reload', worker('one'));
  const handled = async (data, text) => {
    await until(
      () => said.err.split('dq: started').length > data,
      () => said.err,
    );
    await queue.add(data);
    await until(
      () => said.out.includes(`${text}\n`),
      () => `${said.out}${said.err}`,
    );
  };
  await handled(1, 'one 1');
  worker('two');
  await until(
    () => said.err.includes('files have changed'),
    () => said.err,
  );
  await handled(2, 'two 2');
  written('syntax error', 'reloaded.mjs');
  await until(
    () => said.err.includes('it is started again when a file changes'),
    () => said.err,
  );
  worker('three');
  await handled(3, 'three 3');
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  await queue.close();
});

test('a file without a worker, no file, a wrong option', { timeout: 120_000 }, async () => {
  const none = run('export const x = 1;');
  assert.equal(await none.ended, 2);
  assert.match(none.said.err, /exports no worker/);
  const nowhere = called();
  assert.equal(await nowhere.ended, 2);
  assert.match(nowhere.said.out, /^usage: /);
  const wrong = run(WORKER, '--processes=many');
  assert.equal(await wrong.ended, 2);
  assert.match(wrong.said.err, /--processes must be 1 or more/);
  const without = run(HANDLERS.replace('export default plain;', ''));
  assert.equal(await without.ended, 2);
  assert.match(without.said.err, /name their queue, --queue orders/);
  const unnamed = called(`${written(HANDLERS)}:nothing`);
  assert.equal(await unnamed.ended, 2);
  assert.match(unnamed.said.err, /exports no nothing/);
});

test('children end when the supervisor is killed', { timeout: 120_000 }, async () => {
  const queue = new Queue(dq.url, 'q');
  await queue.configure({ attempts: 0 });
  const { child, ended } = run(WORKER, '--processes', '2');
  const waiting = async () => (await queue.stats())?.waitingClients ?? 0;
  await until(async () => (await waiting()) === 2, 'two wait');
  child.kill('SIGKILL');
  assert.equal(await ended, 'SIGKILL');
  await until(async () => (await waiting()) === 0, 'none waits');
  await queue.close();
});

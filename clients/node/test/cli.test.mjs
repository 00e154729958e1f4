// dq-worker: in one process, and in several that die.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'dq-redis';
import { withServer } from 'dq-redis/testing';

const dq = withServer({ before, after, beforeEach });
const program = new URL('../dist/cli.js', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'dq-cli-'));
const started = new Set();
after(() => {
  for (const child of started) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** dq-worker with a file that exports that. */
function run(text, ...options) {
  const file = join(folder, `w${started.size}.mjs`);
  const library = new URL('../dist/index.js', import.meta.url).href;
  writeFileSync(file, `import dq from '${library}';\nconst queue = new dq.Queue(process.env.DQ_URL, 'q');\n${text}`);
  const env = { ...process.env, DQ_URL: dq.url };
  const child = spawn(process.execPath, [program, ...options, file], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  started.add(child);
  const said = { out: '', err: '' };
  child.stdout.on('data', (some) => (said.out += some));
  child.stderr.on('data', (some) => (said.err += some));
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
  return { child, said, ended };
}

async function until(condition, what) {
  for (const end = performance.now() + 60_000; !(await condition()); await sleep(10)) {
    assert.ok(performance.now() < end, what());
  }
}

const WORKER = `export default new dq.Worker(queue, (job) => {
  if (job.data === 'die') process.exit(9);
  console.log(job.id, process.env.DQ_WORKER ?? 'alone');
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

test('a file without a worker, no file, a wrong option', { timeout: 120_000 }, async () => {
  const none = run('export const x = 1;');
  assert.equal(await none.ended, 2);
  assert.match(none.said.err, /exports no worker/);
  const two = run(WORKER, 'another.mjs');
  assert.equal(await two.ended, 2);
  assert.match(two.said.out, /^usage: /);
  const wrong = run(WORKER, '--processes=many');
  assert.equal(await wrong.ended, 2);
  assert.match(wrong.said.err, /--processes must be 1 or more/);
});

test('children end when the supervisor is killed', { timeout: 120_000 }, async () => {
  const queue = new Queue(dq.url, 'q');
  await queue.configure({ attempts: 0 });
  const { child, ended } = run(WORKER, '--processes', '2');
  const waiting = async () => (await queue.stats())?.waitingClients ?? 0;
  await until(
    async () => (await waiting()) === 2,
    () => 'two wait',
  );
  child.kill('SIGKILL');
  assert.equal(await ended, 'SIGKILL');
  await until(
    async () => (await waiting()) === 0,
    () => 'none waits',
  );
  await queue.close();
});

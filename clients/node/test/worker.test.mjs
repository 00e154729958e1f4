// What becomes of leases when the event loop stands still, and of processes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { ConfigurationError, Queue, Worker } from 'dq-redis';
import { withServer } from 'dq-redis/testing';
import { watch, within } from '../dist/waiting.js';
import { until } from './until.mjs';

const dq = withServer({ before, after, beforeEach });
const silent = { info() {}, warn() {}, error() {} };

let queue;
beforeEach(() => {
  queue = new Queue(dq.url, 'q');
});
afterEach(() => queue.close());

/** The event loop stands still for two leases, and until the other process is done. Meanwhile no timeout of a test ends it. */
function standStill(isOver) {
  const begun = performance.now();
  while (performance.now() < begun + 2 * LEASE_MS || !existsSync(isOver)) {
    assert.ok(performance.now() < begun + 60_000, 'the other process takes the jobs');
  }
  rmSync(isOver);
}

const LEASE_MS = 1500;

/** In a process of its own, as ours blocks. */
function elsewhere(program) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, DQ_URL: dq.url },
  });
  let said = '';
  child.stdout.on('data', (some) => (said += some));
  return new Promise((resolve) => child.on('exit', (code) => resolve({ code, said })));
}

const HEAD = `
  import { Queue, Worker } from 'dq-redis';
  const queue = new Queue(process.env.DQ_URL, 'q');
`;

/** In another process all leases end, and another worker takes up to so many jobs. It says which, and that it is done. */
const takeAway = (count, isOver, before = '') =>
  elsewhere(`${HEAD}
    import { writeFileSync } from 'node:fs';
    import { drive } from ${JSON.stringify(new URL('../dist/driver.js', import.meta.url).href)};
    ${before}
    const driver = await drive(process.env.DQ_URL);
    await driver.run([['DQ.CLOCK', 'ADVANCE', ${2 * LEASE_MS}]]);
    const found = await queue.pop({ count: ${count}, ttr: 600_000 });
    console.log(found.map((job) => job.id).join());
    writeFileSync(${JSON.stringify(isOver)}, '');
    await driver.close();
  `);

test('what was prefetched and lost during a standstill is not begun', { timeout: 120_000 }, async () => {
  await queue.addMany(['first', 'second', 'third'].map((id) => ({ data: id, id })));
  const seen = [];
  const warned = [];
  const isOver = `${tmpdir()}/dq-taken-${process.pid}`;
  const lost = [];
  let other;
  const worker = new Worker(
    queue,
    (job) => {
      seen.push(job.id);
      if (job.id !== 'first') return;
      // Its lease, and those of what waits behind it, end while nothing can be renewed.
      other = takeAway(2, isOver);
      standStill(isOver);
    },
    {
      concurrency: 1,
      prefetch: 2,
      lease: LEASE_MS,
      hooks: [{ lost: (job) => lost.push(job.id) }],
      logger: { ...silent, warn: (text) => warned.push(text) },
    },
  );
  worker.start();
  await until(() => seen.length >= 2, 'it goes on');
  const taken = (await other).said.trim().split(',');
  await until(async () => (await queue.len({ state: 'reserved' })) <= 2, 'the third is acknowledged');
  await worker.stop();
  assert.deepEqual(taken, ['first', 'second']);
  assert.deepEqual(seen, ['first', 'third']);
  assert.deepEqual(lost.sort(), ['first', 'second', 'third']); // the third came back
  assert.ok(
    warned.some((text) => text.includes('stood still')),
    warned.join('\n'),
  );
  assert.equal((await queue.get('second')).state, 'reserved');
});

test(
  'a job that was handed out during a standstill is begun only if it is still ours',
  { timeout: 120_000 },
  async () => {
    await queue.configure({ attempts: 0 });
    const seen = [];
    const options = { concurrency: 1, lease: LEASE_MS, wait: 100_000, logger: silent };
    const worker = new Worker(queue, (job) => seen.push(job.id), options);
    const waiting = async () => (await queue.stats()).waitingClients;
    // The server may not have seen yet that the last worker's connection is closed.
    await until(async () => (await waiting()) === 0, 'nobody waits');
    worker.start();
    // Its first fetch waits for a millisecond only.
    await queue.add('w', { id: 'w' });
    await until(() => seen.includes('w'), 'it has begun');
    await until(async () => (await waiting()) === 1, 'it waits');
    const isOver = `${tmpdir()}/dq-handed-${process.pid}`;
    const other = takeAway(
      1,
      isOver,
      `await queue.add('x', { id: 'x' }); // goes to the worker that stands still
       // Counted for good, while the lease may be over before this process looks.
       while ((await queue.get('x')).attempts < 1) await new Promise((wake) => setTimeout(wake, 5));`,
    );
    standStill(isOver);
    assert.equal((await other).said.trim(), 'x');
    await queue.add('y', { id: 'y' });
    await until(() => seen.includes('y'), 'it goes on');
    await worker.stop();
    assert.deepEqual(seen, ['w', 'y']);
  },
);

test('a standstill is known in the turn of the event loop in which it ends', () => {
  let ticks = 0;
  const watching = watch(100, () => ticks++);
  for (const end = performance.now() + 300; performance.now() < end;);
  assert.ok(watching.lateMs() >= 190 && ticks === 0);
  watching.end();
});

test('an answer that came during a standstill is read, though its time is over', { timeout: 120_000 }, async () => {
  const isOver = `${tmpdir()}/dq-answer-${process.pid}`;
  const child = spawn('sh', ['-c', `echo answer; : >'${isOver}'`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const answer = new Promise((resolve) => child.stdout.once('data', (some) => resolve(String(some).trim())));
  const waited = within(answer, 100, 'the child', () => {});
  standStill(isOver);
  assert.equal(await waited, 'answer');
  await assert.rejects(
    within(new Promise(() => {}), 10, 'nobody', () => {}),
    /nobody/,
  );
});

test('the log says what began, failed, was cancelled and stopped', async () => {
  const lines = [];
  const say = (level) => (text) => lines.push(`${level} ${text}`);
  const logger = { info: say('info'), warn: say('warn'), error: say('error') };
  const work = async (job) => {
    if (job.id === 'bad') throw new Error('no paper');
    await job.pause(60_000);
  };
  const worker = new Worker(queue, work, { logger, concurrency: 3 });
  worker.start();
  await queue.add(1, { id: 'bad', attempts: 1 });
  await queue.add(1, { id: 'long' });
  await until(async () => (await queue.get('long')).state === 'reserved', 'it runs');
  assert.equal(await queue.cancel('long'), true);
  await until(() => lines.length >= 3, 'it is told');
  await worker.stop();
  assert.deepEqual(
    lines.map((line) => line.split('\n')[0]),
    [
      'info dq: started: queue q, concurrency 3',
      'warn dq: job bad failed, attempt 1: Error: no paper',
      'info dq: job long was cancelled',
      'info dq: stopped: queue q, no job was given back',
    ],
  );
  assert.equal(lines[1].split('\n').filter((line) => line.includes('/dist/')).length, 1, lines[1]);
});

test('a process with an idle queue ends by itself', { timeout: 120_000 }, async () => {
  const { code, said } = await elsewhere(`${HEAD}
    console.log(await queue.add(1, { id: 'a' }));
  `);
  assert.deepEqual([code, said.trim()], [0, 'a']);
});

test('so does one whose worker has stopped', { timeout: 120_000 }, async () => {
  const { code, said } = await elsewhere(`${HEAD}
    const worker = new Worker(queue, (job) => {
      console.log(job.data);
      process.kill(process.pid, 'SIGTERM');
    });
    await queue.add(1);
    await worker.run();
    console.log(process.listenerCount('SIGTERM'));
  `);
  assert.deepEqual([code, said.trim()], [0, '1\n0']);
});

test('a worker that is stopped before it starts, twice, or never started', { timeout: 120_000 }, async () => {
  const worker = new Worker(queue, () => {});
  await worker.stop();
  worker.start();
  await worker.stop();
  assert.throws(() => worker.start(), /once/);
});

test('without a handler, or a client, it ends with an error that says so', { timeout: 120_000 }, async () => {
  await assert.rejects(new Worker(new Queue(dq.url, 'q')).run(), ConfigurationError);
  const worker = new Worker(new Queue({ neither: true }, 'q'), () => {}, { logger: silent });
  await assert.rejects(worker.run(), /ioredis or node-redis/);
});

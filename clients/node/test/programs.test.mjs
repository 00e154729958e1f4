// Rules beside handlers.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { ConfigurationError, Queue, Worker } from 'dq-redis';
import { withServer } from 'dq-redis/testing';

const dq = withServer({ before, after, beforeEach });
const handle = async () => {};
const queues = [];

function queueOf(url = dq.url) {
  queues.push(new Queue(url, 'rules'));
  return queues.at(-1);
}

afterEach(() => Promise.all(queues.splice(0).map((queue) => queue.close())));

function logger() {
  const lines = [];
  const log = (line) => lines.push(line);
  return { lines, info: log, warn: log, error: log };
}

/** A worker that ran until its log had that line. */
async function ran(queue, add, line) {
  const log = logger();
  const worker = add(new Worker(queue, { logger: log }));
  const running = worker.run({ signals: false });
  running.catch(() => {});
  while (!log.lines.some((one) => line.test(one))) await new Promise(setImmediate);
  await worker.stop();
  await running;
}

test('a rule has the options of its handler and of its job', async () => {
  const queue = queueOf();
  const seen = [];
  const nightly = async (job) => void seen.push([job.kind, job.data, job.headers, job.maxAttempts]);
  const options = { tz: 'Europe/Berlin', data: { n: 1 }, headers: { a: 'b' }, attempts: 3, defaults: { keep: 60_000 } };
  const worker = new Worker(queue).cron('nightly', '30 2 * * *', nightly, options).every('often', 60_000, handle);
  assert.equal(await worker.drain(), 0);
  const { rule, label, keep } = await queue.get('nightly');
  assert.deepEqual([rule.cron, rule.tz, label, keep], ['30 2 * * *', 'Europe/Berlin', 'nightly', 60_000]);
  assert.equal((await queue.get('often')).rule.every, 60_000);
  await dq.clock.advance({ hours: 25 });
  assert.equal(await worker.drain(), 2);
  assert.deepEqual(seen, [['nightly', { n: 1 }, { a: 'b' }, 3]]);
});

test('a rule that is over, or finds no room, ends no worker', async () => {
  const queue = queueOf();
  const until = new Date((await dq.clock.now()).getTime() - 1000);
  await ran(queue, (worker) => worker.cron('over', '0 2 * * *', handle, { until }), /a rule is over: .*over/);
  await queue.configure({ maxlen: 1 });
  await queue.add(1, { delay: 60_000 });
  await ran(queue, (worker) => worker.every('full', 1000, handle), /not said until the next start: .*full/);
  assert.equal(await queue.len(), 1);
});

test('without the right to add it is said once', async () => {
  const queue = queueOf();
  const admin = await queue.driver();
  await admin.run([['ACL', 'SETUSER', 'reader', 'reset', 'on', '>pw', '~*', '&*', '+@all', '-dq.add']]);
  const own = queueOf(dq.url.replace('://', '://reader:pw@'));
  const two = (worker) => worker.every('a', 1000, handle).every('b', 1000, handle);
  await ran(own, two, /refuses DQ.ADD: the rules of handlers are not said/);
});

test('what is no rule beside a handler', async () => {
  const queue = queueOf();
  const worker = () => new Worker(queue, { logger: logger() });
  assert.throws(
    () => worker().cron('a', '0 2 * * *', handle, { first: new Date() }),
    /worker.cron has no option 'first'/,
  );
  assert.throws(() => worker().every('a', 1000, handle, { tz: 'UTC' }), /worker.every has no option 'tz'/);
  assert.throws(() => worker().every('a', 1000, handle).every('a', 1000, handle), ConfigurationError);
  await assert.rejects(worker().every('a', 10, handle).run({ signals: false }), ConfigurationError);
  await assert.rejects(worker().cron('a', '0 25 * * *', handle).run({ signals: false }), /job 'a' .*0 25/);
  const started = worker().job('b', handle);
  started.start();
  assert.throws(() => started.every('a', 1000, handle), /runs already/);
  await started.stop();
});

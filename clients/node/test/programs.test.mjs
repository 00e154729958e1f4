// Rules beside handlers, and the hook of dead jobs.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { ConfigurationError, GiveUp, PayloadError, Queue, Worker } from 'dq-redis';
import { withServer } from 'dq-redis/testing';
import { Deaths } from '../dist/deaths.js';

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
  const data = { data: 1n };
  await assert.rejects(worker().every('a', 1000, handle, data).run({ signals: false }), /serialize a BigInt/);
  await assert.rejects(worker().cron('a', '0 25 * * *', handle).run({ signals: false }), /job 'a' .*0 25/);
  const started = worker().job('b', handle);
  started.start();
  assert.throws(() => started.every('a', 1000, handle), /runs already/);
  await started.stop();
});

test('all deaths are told in tests, too, whatever a hook does', async () => {
  const queue = queueOf();
  const log = logger();
  const told = [];
  const raise = () => {
    throw new Error('on purpose');
  };
  const hooks = [
    { dead: raise },
    { dead: async (name, job) => told.push([name, job.id, job.reason, job.kind, job.payload.toString()]) },
    { dead: async () => raise() },
  ];
  const fails = () => {
    throw new GiveUp('no such order');
  };
  const worker = new Worker(queue, fails, { hooks, logger: log });
  await queue.add(17, { id: 'a', kind: 'sell' });
  assert.equal(await worker.drain(), 1);
  await queue.addMany([
    { data: Buffer.from('{'), id: 'lost', attempts: 1, ttr: 1000 },
    { data: 1, id: 'c', after: ['lost'], onDead: 'die' },
  ]);
  await queue.pop();
  await dq.clock.advance(1001);
  await queue.every(60_000, null, { id: 'often' });
  await dq.clock.advance(60_000);
  const occurrence = (await queue.get('often')).due.getTime();
  assert.equal(await worker.drain(), 1);
  assert.equal(await worker.drain(), 0);
  const names = told.map(([name, id, reason, kind]) => [name, id, reason, kind]);
  assert.deepEqual(names.sort(), [
    ['rules', 'a', 'no such order', 'sell'],
    ['rules', 'c', 'after lost: dead', null],
    ['rules', 'lost', 'lease ended', null],
    ['rules', `often@${occurrence}`, 'no such order', null],
  ]);
  assert.equal(log.lines.filter((line) => line.includes('the hook dead failed: Error: on purpose')).length, 8);
  const lost = await queue.get('lost');
  assert.throws(() => lost.data, PayloadError);
  const sold = await queue.get('a');
  assert.deepEqual([sold.data, sold.kind, sold.headers, Object.keys(sold).includes('data')], [17, 'sell', {}, false]);
});

/** Looks until there is nothing to ask; returns the ids that it put into the list. */
function look(deaths, list, rows, atMs, now = 0) {
  for (let command = deaths.asks(now); command; command = deaths.asks(now)) {
    if (command[0] === 'TIME') deaths.heard(atMs, now);
    else {
      const [, , , , since, , count] = command;
      deaths.heard(rows.filter(([, , at]) => at >= since).slice(0, count), now);
    }
  }
  return list.splice(0).map(({ ids: [id], isAny }) => [String(id), isAny]);
}

test('deaths are found by a clock that was set back', () => {
  for (const by of [1001, 1500, 3_600_000]) {
    const list = [];
    const deaths = new Deaths(Buffer.from('q'), 1000, { room: 1000, add: (death) => list.push(death) > 0 });
    const rows = [[Buffer.from('before'), null, 5_000_100]];
    const found = [look(deaths, list, [], 5_000_000, 0), look(deaths, list, rows, 5_001_000, 1000)];
    rows.unshift([Buffer.from('first'), null, 5_001_001 - by]);
    found.push(look(deaths, list, rows, 5_002_000 - by, 2000));
    rows.splice(1, 0, [Buffer.from('second'), null, 5_002_001 - by]);
    found.push(look(deaths, list, rows, 5_003_000 - by, 3000));
    assert.deepEqual(
      found.map((some) => some.map(([id]) => id)),
      [[], ['before'], ['first'], ['second']],
    );
  }
});

test('deaths are found by a clock that was set back right after the first look', () => {
  const list = [];
  const deaths = new Deaths(Buffer.from('q'), 60_000, { room: 1000, add: (death) => list.push(death) > 0 });
  look(deaths, list, [], 5_000_000, 0);
  const rows = [[Buffer.from('first'), null, 4_971_000]];
  assert.deepEqual(look(deaths, list, rows, 5_030_000, 60_000), [['first', false]]);
});

test('deaths that find no room are found again, each once', () => {
  const list = [];
  const waiting = {
    get room() {
      return 150 - list.length;
    },
    add: (death) => waiting.room > 0 && Boolean(list.push(death)),
  };
  const deaths = new Deaths(Buffer.from('q'), 1000, waiting);
  assert.deepEqual(look(deaths, list, [], 5000), []);
  deaths.again();
  const rows = Array.from({ length: 1000 }, (_, n) => [Buffer.from(`j${n}`), null, 5000 + Math.floor(n / 300)]);
  const found = [];
  for (let some = look(deaths, list, rows, 6000); some.length > 0; some = look(deaths, list, rows, 6000)) {
    assert.ok(some.length <= 150);
    found.push(...some);
  }
  assert.deepEqual(
    found,
    rows.map(([id]) => [String(id), false]),
  );
  for (let n = 0; n < 151; n++) deaths.answered({ id: Buffer.from(`own${n}`), dueMs: 0 });
  assert.equal(list.splice(0).length, 150);
  const more = [[Buffer.from('own150'), null, 6500]];
  assert.deepEqual(look(deaths, list, more, 7000), [['own150', true]]);
  deaths.again();
  assert.deepEqual(look(deaths, list, [...more, [Buffer.from('other'), null, 6600]], 8000), [['other', false]]);
  deaths.refused();
  deaths.again();
  assert.equal(deaths.asks(1e15), null);
});

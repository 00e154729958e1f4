// Steps, other jobs, limits and middleware, and runs without a server.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cancelled, GiveUp, handler, PayloadError, Queue, Retry, Snooze, StepError, Suspended, Worker } from 'dq-redis';
import { job, run, withServer } from 'dq-redis/testing';
import ioredis from 'ioredis';
import { until } from './until.mjs';

const dq = withServer({ before, after, beforeEach });
const silent = { info() {}, warn() {}, error() {} };
const HOUR = 3_600_000;
const KEEP = { keep: 400 * 24 * HOUR };
const unhandled = [];
process.on('unhandledRejection', (error) => unhandled.push(error));
after(() => assert.deepEqual(unhandled, []));

let queue;
beforeEach(() => {
  queue = new Queue(dq.url, 'q');
});
afterEach(() => queue.close());

const drained = (work, options) => new Worker(queue, work, { logger: silent, ...options }).drain();

test('a limit of time holds where a test drains', async () => {
  await queue.add(1, { id: 'a' });
  const slow = (job) => sleep(60_000, null, { signal: job.signal });
  assert.equal(await drained(slow, { timeout: 20, backoff: [60_000] }), 1);
  assert.equal((await queue.get('a')).reason, 'timeout after 0.02 s');
});

// --- What a handler does with them

test('steps are kept, shown, and used once in an attempt', { timeout: 120_000 }, async () => {
  await queue.add(1, { id: 'j', backoff: [1], ...KEEP });
  await queue.signal('j', 'from outside', [1]);
  let runs = 0;
  const said = [];
  await drained(async (job) => {
    runs++;
    said.push(['at first', Object.fromEntries(job.steps), job.steps.size, job.steps.has('one'), job.steps.get('none')]);
    await job.step('one', () => ({ runs }));
    await assert.rejects(
      job.step('one', () => 2),
      StepError,
    );
    await assert.rejects(job.wait('one'), /there twice/);
    await assert.rejects(
      job.step('dq:x', () => 2),
      /the library's/,
    );
    await assert.rejects(
      job.step('x'.repeat(257), () => 2),
      /too long/,
    );
    await assert.rejects(
      job.step('', () => 2),
      TypeError,
    );
    await assert.rejects(
      job.step('bytes', () => Buffer.from('x')),
      /need a queue with another codec/,
    );
    await assert.rejects(
      job.step('circle', () => job.steps.x ?? circular()),
      /cannot be encoded/,
    );
    await job.step('nothing', async () => {});
    said.push([...job.steps.keys()]);
    if (runs === 1) throw new Retry(0, 'once more');
  });
  await dq.clock.advance(1000);
  await drained(async (job) => {
    said.push([...job.steps]);
    return [await job.step('one', () => 'not run'), await job.step('nothing', () => 'not run')];
  });
  assert.deepEqual(said, [
    ['at first', { 'from outside': [1] }, 1, false, undefined],
    ['from outside', 'one', 'nothing'],
    [
      ['from outside', [1]],
      ['one', { runs: 1 }],
      ['nothing', null],
    ],
  ]);
  assert.deepEqual(await queue.result('j'), [{ runs: 1 }, null]);
});

function circular() {
  const made = {};
  made.made = made;
  return made;
}

test('what redis-cli gives and is no JSON is said', { timeout: 120_000 }, async () => {
  await queue.add(1, { id: 'j', ...KEEP });
  const admin = new ioredis(dq.url.slice('unix://'.length));
  await admin.call('DQ.SIGNAL', 'q', 'j', 'raw', 'yes');
  await admin.quit();
  await drained(async (job) => {
    assert.throws(() => job.steps.get('raw'), PayloadError);
    await assert.rejects(job.wait('raw'), /the value of step 'raw' cannot be decoded/);
  });
  assert.equal((await queue.get('j')).state, 'done');
});

test(
  'a wait that is caught, not awaited, or followed by anything has ended the attempt',
  { timeout: 120_000 },
  async () => {
    const ways = {
      caught: async (job) => {
        await job.sleep('s', HOUR).catch(() => {});
        await assert.rejects(
          job.step('x', () => 1),
          Suspended,
        );
        assert.throws(() => job.progress(1), Suspended);
        assert.throws(() => job.check(), Suspended);
      },
      'not awaited': (job) => void job.sleep('s', HOUR),
      returns: async (job) => [await job.sleep('s', HOUR).catch(() => 5)],
      throws: async (job) => {
        await job.sleep('s', HOUR).catch(() => {});
        throw new Error('of its own');
      },
      fails: async (job) => {
        job.fail(new Error('of its own'));
        await job.sleep('s', HOUR);
      },
    };
    const ended = [];
    const hook = (name) => (job) => ended.push([name, job.id]);
    const hooks = [{ after: hook('after'), failed: hook('failed'), suspended: hook('suspended') }];
    for (const id of Object.keys(ways)) await queue.add(1, { id });
    await drained((job) => ways[job.id](job), { hooks });
    for (const id of Object.keys(ways)) {
      const { state, attempts, reason } = await queue.get(id);
      assert.deepEqual([state, attempts, reason], ['delayed', 0, null], id);
    }
    assert.deepEqual(
      ended,
      Object.keys(ways).map((id) => ['suspended', id]),
    );
  },
);

test('in a batch a wait of one is no end of the others', { timeout: 120_000 }, async () => {
  for (const id of ['a', 'b', 'c']) await queue.add(id, { id, ...KEEP });
  const batch = async (jobs) => {
    jobs[0].succeed('first');
    await jobs[1].sleep('s', HOUR);
  };
  const worker = new Worker(queue, batch, { batch: 3, concurrency: 1, logger: silent });
  let n = 0;
  const [one] = worker.queues;
  assert.equal(one, queue);
  worker.start();
  await until(async () => (await queue.get('b')).state === 'delayed' && n++ > 3, 'it sleeps');
  await worker.stop();
  assert.deepEqual([await queue.result('a'), (await queue.get('b')).attempts], ['first', 0]);
});

// --- Other jobs

test('other jobs are waited for, and what they came to is kept', { timeout: 120_000 }, async () => {
  await queue.add('child', { id: 'a', delay: HOUR });
  await queue.add('parent', { id: 'p', backoff: [1], ...KEEP });
  let tries = 0;
  const work = async (job) => {
    if (job.data === 'child') return job.id;
    if (job.data === 'bad') throw new RangeError('no');
    const first = await job.waitFor(['a', 'a']);
    const second = await job.spawn([{ data: 'child' }, { data: 'bad', attempts: 1 }, { data: 'child', id: 'own' }]);
    if (tries++ === 0) throw new Retry(100);
    const named = await job.spawn([{ data: 'child' }], { name: 'more', onDead: 'die' });
    return [first, second, named].map((all) =>
      all.map(({ id, outcome, value, reason }) => [id, outcome, value, reason]),
    );
  };
  await drained(work);
  assert.deepEqual([(await queue.get('p')).state, (await queue.get('p')).after], ['blocked', ['a']]);
  await dq.clock.advance(HOUR);
  for (let n = 0; n < 4; n++) {
    await drained(work);
    await dq.clock.advance(1000);
  }
  assert.deepEqual(await queue.result('p'), [
    [['a', 'done', 'a', null]],
    [
      ['p/2/0', 'done', 'p/2/0', null],
      ['p/2/1', 'dead', null, 'RangeError: no'],
      ['own', 'done', 'own', null],
    ],
    [['p/more/0', 'done', 'p/more/0', null]],
  ]);
});

test('what the server refuses of a wait is the reason of a failure', { timeout: 120_000 }, async () => {
  await queue.configure({ maxlen: 3 });
  await queue.add('unknown', { id: 'unknown', backoff: [HOUR] });
  await queue.add('full', { id: 'full', backoff: [HOUR] });
  await drained(async (job) => {
    if (job.data === 'unknown') await job.waitFor(['never there']);
    await job.spawn([{ data: 1 }, { data: 2 }, { data: 3 }]);
  });
  const { reason } = await queue.get('unknown');
  assert.match(reason, /the queue does not hold: it has ended.*with a keep, or by spawn \(waited for: never there\)$/);
  await queue.configure({ maxlen: 0 });
  await queue.add('child', { id: 'child', backoff: [HOUR] });
  await drained(
    (job) =>
      job.data === 'child' &&
      job.spawn([
        { data: 1, id: 'b' },
        { data: 2, after: ['b', 'gone'] },
      ]),
  );
  assert.match((await queue.get('child')).reason, /with a keep, or by spawn \(waited for: gone\)$/);
  assert.match((await queue.get('full')).reason, /^MAXLEN queue is full$/);
  assert.equal((await queue.get('full')).attempts, 1);
});

test('once: money moves once, whatever is sent again', { timeout: 120_000 }, async () => {
  const admin = new ioredis(dq.url.slice('unix://'.length));
  await admin.set('{q}from', 100);
  const move = "redis.call('DECRBY', KEYS[1], ARGV[1]) redis.call('INCRBY', KEYS[2], ARGV[1])";
  await queue.add(1, { id: 'j', backoff: [1] });
  const seen = [];
  const work = async (job) => {
    seen.push(await job.once('move', move, ['{q}from', '{q}to'], [30]));
    if (seen.length === 1) throw new Retry(0);
  };
  await drained(work);
  await dq.clock.advance(1000);
  await drained(work);
  assert.deepEqual(
    [seen, await admin.mget('{q}from', '{q}to')],
    [
      [true, false],
      ['70', '30'],
    ],
  );
  await queue.add(2, { id: 'lost' });
  const lost = [];
  await drained(async (job) => {
    await queue.delete('lost');
    await assert.rejects(job.once('move', move, ['{q}from', '{q}to'], [30]), Cancelled);
    lost.push(job.lost);
  });
  assert.deepEqual([lost, await admin.get('{q}from')], [[true], '70']);
  await admin.quit();
});

test('what a delivery costs is said afterwards', { timeout: 120_000 }, async () => {
  await queue.configure({ rate: [10, 60_000] });
  await queue.addMany([{ data: 1 }, { data: 2 }]);
  const work = async (job) => {
    await assert.rejects(job.setCost('many'), /cost must be a whole number, not/);
    await job.setCost(10);
  };
  assert.deepEqual([await drained(work, { concurrency: 1 }), await drained(work)], [1, 0]);
  await dq.clock.advance(60_000);
  assert.equal(await drained(work, { concurrency: 1 }), 1);
  assert.equal((await run((one) => one.setCost(7).then(() => one.id), 1, { id: 'a' })).result, 'a');
});

test('once: a script that fails has no step', { timeout: 120_000 }, async () => {
  const admin = new ioredis(dq.url.slice('unix://'.length));
  await admin.set('{q}text', 'a');
  const script = `if ARGV[1] == 'mine' then return redis.error_reply('MYERR no') end redis.call('INCR', KEYS[1])`;
  await queue.add(1, { id: 'j', backoff: [1] });
  const [seen, fails] = [[], []];
  const work = async (job) => {
    for (const why of ['theirs', 'mine']) {
      const run = job.once(why, script, ['{q}text'], [job.attempt === 1 ? why : '']);
      if (job.attempt > 1) seen.push(await run);
      else await run.catch((error) => fails.push(error.message));
    }
    if (job.attempt < 3) throw new Retry(0);
  };
  await drained(work);
  assert.match(fails[0], /not an integer/);
  assert.match(fails[1], /MYERR no/);
  await admin.set('{q}text', 1);
  for (let n = 0; n < 2; n++) {
    await dq.clock.advance(1000);
    await drained(work);
  }
  assert.deepEqual([seen, await admin.get('{q}text')], [[true, true, false, false], '3']);
  await admin.quit();
});

// --- Limits

test('the last attempt, by the job or its handler', { timeout: 120_000 }, async () => {
  await queue.add(1, { id: 'own', attempts: 2, backoff: [1] });
  await queue.add(1, { id: 'bare', backoff: [1] });
  const seen = [];
  const work = (job) => {
    seen.push([job.id, job.attempt, job.maxAttempts, job.isLastAttempt]);
    throw new Error('no');
  };
  for (let n = 0; n < 4; n++) {
    await drained(work, { attempts: 3 });
    await dq.clock.advance(1000);
  }
  assert.deepEqual(seen.sort(), [
    ['bare', 1, 3, false],
    ['bare', 2, 3, false],
    ['bare', 3, 3, true],
    ['own', 1, 2, false],
    ['own', 2, 2, true],
  ]);
});

test('progress is a number of 0 to 1 and a text', { timeout: 120_000 }, async () => {
  await queue.add(1, { id: 'j', ...KEEP });
  await drained((job) => {
    for (const wrong of [NaN, -0.1, 1.1, Infinity]) assert.throws(() => job.progress(wrong), RangeError);
    for (const wrong of ['1', null, undefined, {}]) assert.throws(() => job.progress(wrong), TypeError);
    for (const wrong of [1, null, Symbol('x'), { toString: 1 }]) assert.throws(() => job.progress(1, wrong), TypeError);
    job.progress(0.12349, 'ü'.repeat(2000));
  });
  assert.equal((await queue.get('j')).progress, '0.123 ' + 'ü'.repeat(509));
});

// --- Middleware

test('middleware decides, is around the handler, and calls it once', { timeout: 120_000 }, async () => {
  const seen = [];
  const around = [
    async (job, next) => {
      seen.push('outer');
      return `outer(${await next()})`;
    },
    async (job, next) => {
      if (job.data === 'skipped') return 'cached';
      const [one, two] = await Promise.all([next(), next()]);
      assert.equal(one, two);
      return `inner(${one})`;
    },
  ];
  for (const id of ['run', 'skipped']) await queue.add(id, { id, ...KEEP });
  await drained((job) => seen.push(job.id) && 'done', { around });
  assert.deepEqual(seen, ['outer', 'run', 'outer']);
  assert.deepEqual([await queue.result('run'), await queue.result('skipped')], ['outer(inner(done))', 'outer(cached)']);
  await queue.add('late', { id: 'late', backoff: [HOUR] });
  const late = (job, next) => void next().catch(() => {});
  const fails = () => sleep(20).then(() => Promise.reject(new Error('of the handler')));
  await drained(fails, { around: [late] });
  assert.equal((await queue.get('late')).reason, 'Error: of the handler');
  const batches = [];
  await queue.add(1, { id: 'b' });
  await drained(() => {}, { batch: 5, around: [(jobs, next) => batches.push(Array.isArray(jobs)) && next()] });
  assert.deepEqual(batches, [true]);
});

// --- Without a server

async function ordered(one) {
  await one.step('charge', () => charges.push('charged'));
  await one.sleep('month', 30 * 24 * HOUR);
  one.progress(0.5);
  return one.wait('signed', HOUR);
}
let charges = [];

test('a run goes on where it was', async () => {
  const ended = await run(handler(ordered, { kind: 'order' }), 1, { signals: { signed: 'Ada' } });
  assert.deepEqual([ended.state, ended.result, ended.attempts, charges], ['done', 'Ada', 1, ['charged']]);
  assert.deepEqual([ended.waits, ended.jobs.map(({ kind }) => kind)], [[30 * 24 * HOUR], ['order', 'order', 'order']]);
  const late = await run(ordered, 1, { attempts: 1 });
  assert.deepEqual([late.state, late.waits], ['dead', [30 * 24 * HOUR, HOUR]]);
  assert.equal(late.reason, "TimedOut: job '1': no signal 'signed' within 3600 s");
  assert.equal((await run((one) => one.wait('signed'))).state, 'blocked');
});

test('a job for a unit test', async () => {
  const results = [
    ['a', 'done', 5],
    ['b', 'dead', 'no'],
  ];
  const one = job({ n: 1 }, { id: '17', kind: 'order', attempt: 3, attempts: 3, results });
  assert.deepEqual([one.id, one.kind, one.data, one.attempt, one.isLastAttempt], ['17', 'order', { n: 1 }, 3, true]);
  assert.deepEqual(
    one.results.map(({ id, outcome, value, reason }) => [id, outcome, value ?? reason]),
    results,
  );
  assert.equal(await one.step('charge', () => 5), 5);
  assert.equal(await job(1, { signals: { signed: 'Ada' } }).wait('signed'), 'Ada');
  await assert.rejects(one.sleep('nap', 5), Suspended);
  for (const asks of [(it) => it.once('a', 'return 1'), (it) => it.spawn([{ data: 1 }]), (it) => it.waitFor(['a'])]) {
    await assert.rejects(run(asks), /needs a server: see TestServer/);
  }
  assert.throws(() => job(1, { ids: 3 }), /no option 'ids': did you mean 'id'/);
});

const broken = () => {
  throw new TypeError('no');
};
const RUNS = {
  "the handler's ladder": [handler(broken, { attempts: 4, backoff: [60, 300] }), {}, 'dead', /no/, 4, [60, 300, 300]],
  "the job's ladder": [
    handler(broken, { backoff: [60] }),
    { attempts: 4, backoff: [5, 7] },
    'dead',
    /no/,
    4,
    [5, 7, 7],
  ],
  "the server's ladder": [broken, { attempts: 3 }, 'dead', /no/, 3, [null, null]],
  'an error that is final': [handler(broken, { giveUpOn: [TypeError] }), {}, 'dead', /no/, 1, []],
  'retry in': [() => Promise.reject(new Retry(900, 'busy')), { attempts: 2 }, 'dead', /busy/, 2, [900]],
  'no result': [() => 1n, {}, 'dead', /result cannot be encoded/, 1, []],
  'given up': [() => Promise.reject(new GiveUp('no')), {}, 'dead', /no/, 1, []],
};
for (const [name, [work, options, state, reason, attempts, waits]] of Object.entries(RUNS)) {
  test(`a run walks the ladder: ${name}`, async () => {
    const ended = await run(work, 1, options);
    assert.deepEqual([ended.state, ended.attempts, ended.waits], [state, attempts, waits]);
    assert.match(ended.reason, reason);
  });
}

test('a run ends though its job does not', async () => {
  const failed = await run(broken);
  assert.deepEqual([failed.state, failed.attempts, failed.waits.at(-1)], ['delayed', 100, null]);
  const put = await run(() => Promise.reject(new Snooze(60)));
  assert.deepEqual([put.state, put.attempts, put.waits.length], ['delayed', 0, 100]);
});

test('a run takes a worker', async () => {
  const worker = new Worker(new Queue('redis://localhost:1', 'q')).job('double', (one) => one.data * 2);
  assert.equal((await run(worker, 4, { kind: 'double' })).result, 8);
  for (const other of [worker, handler(() => {}, { kind: 'double' })]) {
    await assert.rejects(run(other, 4, { kind: 'other' }), /no handler for jobs of kind other/);
  }
});

// Steps, signals and limits of time: thirty days pass in a moment, and a signal comes before, after and never.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cancelled, handler, PayloadError, Queue, Retry, StepError, Suspended, TimedOut, Worker } from 'dq-redis';
import { InlineQueue, withServer } from 'dq-redis/testing';
import ioredis from 'ioredis';

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

async function until(condition, what) {
  for (const end = performance.now() + 60_000; !(await condition()); await sleep(5)) {
    assert.ok(performance.now() < end, what);
  }
}

const isTimeout = (error) => error instanceof TimedOut;
const drained = (work, options) => new Worker(queue, work, { logger: silent, ...options }).drain();

// --- Time and signals

test('a limit of time holds where a test drains', async () => {
  await queue.add(1, { id: 'a' });
  const slow = (job) => sleep(60_000, null, { signal: job.signal });
  assert.equal(await drained(slow, { timeout: 20, backoff: [60_000] }), 1);
  assert.equal((await queue.get('a')).reason, 'timeout after 0.02 s');
});

async function order(job) {
  const charge = await job.step('charge', () => ({ id: `ch_${job.attempt}` }));
  await job.sleep('cool off', 30 * 24 * HOUR);
  let signed;
  try {
    signed = await job.wait('signed', 24 * HOUR);
  } catch (error) {
    if (!isTimeout(error)) throw error;
    return { charge, signed: 'never' };
  }
  return { charge, signed };
}

test('thirty days, and a signal that comes after', { timeout: 120_000 }, async () => {
  await queue.add(1, { id: 'j', attempts: 1, ...KEEP });
  await drained(order);
  assert.deepEqual([(await queue.get('j')).state, (await queue.get('j')).attempts], ['delayed', 0]);
  await dq.clock.advance({ days: 29 });
  assert.equal(await drained(order), 0);
  await dq.clock.advance({ days: 1 });
  assert.equal(await drained(order), 1);
  assert.equal((await queue.get('j')).awaits, 'signed');
  assert.equal(await queue.signal('j', 'signed', { by: 'Ada' }), true);
  assert.equal(await drained(order), 1);
  assert.deepEqual(await queue.result('j'), { charge: { id: 'ch_1' }, signed: { by: 'Ada' } });
  await queue.close();
});

test('a signal that comes first, and one that never comes', { timeout: 120_000 }, async () => {
  await queue.addMany(['first', 'never'].map((id) => ({ data: id, id, ...KEEP })));
  assert.equal(await queue.signal('first', 'signed'), true);
  await drained(order);
  await dq.clock.advance({ days: 30 });
  await drained(order);
  assert.equal((await queue.result('first')).signed, null);
  await dq.clock.advance({ days: 1 });
  await drained(order);
  assert.equal((await queue.result('never')).signed, 'never');
  await queue.close();
});

test('a wait that was over stays over', { timeout: 120_000 }, async () => {
  await queue.add(1, { id: 'j', backoff: [1000], ...KEEP });
  const seen = [];
  const work = async (job) => {
    await job.wait('signed', 1000).catch((error) => seen.push(error.name));
    if (seen.includes('TimedOut') && seen.length < 3) throw new Error('again');
  };
  await drained(work);
  await dq.clock.advance({ seconds: 1 });
  await drained(work);
  assert.equal(await queue.signal('j', 'signed', 1), true);
  await dq.clock.advance({ seconds: 1 });
  await drained(work);
  assert.deepEqual(seen, ['Suspended', 'TimedOut', 'TimedOut']);
  await queue.close();
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
  await queue.close();
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
  await queue.close();
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
    await queue.close();
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
  await queue.close();
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
  await queue.close();
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
  await queue.close();
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
  await queue.close();
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
  const inline = new InlineQueue((job) => job.setCost(7).then(() => job.id));
  await inline.add(1, { id: 'a' });
  assert.equal(await inline.result('a'), 'a');
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
  await queue.close();
});

// --- Limits

test('a timeout: told, failed at once, and its place taken until it ends', { timeout: 120_000 }, async () => {
  await queue.add('slow', { id: 'slow', backoff: [HOUR] });
  const failed = [];
  let release;
  const stays = new Promise((resolve) => (release = resolve));
  const told = [];
  const work = async (job) => {
    if (job.data !== 'slow') return;
    job.signal.addEventListener('abort', () => told.push(job.signal.reason.why));
    await stays;
    return 'dropped';
  };
  const hooks = [{ failed: (job, error) => failed.push([job.id, error.message]) }];
  const worker = new Worker(queue, work, { timeout: 50, concurrency: 1, logger: silent, hooks });
  worker.start();
  await until(async () => (await queue.get('slow')).state === 'delayed', 'it failed');
  await queue.add('quick', { id: 'quick' });
  assert.deepEqual(
    [(await queue.get('slow')).reason, told, failed],
    ['timeout after 0.05 s', ['timeout'], [['slow', 'timeout after 0.05 s']]],
  );
  assert.equal((await queue.get('quick')).state, 'ready');
  release();
  await until(async () => (await queue.get('quick')) === null, 'the place is free');
  assert.equal((await queue.get('slow')).state, 'delayed');
  await worker.stop();
  await queue.close();
});

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
  await queue.close();
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
  await queue.close();
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
  await queue.close();
});

// --- Without a server

test('inline: sleeps are over at once, signals go on, and jobs wait for others', async () => {
  const seen = [];
  const inline = new InlineQueue([
    handler(
      async (job) => {
        await job.step('charge', () => seen.push('charged'));
        await job.sleep('month', 30 * 24 * HOUR);
        job.progress(0.5);
        const signed = await job.wait('signed', HOUR);
        const parts = await job.spawn([
          { data: 1, kind: 'part' },
          { data: -1, kind: 'part' },
        ]);
        return [signed, parts.map(({ outcome, value }) => value ?? outcome)];
      },
      { kind: 'order' },
    ),
    handler(
      (job) => {
        if (job.data < 0) throw new Error('negative');
        return job.data;
      },
      { kind: 'part' },
    ),
  ]);
  assert.equal(await inline.add(1, { id: 'j', kind: 'order' }), 'j');
  await assert.rejects(inline.wait('j'), isTimeout);
  assert.equal(await inline.signal('j', 'signed', 'Ada'), true);
  assert.equal(await inline.signal('j', 'signed', 'late'), null);
  assert.deepEqual([seen, await inline.wait('j')], [['charged'], ['Ada', [1, 'dead']]]);
  await assert.rejects(inline.add(-1, { id: 'bad', kind: 'part' }), /negative/);
  await assert.rejects(inline.result('bad'), /bad is dead: Error: negative/);
  const [first, second] = await inline.chain([1, 2].map((data) => ({ data, kind: 'part' })));
  assert.deepEqual(await inline.result(second), 2);
  assert.deepEqual(inline.jobs.at(-1).results[0].id, first);
  assert.equal((await inline.addMany([3, 4, 5].map((data) => ({ data, kind: 'part' })))).length, 3);
  assert.deepEqual([await inline.cancel('j'), await inline.cancel('none')], [true, false]);
  assert.equal(await inline.addAndWait(7, { kind: 'part' }), 7);
});

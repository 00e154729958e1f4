// Whatever the user's code throws, returns or attaches, at every place where it is called: the worker goes on, and does
// the next hundred jobs. With DQ_BYPASS a part of the guard is left out, and these tests must fail.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import * as dqRedis from 'dq-redis';
import { withServer } from 'dq-redis/testing';
import fc from 'fast-check';
import guard from '../dist/guard.js';
import handlers from '../dist/handler.js';
import limits from '../dist/limits.js';
import quiet from '../dist/quiet.js';
import shown from '../dist/format.js';

const { Cancelled, GiveUp, PayloadError, Queue, Retry, Snooze, Worker } = dqRedis;
const GOOD = 100;
// Without a part of the guard, one of them must meet what it is for.
const RUNS = process.env.DQ_BYPASS ? 500 : 25;
limits.HOOK_MS = 100;

const BYPASS = {
  verdict() {
    guard.verdict = (delivery, _, thrown) => {
      const { error } = delivery.failure ?? thrown ?? {};
      if (!thrown && !delivery.failure) return { how: 'done' };
      if (error instanceof GiveUp) return { how: 'give up', reason: error.reason };
      return { how: 'fail', reason: `${error.name}: ${error.message}`, waitMs: error.delayMs ?? null };
    };
  },
  hooks() {
    guard.Guard.prototype.one = (_, call) => call() ?? null;
  },
  texts() {
    shown.textOf = shown.stackOf = (value) => value.stack ?? `${value}`;
  },
};
BYPASS[process.env.DQ_BYPASS]?.();

// --- Everything that the language can make

const raise = () => {
  throw new Error('on purpose');
};
const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
});
/** Functions that make values: fast-check cannot carry a proxy, and some may be made once only. */
const symbol = fc.constantFrom(Symbol('s'), Symbol.iterator, Symbol()).map((made) => () => made);
const traps = fc.uniqueArray(fc.constantFrom(...Object.getOwnPropertyNames(Reflect)), { minLength: 1 });
const targets = fc.constantFrom(
  () => ({}),
  () => [],
  () => new Error('x'),
  () => new Retry(5),
  () => raise,
);
const proxy = fc.tuple(targets, traps).map(
  ([target, names]) =>
    () =>
      new Proxy(target(), Object.fromEntries(names.map((name) => [name, raise]))),
);
const revoked = targets.map((target) => () => {
  const made = Proxy.revocable(target(), {});
  made.revoke();
  return made.proxy;
});
const circular = fc.constantFrom('a', 'cause').map((name) => () => {
  const made = new Error('round');
  made[name] = made;
  return made;
});
const classes = fc.constantFrom(raise, class A {}).map((made) => () => made);
const odd = fc.oneof(
  anything.map((made) => () => made),
  symbol,
  proxy,
  revoked,
  circular,
  classes,
);

const says = fc.constantFrom(GiveUp, Retry, Snooze, Cancelled, PayloadError, Error);
const say = fc.tuple(says, odd, odd).map(
  ([Class, one, two]) =>
    () =>
      new Class(one(), two()),
);
const PROPERTIES = [
  'message',
  'name',
  'stack',
  'cause',
  'code',
  'constructor',
  'reason',
  'delayMs',
  'why',
  'toString',
  'then',
];
const poisoned = fc
  .tuple(
    fc.constantFrom(GiveUp, Retry, Snooze, Cancelled, PayloadError, Error, TypeError),
    fc.uniqueArray(fc.constantFrom(...PROPERTIES, Symbol.toPrimitive, Symbol.toStringTag), { minLength: 1 }),
    fc.option(odd),
    fc.boolean(),
  )
  .map(([Class, names, value, isFrozen]) => () => {
    const made = new Class(5);
    const given = value ? { value: value() } : { get: raise };
    for (const name of names) Object.defineProperty(made, name, given);
    return isFrozen ? Object.freeze(made) : made;
  });
const thenable = fc.tuple(odd, odd).chain(([one, two]) =>
  fc.constantFrom(
    () => ({ then: (resolve) => (resolve(one()), resolve(two())) }),
    () => ({ then: (_, reject) => (reject(one()), reject(two())) }),
    () => ({ then: (resolve, reject) => (resolve(one()), reject(two()), raise()) }),
    () => ({ then: (_, reject) => setImmediate(reject, one()) }),
    () => ({ get then() { return raise(); } }), // prettier-ignore
    () => ({ then: raise }),
    () => Promise.reject(5),
    // Were they rejections, what an async function makes of them would be out of anybody's reach.
    () => Object.defineProperty(Promise.resolve(5), 'constructor', { get: raise }),
    () => Object.defineProperty(Promise.resolve(5), 'then', { value: raise }),
  ),
);
const value = fc.oneof(odd, say, poisoned, thenable);
/** What user code does with a value. */
const way = fc.constantFrom('throw', 'return', 'reject', 'reject later');

function act(how, make) {
  switch (how) {
    case 'throw':
      throw make();
    case 'return':
      return make();
    case 'reject':
      return Promise.reject(make());
    case 'reject later':
      return sleep(1).then(() => {
        throw make();
      });
  }
}

// --- One worker for all of it

const dq = withServer({ before, after, beforeEach });
const silent = { info() {}, warn() {}, error() {} };
/** What is done at which place to the job `bad`. */
let deed = {};
const RESULT = { of: 'a handler' };
let done = 0;
const unhandled = [];
const note = (error) => unhandled.push(error);
process.on('unhandledRejection', note);
process.on('uncaughtException', note);

const deeds = (name, job, ...rest) => (job.id.startsWith('bad') ? deed[name]?.(job, ...rest) : undefined);
const hooks = {
  before: (job) => deeds('before', job),
  context: (jobs, next) =>
    jobs.some((job) => job.id.startsWith('bad')) && deed.context ? deed.context(jobs, next) : next(),
  after: (job) => deeds('after', job),
  failed: (job, error) => deeds('failed', job, error),
  lost: (job) => deeds('lost', job),
};
const around = (job, next) => (String(job.id).startsWith('bad') && deed.around ? deed.around(job, next) : next());
const logger = {
  info: (text) => deed.logger?.(text),
  warn: (text) => deed.logger?.(text),
  error: (text) => deed.logger?.(text),
};
const codec = {
  encode: (data) => (data === RESULT ? deed.encode() : Buffer.from(String(data))),
  decode: (payload) => (String(payload) === 'bad' && deed.decode ? deed.decode() : String(payload)),
};

async function one(job) {
  if (!job.id.startsWith('bad')) return void done++;
  if (deed.decode) void job.data;
  return deed.handler?.(job);
}

async function many(jobs) {
  for (const job of jobs) await one(job);
}

async function until(condition, what) {
  const patience = process.env.DQ_BYPASS ? 3000 : 60_000;
  for (const end = performance.now() + patience; !(await condition()); await sleep(2)) {
    assert.deepEqual(unhandled, []);
    assert.ok(performance.now() < end, what);
  }
}

let queue;
let worker;

async function start(options) {
  queue = new Queue(dq.url, 'q', { codec, logger: silent });
  worker = new Worker(queue, options.batch ? many : one, {
    attempts: 1,
    hooks: [hooks, {}],
    around: [around],
    logger,
    ...options,
  });
  worker.start();
}

async function stop() {
  deed = {};
  const stopped = worker;
  worker = undefined;
  await stopped.stop();
  await stopped.join();
  await queue.close();
  assert.deepEqual(unhandled, []);
}

// A test that failed leaves no worker to the next one.
afterEach(
  async () => {
    if (worker) await stop().catch(() => {});
  },
  { timeout: 60_000 },
);

/** A bad job that does so, and a hundred good ones. */
async function survives(given, ids = ['bad']) {
  deed = given;
  done = 0;
  await queue.addMany(ids.map((id) => ({ data: 'bad', id })));
  await until(async () => (await queue.len({ state: 'ready' })) === 0, 'it is fetched');
  await queue.addMany(Array.from({ length: GOOD }, (_, n) => ({ data: 'good', id: `good${n}` })));
  await until(() => done >= GOOD, `${GOOD} good jobs are done, not ${done}`);
  await until(async () => (await queue.len({ state: 'reserved' })) === 0, 'all are settled');
  await queue.purge('all');
  deed = {};
  assert.deepEqual(unhandled, []);
}

async function checked(property, runs = RUNS) {
  await fc.assert(property, { numRuns: runs, endOnFailure: true, verbose: 1 });
}

for (const place of [
  'handler',
  'before',
  'context',
  'around',
  'after',
  'failed',
  'lost',
  'logger',
  'decode',
  'encode',
]) {
  test(`at ${place}`, { timeout: 300_000 }, async () => {
    await start({ concurrency: 3 });
    const others = {
      failed: { handler: raise },
      lost: { handler: (job) => queue.delete(job.id) },
      logger: { handler: raise },
      encode: { handler: () => RESULT },
    };
    await checked(
      fc.asyncProperty(way, value, (how, make) => survives({ ...others[place], [place]: () => act(how, make) })),
    );
    await stop();
  });
}

for (const place of ['context', 'around']) {
  test(`at ${place}, after the handler`, { timeout: 300_000 }, async () => {
    await start({ concurrency: 3 });
    const uses = fc.constantFrom(
      (next) => next(),
      (next) => void next(),
      (next) => void next().finally(() => {}),
      (next) => [next(), next()],
      (next) => void setImmediate(next),
    );
    await checked(
      fc.asyncProperty(way, value, uses, way, value, (how, make, use, then, made) =>
        survives({
          handler: () => act(how, make),
          [place](_, next) {
            use(next);
            return act(then, made);
          },
        }),
      ),
    );
    await stop();
  });
}

test('in a batch, one of many', { timeout: 300_000 }, async () => {
  await start({ concurrency: 2, batch: 10 });
  const ids = ['bad1', 'bad2', 'bad3'];
  await checked(fc.asyncProperty(value, (make) => survives({ handler: (job) => job.fail(make()) }, ids)));
  await checked(fc.asyncProperty(value, (make) => survives({ handler: (job) => job.succeed(make()) }, ids)));
  await checked(fc.asyncProperty(way, value, (how, make) => survives({ handler: () => act(how, make) }, ids)));
  await stop();
});

test('what is done to the job itself', { timeout: 300_000 }, async () => {
  await start({ concurrency: 3 });
  const names = ['id', 'kind', 'data', 'queue', 'signal', 'lost', 'cancelled', 'constructor', 'attempt'];
  const harms = fc.oneof(
    fc.constantFrom(
      (job) => Object.freeze(job),
      (job) => Object.setPrototypeOf(job, null),
      (job) => job.payload.fill(0),
      (job) => void job.pause(60_000),
      (job) => void job.pause('soon'),
      (job) => job.fail(job),
    ),
    fc.constantFrom(...names).map((name) => (job) => Object.defineProperty(job, name, { get: raise })),
  );
  await checked(
    fc.asyncProperty(harms, way, value, (harm, how, make) =>
      survives({
        handler(job) {
          harm(job);
          return act(how, make);
        },
      }),
    ),
  );
  await stop();
});

test('listeners of a signal', { timeout: 300_000 }, async () => {
  await start({ concurrency: 3 });
  const attach = fc.constantFrom(
    (signal, listener) => signal.addEventListener('abort', listener),
    (signal, listener) => signal.addEventListener('abort', { handleEvent: listener }, { once: true }),
    (signal, listener) => (signal.onabort = listener),
  );
  await checked(
    fc.asyncProperty(attach, way, value, (add, how, make) =>
      survives({
        async handler(job) {
          add(job.signal, () => act(how, make));
          await queue.delete(job.id); // lost at its end
        },
      }),
    ),
  );
  await stop();
});

test('a listener that was taken away is not called', () => {
  const { signal } = new (class extends AbortController {})();
  const errors = [];
  quiet.quietSignal(signal, (error) => errors.push(error));
  signal.addEventListener('abort', raise);
  signal.removeEventListener('abort', raise);
  signal.onabort = raise;
  signal.onabort = null;
  signal.dispatchEvent(new Event('abort'));
  assert.deepEqual([errors, signal.onabort], [[], null]);
  signal.onabort = raise;
  signal.dispatchEvent(new Event('abort'));
  assert.equal(errors.length, 1);
});

test('what never ends keeps nobody from going on', { timeout: 300_000 }, async () => {
  const never = () => new Promise(() => {});
  await start({ concurrency: 3, drain: 0 });
  for (const place of ['before', 'after', 'failed', 'lost', 'logger']) {
    const handler = { failed: raise, lost: (job) => queue.delete(job.id) }[place];
    await survives({ handler, [place]: never });
    await survives({ handler, [place]: () => ({ then() {} }) });
  }
  // A handler may take as long as it likes: the others go on, and the stop does not wait for it.
  deed = { handler: never };
  await queue.add('bad', { id: 'bad' });
  await until(async () => (await queue.len({ state: 'reserved' })) === 1, 'it runs');
  done = 0;
  await queue.addMany(Array.from({ length: GOOD }, (_, n) => ({ data: 'good', id: `good${n}` })));
  await until(() => done === GOOD, 'the others are done');
  await stop();
  assert.equal((await queue.get('bad')).state, 'ready');
  await queue.close();
});

test('at adding: the job goes out as it was', { timeout: 300_000 }, async () => {
  let harm = () => {};
  const said = [];
  const log = { ...silent, error: (text) => said.push(text) };
  const added = [{ adding: (_, headers) => harm(headers) }, { adding: (_, headers) => void (headers.ok = 'yes') }];
  queue = new Queue(dq.url, 'q', { hooks: added, logger: log });
  const header = async (given) => {
    const id = await queue.add({ a: 1 }, { headers: given });
    const { data, headers } = JSON.parse((await queue.get(id)).payload);
    assert.deepEqual(data, { a: 1 });
    return headers;
  };
  await checked(
    fc.asyncProperty(way, value, odd, async (how, make, set) => {
      harm = (headers) => {
        headers.mine = set();
        delete headers.own;
        return act(how === 'return' ? 'throw' : how, make);
      };
      assert.deepEqual(await header({ own: 'x' }), { own: 'x', ok: 'yes' });
    }),
    100,
  );
  harm = (headers) => void (headers.number = 5);
  assert.deepEqual(await header(), { ok: 'yes' });
  assert.match(said.at(-1), /set the header number to a value that is not text/);
  harm = async (headers) => {
    await sleep(1);
    headers.late = 'awaited';
  };
  assert.deepEqual(await header(), { late: 'awaited', ok: 'yes' });
  harm = () => new Promise(() => {});
  assert.deepEqual(await header(), { ok: 'yes' });
  await queue.close();
});

test('a job that no handler can be chosen for has failed', { timeout: 300_000 }, async () => {
  const { Handlers } = handlers;
  const { choose } = Handlers.prototype;
  Handlers.prototype.choose = function (delivery) {
    return delivery.name === 'nobody' ? raise() : choose.call(this, delivery);
  };
  const said = [];
  await start({ concurrency: 3 });
  deed = { logger: (text) => said.push(text) };
  await queue.add('x', { id: 'nobody' });
  await until(async () => (await queue.get('nobody'))?.reason === 'Error: on purpose', 'the reason is kept');
  assert.ok(
    said.some((text) => text.startsWith('dq: job nobody found no handler: Error: on purpose')),
    said.join(),
  );
  await survives({}, ['bad2']);
  Handlers.prototype.choose = choose;
  await stop();
});

// --- Canaries

const CANARIES = [
  ['verdict', 'at handler'],
  ['hooks', 'at before'],
  ['hooks', 'at adding'],
  ['texts', 'at failed'],
];

for (const [part, name] of process.env.DQ_BYPASS ? [] : CANARIES) {
  test(`without the guard of ${part} this fails: ${name}`, { timeout: 300_000 }, async () => {
    const file = new URL(import.meta.url).pathname;
    const child = spawn(process.execPath, ['--test-force-exit', `--test-name-pattern=^${name}$|^${name}:`, file], {
      env: { ...process.env, DQ_BYPASS: part, NODE_TEST_CONTEXT: undefined },
      stdio: 'ignore',
      timeout: 200_000,
      killSignal: 'SIGKILL',
    });
    // More than 1 where the process itself dies of what is thrown.
    assert.ok((await new Promise((resolve) => child.on('exit', resolve))) > 0);
  });
}

// The probe of the behaviour suite (clients/suite/README.md): probe.mjs ioredis | redis.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { GiveUp, Handler, Queue, Retry, Snooze, Worker } from 'dq-redis';
import { InlineQueue } from 'dq-redis/testing';
import * as ioredis from 'ioredis';
import * as nodeRedis from 'redis';

const library = process.argv[2]; // by the name of its package
const queues = new Map();
const runs = new Map();
let worker = null;
let isTerminated = true;

const emit = (event, fields = {}) => process.stdout.write(JSON.stringify({ event, ...fields }) + '\n');

// --- Handlers

/** The worst that can be thrown. */
const HOSTILE = [
  new GiveUp({ code: 404 }),
  new GiveUp(404),
  new GiveUp(Symbol('s')),
  new GiveUp(new Proxy({}, throwing())),
  new Snooze(1e9, {}),
  new Snooze(1e9, Symbol('s')),
  new Snooze(Infinity),
  new Snooze(NaN),
  new Snooze('soon'),
  new Snooze(null),
  new Retry(NaN),
  new Retry(Infinity, 'later'),
  new Retry(-1),
  new Retry({}),
  Object.assign(new Retry(5), { delayMs: undefined }),
  Object.freeze(new Retry(Symbol('s'))),
  mute('message'),
  mute('name'),
  mute('stack'),
  mute('constructor'),
  Object.defineProperty(new GiveUp('x'), 'reason', { get: raise }),
  Object.defineProperty(new Snooze(5), 'delayMs', { get: raise }),
  new Proxy(new Error('x'), throwing()),
  new Proxy(() => {}, throwing()),
  revoked(),
  Symbol('s'),
  undefined,
  null,
  0,
  10n,
  '\ud800',
  Object.create(null),
  Object.freeze({ toString: raise }),
  new Error('\ud800'.repeat(2000)),
];

function raise() {
  throw new Error('on purpose');
}

function throwing() {
  return Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((trap) => [trap, raise]));
}

function mute(property) {
  return Object.defineProperty(new Error('x'), property, { get: raise });
}

function revoked() {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function announce(jobs) {
  for (const job of jobs) {
    runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
    emit('started', {
      job: job.id,
      queue: job.queue,
      attempt: job.attempt,
      payload: job.payload.toString('base64'),
      kind: job.kind,
      headers: job.headers,
      due: job.due?.getTime() ?? null,
      batch: jobs.length,
    });
  }
}

function script(job) {
  const { data } = job;
  const isObject = data !== null && typeof data === 'object' && !Array.isArray(data);
  return isObject && runs.get(job.id) <= (data.times ?? Infinity) ? data : {};
}

async function work(job) {
  const todo = script(job);
  switch (todo.do) {
    case 'sleep':
      try {
        return await job.pause(todo.ms);
      } catch (error) {
        emit('told', { job: job.id, why: error.why });
        throw error;
      }
    case 'stubborn':
      return sleep(todo.ms);
    case 'hang':
      return new Promise(() => {});
    case 'throw':
      throw new Error(todo.message ?? 'thrown');
    case 'retry':
      throw new Retry(todo.ms, todo.reason);
    case 'snooze':
      throw new Snooze(todo.ms, todo.reason);
    case 'give_up':
      throw new GiveUp(todo.reason);
    case 'hostile':
      throw HOSTILE[todo.n % HOSTILE.length];
    case 'exit':
      return process.exit(3);
    case 'fork':
      return void spawn('sleep', ['2'], { stdio: 'ignore' });
    case 'quit_thread':
      throw undefined;
  }
}

async function handleOne(job) {
  announce([job]);
  try {
    await work(job);
  } finally {
    emit('ended', { job: job.id });
  }
}

async function handleMany(jobs) {
  announce(jobs);
  for (const job of jobs) {
    try {
      await work(job);
    } catch (error) {
      job.fail(error);
    }
  }
}

const reports = {
  before: (job) => emit('before', { job: job.id }),
  after: (job) => emit('after', { job: job.id }),
  failed: (job, error) => emit('failed', { job: job.id, error: error?.name ?? String(error) }),
  lost: (job) => emit('lost', { job: job.id }),
};

const hostile = Object.fromEntries(['before', 'around', 'after', 'failed', 'lost'].map((name) => [name, raise]));

const given = (value) => value ?? undefined;

function handlers(order) {
  return (order.handlers ?? [{}]).map(
    (each) =>
      new Handler(each.batch ? handleMany : handleOne, {
        kind: each.kind,
        attempts: given(each.attempts),
        backoff: given(each.backoff_ms),
        lease: given(each.lease_ms),
        batch: given(each.batch),
      }),
  );
}

// --- Methods

const INSTANTS = ['at', 'since', 'until', 'first'];

function fromJson(args) {
  const read = Object.entries(args ?? {}).filter(([, value]) => value !== null);
  return Object.fromEntries(
    read.map(([name, value]) => {
      if (INSTANTS.includes(name)) return [name, new Date(value)];
      if (name === 'payload') return ['data', value.base64 ? Buffer.from(value.base64, 'base64') : Buffer.from(value)];
      return [name === 'if_exists' ? 'ifExists' : name, value];
    }),
  );
}

function toJson(value) {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (value instanceof Date) return value.getTime();
  if (value instanceof Map) return toJson(Object.fromEntries(value));
  if (Array.isArray(value)) return value.map(toJson);
  if (value === null || typeof value !== 'object') return value;
  const named = Object.entries(value).filter(([name]) => name !== 'fields');
  return Object.fromEntries(named.map(([name, each]) => [snake(name), toJson(each)]));
}

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const METHODS = {
  add(queue, { data, repeat, ...rest }) {
    if (repeat === undefined) return queue.add(data, rest);
    return queue.addMany(Array.from({ length: repeat }, (_, n) => ({ ...rest, data, id: `${rest.id}:${n}` })));
  },
  every: (queue, { interval, data, ...rest }) => queue.every(interval, data, rest),
  cron: (queue, { expression, data, ...rest }) => queue.cron(expression, data, rest),
  delete: (queue, { ids, ...rest }) => queue.delete(ids, rest),
  pop: (queue, args) => queue.pop(args),
  bpop: (queue, { timeout, ...rest }) => queue.bpop(timeout, rest),
  ack: (queue, { id, token }) => queue.ack(id, token),
  nack: (queue, { id, token, ...rest }) => queue.nack(id, token, rest),
  nack_many: (queue, { tokens, ...rest }) => queue.nackMany(tokens, rest),
  touch: (queue, { id, token, ...rest }) => queue.touch(id, token, rest),
  touch_many: (queue, { tokens, ...rest }) => queue.touchMany(tokens, rest),
  reschedule: (queue, { ids, ...rest }) => queue.reschedule(ids, rest),
  kick: (queue, { ids }) => queue.kick(ids),
  kick_oldest: (queue, { count }) => queue.kickOldest(count),
  get: (queue, { id }) => queue.get(id),
  peek: (queue, { state, ...rest }) => queue.peek(state, rest),
  scan: (queue, { cursor, ...rest }) => queue.scan(cursor, rest),
  forecast: (queue, { since, until, buckets }) => queue.forecast(since, until, buckets),
  len: (queue, args) => queue.len(args),
  stats: (queue) => queue.stats(),
  next: (queue, { id, count }) => queue.next(id, count),
  groups: (queue, { cursor, ...rest }) => queue.groups(cursor, rest),
  cfgset: (queue, args) => queue.cfgset(args),
  cfgget: (queue) => queue.cfgget(),
  pause: (queue, { duration }) => queue.pause(duration),
  resume: (queue) => queue.resume(),
  purge: (queue, { state }) => queue.purge(state),
};

// --- The two libraries

function address(text) {
  const at = text.lastIndexOf(':');
  return { host: text.slice(0, at), port: Number(text.slice(at + 1)) };
}

function credentials(url) {
  const { username, password } = new URL(url);
  return username ? { username, password } : {};
}

const CONNECT = {
  ioredis({ cluster, sentinels, master, url, own }) {
    if (own) return new ioredis.Redis(url);
    if (cluster) {
      const { username, password } = credentials(cluster);
      return new ioredis.Cluster([cluster], { enableReadyCheck: false, redisOptions: { username, password } });
    }
    return sentinels ? new ioredis.Redis({ sentinels: sentinels.map(address), name: master }) : url;
  },
  redis({ cluster, sentinels, master, url }) {
    if (cluster) return nodeRedis.createCluster({ rootNodes: [{ url: cluster }], defaults: credentials(cluster) });
    if (!sentinels) return nodeRedis.createClient({ url });
    return nodeRedis.createSentinel({ name: master, sentinelRootNodes: sentinels.map(address), scanInterval: 500 });
  },
};

function connect(order) {
  const client = CONNECT[library](order);
  if (typeof client !== 'string') client.on('error', (error) => console.error(String(error)));
  return client;
}

const ORDERS = {
  queue(order) {
    queues.set(order.queue, new Queue(connect(order), order.name, { shards: given(order.shards) }));
    emit('made');
  },
  worker(order) {
    worker = new Worker(
      order.queues.map((name) => queues.get(name)),
      handlers(order),
      {
        concurrency: given(order.concurrency),
        prefetch: given(order.prefetch),
        weights: order.weights,
        drain: given(order.drain_ms),
        wait: given(order.wait_ms),
        lease: given(order.lease_ms),
        hooks: order.hooks ? [order.hooks === 'hostile' ? hostile : reports] : [],
      },
    );
    emit('running');
    void run();
  },
  stop() {
    isTerminated = false;
    void worker.stop();
  },
  async call({ queue, method, args }) {
    const value = await METHODS[method](queues.get(queue), fromJson(args));
    emit('answer', { value: value === undefined ? null : toJson(value) });
  },
  async inline(order) {
    await new InlineQueue(handlers(order)).add(order.data, { kind: order.kind });
    emit('answer', { value: null });
  },
};

async function run() {
  try {
    await worker.run();
  } catch (error) {
    emit('error', { type: error.name, message: error.message });
  }
  process.stdout.write(JSON.stringify({ event: 'stopped' }) + '\n', () => isTerminated && process.exit(0));
}

emit('ready', { language: `node-${library}`, version: process.versions.node });
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  // One after the other, as an order may need what the one before made.
  await Promise.resolve()
    .then(() => ORDERS[order.do](order))
    .catch((error) => emit('refused', { error: `${error.name}: ${error.message}` }));
}
process.exit(0);

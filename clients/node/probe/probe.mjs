// The probe of the behaviour suite (clients/suite/README.md): probe.mjs ioredis | redis.

import { createInterface } from 'node:readline';
import { JobFailed, Queue, Worker } from 'dq-redis';
import { run as runInline } from 'dq-redis/testing';
import * as ioredis from 'ioredis';
import * as nodeRedis from 'redis';
import { IDLE } from '../dist/limits.js';
import { addRuled, deaths, emit, given, handlers, hostile, reporting, reports } from './handlers.mjs';
import { raise } from './hostile.mjs';

const library = process.argv[2]; // by the name of its package
const queues = new Map();
let worker = null;
let isTerminated = true;

// --- Methods

const INSTANTS = ['at', 'since', 'until', 'first'];

const CAMEL = { if_exists: 'ifExists', on_dead: 'onDead', after_group: 'afterGroup' };

function fromJson(args) {
  const read = Object.entries(args ?? {}).filter(([, value]) => value !== null);
  return Object.fromEntries(
    read.map(([name, value]) => {
      if (INSTANTS.includes(name)) return [name, new Date(value)];
      if (name === 'payload') return ['data', value.base64 ? Buffer.from(value.base64, 'base64') : Buffer.from(value)];
      return [CAMEL[name] ?? name, value];
    }),
  );
}

function toJson(value) {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (value instanceof Date) return value.getTime();
  if (value instanceof Map) return toJson(Object.fromEntries(value));
  if (Array.isArray(value)) return value.map(toJson);
  if (value === null || typeof value !== 'object') return value;
  const named = Object.entries(value).filter(([name]) => !['fields', 'results', 'steps'].includes(name));
  return Object.fromEntries(named.map(([name, each]) => [snake(name), toJson(each)]));
}

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Their values are the user's own. */
const UNREAD = new Set(['result', 'wait', 'add_and_wait']);

const METHODS = {
  add(queue, { data, repeat, ...rest }) {
    if (repeat === undefined) return queue.add(data, rest);
    return queue.addMany(Array.from({ length: repeat }, (_, n) => ({ ...rest, data, id: `${rest.id}:${n}` })));
  },
  add_many: (queue, { jobs }) => queue.addMany(jobs.map(fromJson)),
  join: (queue, { jobs, then }) => queue.join(jobs.map(fromJson), { then: fromJson(then) }),
  chain: (queue, { jobs }) => queue.chain(jobs.map((data) => ({ data }))),
  add_and_wait: (queue, { data, ...rest }) => queue.addAndWait(data, rest),
  result: (queue, { id }) => queue.result(id),
  wait: (queue, { id, timeout }) => queue.wait(id, timeout),
  cancel: (queue, { id }) => queue.cancel(id),
  signal: (queue, { id, name, value }) => queue.signal(id, name, value),
  rules: (queue, { program, rules, allow_empty: allowEmpty, dry_run: dryRun, prune }) =>
    queue.rules(Buffer.from(program.base64, 'base64'), rules, { prune, allowEmpty, dryRun }),
  every: (queue, { interval, data = null, ...rest }) => queue.every(interval, data, rest),
  cron: (queue, { expression, data = null, ...rest }) => queue.cron(expression, data, rest),
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
  get: (queue, { id, ...rest }) => queue.get(id, rest),
  peek: (queue, { state, ...rest }) => queue.peek(state, rest),
  scan: (queue, { cursor, ...rest }) => queue.scan(cursor, rest),
  forecast: (queue, { since, until, buckets }) => queue.forecast(since, until, buckets),
  len: (queue, args) => queue.len(args),
  stats: (queue) => queue.stats(),
  explain: (queue, { id }) => queue.explain(id),
  next: (queue, { id, count }) => queue.next(id, count),
  groups: (queue, { cursor, ...rest }) => queue.groups(cursor, rest),
  configure: (queue, { backoff_default: isDefault, ...args }) =>
    queue.configure(isDefault ? { ...args, backoff: 'default' } : args),
  settings: (queue) => queue.settings(),
  group_set: (queue, { group, ...args }) => queue.group(group).set(args),
  group_clear: (queue, { group }) => queue.group(group).clear(),
  group_pause: (queue, { group, duration }) => queue.group(group).pause(duration),
  group_resume: (queue, { group }) => queue.group(group).resume(),
  group_stats: (queue, { group }) => queue.group(group).stats(),
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
    if (order.idle_ms) IDLE.afterMs = order.idle_ms;
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
        around: order.around ? [order.around === 'hostile' ? raise : reporting] : [],
        hooks: [
          ...(order.hooks ? [order.hooks === 'hostile' ? hostile : reports] : []),
          ...(order.dead ? [deaths] : []),
        ],
      },
    );
    addRuled(worker, order);
    emit('running');
    void run();
  },
  stop() {
    isTerminated = false;
    void worker.stop();
  },
  async call({ queue, method, args, tag }) {
    const called = METHODS[method](queues.get(queue), fromJson(args)).then(
      (value) => emit('answer', { value: UNREAD.has(method) ? value : toJson(value ?? null), tag }),
      (error) => emit('refused', { ...refusal(error), tag }),
    );
    if (tag === undefined || tag === null) await called;
  },
  health() {
    emit('answer', { value: worker.isHealthy });
  },
  async inline(order) {
    const { state, result, reason, attempts, waits } = await runInline(handlers(order)[0], order.data, {
      kind: order.kind,
    });
    emit('answer', { value: { state, result, reason, attempts, waits } });
  },
};

function refusal(error) {
  const { name, message, outcome, reason } = error;
  if (error instanceof JobFailed) return { error: 'JobFailed', outcome, reason, message };
  return { error: name === 'TimedOut' ? 'timeout' : `${name}: ${message}` };
}

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
    .catch((error) => emit('refused', refusal(error)));
}
process.exit(0);

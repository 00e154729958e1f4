// Queues and workers against a server whose clock the tests move, with each version of each client.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { context, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { kind, Queue, Worker } from 'dq-redis';
import { Telemetry } from 'dq-redis/otel';
import { withServer } from 'dq-redis/testing';
import mistakes from '../dist/mistakes.js';
import ioredis from 'ioredis';
import ioredis5 from 'ioredis-5';
import * as redis from 'redis';
import * as redis5 from 'redis-5';

const dq = withServer({ before, after, beforeEach });
const silent = { info() {}, warn() {}, error() {} };
const path = () => dq.url.slice('unix://'.length);

const CLIENTS = {
  'a URL': () => dq.url,
  'ioredis 6': () => new ioredis(path()),
  'ioredis 6 with maps': () => new ioredis({ path: path(), replyMapping: 'resp3' }),
  'ioredis 6 with numbers as texts': () => new ioredis({ path: path(), stringNumbers: true }),
  'ioredis 5': () => new ioredis5(path()),
  'node-redis 6': () => redis.createClient({ socket: { path: path() } }).on('error', () => {}),
  'node-redis 6 with RESP2': () => redis.createClient({ socket: { path: path() }, RESP: 2 }).on('error', () => {}),
  'node-redis 5': () => redis5.createClient({ socket: { path: path() } }).on('error', () => {}),
};

let queue;
beforeEach(() => {
  queue = new Queue(dq.url, 'q');
});
afterEach(() => queue.close());

for (const [name, connect] of Object.entries(CLIENTS)) {
  describe(name, () => {
    let client;
    let queue;
    beforeEach(() => {
      client = connect();
      queue = new Queue(client, 'q');
    });
    afterEach(() => (typeof client === 'string' ? queue.close() : (client.destroy ?? client.disconnect).call(client)));

    test('a delay and a drain', async () => {
      await queue.add({ n: 1 }, { id: 'a', delay: 3_600_000 });
      const seen = [];
      const worker = new Worker(queue, (job) => seen.push([job.id, job.data, job.due]));
      const { due } = await queue.get('a');
      assert.equal(await worker.drain(), 0);
      await dq.clock.advance({ hours: 1 });
      assert.equal(await worker.drain(), 1);
      assert.deepEqual(seen, [['a', { n: 1 }, due]]);
      assert.equal(await queue.len(), 0);
    });

    test('stats, settings, bytes', async () => {
      await queue.configure({ ttr: 7000, rate: [100, 1000] });
      await queue.add(Buffer.from([0, 255]), { id: 'a', priority: -5, backoff: [1000, 2000] });
      await queue.addMany([{ data: 1, id: 'b', delay: 1000 }, { data: 2 }]);
      const job = await queue.get('a');
      assert.deepEqual([...job.payload], [0, 255]);
      assert.deepEqual(
        [job.state, job.priority, job.ttr, job.backoff, job.token],
        ['ready', -5, 7000, [1000, 2000], null],
      );
      const stats = await queue.stats();
      assert.deepEqual([stats.delayed, stats.ready, stats.totals.added, stats.oldestReady], [1, 2, 3, 0]);
      assert.deepEqual(
        [stats.paused, stats.recurring, stats.groups, stats.blocked, stats.done, stats.doneBytes, stats.bytes > 0],
        [false, 0, 0, 0, 0, 0, true],
      );
      assert.ok(Object.values(stats.totals).every(Number.isInteger), 'totals only');
      assert.deepEqual((await queue.settings()).rate.map(Number), [100, 1000]);
      const [popped, ...rest] = await queue.bpop(1000, { count: 5 });
      assert.equal(popped.id, 'a');
      assert.equal(await queue.ack('a', popped.token), true);
      assert.equal(await queue.ackMany(Object.fromEntries(rest.map(({ id, token }) => [id, token]))), 1);
      assert.equal(await queue.ackMany({ a: popped.token }), 0);
      await queue.cron('0 9 * * *', null, { id: 'c', tz: 'Europe/Berlin', times: 3, group: 'g' });
      const { rule, group } = await queue.get('c');
      assert.deepEqual(
        [rule.cron, rule.tz, rule.times, rule.every, rule.until, rule.runs, group],
        ['0 9 * * *', 'Europe/Berlin', 3, null, null, 0, 'g'],
      );
      assert.deepEqual([(await queue.get('b')).rule, await queue.get('none')], [null, null]);
    });

    test('a worker that is started and stopped', async () => {
      const done = Promise.withResolvers?.() ?? withResolvers();
      const worker = new Worker(queue, () => done.resolve(), { logger: silent });
      worker.start();
      await queue.add('x');
      await done.promise;
      await worker.stop();
      await worker.join();
      assert.equal(await queue.len(), 0);
    });
  });
}

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

test('a wait that is given up', async () => {
  const given = new AbortController();
  setTimeout(() => given.abort(new Error('enough')), 20);
  await assert.rejects(queue.bpop(0, { signal: given.signal }), /enough/);
  await assert.rejects(queue.bpop(0, { signal: given.signal }), /enough/);
  const soon = new AbortController();
  const waits = queue.bpop(0, { signal: soon.signal });
  soon.abort(new Error('while it connects'));
  await assert.rejects(waits, /while it connects/);
});

test('an id of our own that is there already was added by the first sending', async () => {
  const { run } = queue;
  queue.run = async function (calls) {
    await run.call(this, calls); // its answer is lost, and the client sends it again
    return run.call(this, calls);
  };
  const id = await queue.add(1);
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.deepEqual([await queue.add(1, { id: 'mine' }), await queue.add(1, { id: 'mine' })], [null, null]);
  assert.equal(await queue.add(1, { ifExists: 'only-replace' }), null);
  queue.run = run;
  assert.equal(await queue.len(), 2);
  const later = await queue.add(1);
  assert.ok(id.slice(0, 12) <= later.slice(0, 12), 'by time');
});

/** Remembers its calls instead of making them. */
class Recorded extends Queue {
  calls = [];

  async run(calls) {
    this.calls.push(...calls);
    return calls.map(() => null);
  }
}

async function call(method, ...args) {
  const queue = new Recorded('redis://127.0.0.1:1', 'q');
  await queue[method](...args).catch(() => {});
  return queue.calls[0].map((word) => (Buffer.isBuffer(word) ? word.toString() : word));
}

const AT = new Date('2030-01-01T00:00:00Z');

test('recurring jobs are what the contract says', async () => {
  const rule = { id: 'e', until: AT, times: 3, grace: 5000, jitter: 1000, first: AT };
  assert.deepEqual(
    (await call('every', 60_000, { a: 1 }, rule)).join(' '),
    `DQ.ADD q e {"a":1} EVERY 60000 UNTIL ${+AT} TIMES 3 GRACE 5000 JITTER 1000 AT ${+AT} REPLACE`,
  );
  assert.deepEqual(
    await call('cron', '0 9 * * MON-FRI', Buffer.from('x'), { id: 'c', tz: 'Europe/Berlin', attempts: 2 }),
    ['DQ.ADD', 'q', 'c', 'x', 'CRON', '0 9 * * MON-FRI', 'TZ', 'Europe/Berlin', 'ATTEMPTS', 2, 'REPLACE'],
  );
  assert.deepEqual(await call('next', 'c', 3), ['DQ.NEXT', 'q', 'c', 'COUNT', 3]);
});

test('groups, forecasts and limits are what the contract says', async () => {
  assert.deepEqual((await call('add', 'x', { id: 'a', group: 'tenant' })).slice(4), ['GROUP', 'tenant']);
  assert.deepEqual((await call('add', 'x', { ifExists: 'next' }))[4], 'NEXT');
  assert.deepEqual(await call('groups', '0', { match: 't*', count: 5 }), [
    'DQ.GROUPS',
    'q',
    '0',
    'MATCH',
    't*',
    'COUNT',
    5,
  ]);
  assert.deepEqual(await call('len', { group: 'tenant' }), ['DQ.LEN', 'q', 'GROUP', 'tenant']);
  assert.equal(
    (await call('configure', { groupmax: 1, grouprate: [5, 1000], groupfifo: true, backoff: [], maxbytes: 10 })).join(
      ' ',
    ),
    'DQ.CFGSET q BACKOFF 0 MAXBYTES 10 GROUPMAX 1 GROUPRATE 5 1000 GROUPFIFO 1',
  );
  assert.equal(
    (await call('forecast', AT, new Date(+AT + 86_400_000), 24)).join(' '),
    `DQ.FORECAST q FROM ${+AT} TO ${+AT + 86_400_000} BUCKETS 24`,
  );
});

test("ioredis' keyPrefix is refused, as it would not reach the commands", async () => {
  const client = new ioredis({ path: path(), keyPrefix: 'x:' });
  await assert.rejects(new Queue(client, 'q').len(), /keyPrefix/);
  client.disconnect();
});

test('a kind is declared once', async () => {
  const double = kind('double', { attempts: 3, keep: 60_000 });
  const id = await double.add(queue, 4, { priority: 7 });
  const { label, priority, maxAttempts } = await queue.get(id);
  assert.deepEqual([label, priority, maxAttempts], ['double', 7, 3]);
  const said = [];
  const logger = { info() {}, warn: (text) => said.push(text), error() {} };
  const worker = new Worker(queue, [double.handler((job) => job.data * 2)], { logger });
  const odd = ['constructor', 'toString', 'valueOf', '__proto__', 'hasOwnProperty'];
  await queue.addMany([
    ...odd.map((kind) => ({ data: 1, kind, id: kind })),
    double.of(5, { id: 'five' }),
    { data: 1, kind: 'doubles', id: 'slip' },
  ]);
  await worker.drain();
  assert.deepEqual([await double.result(queue, id), await double.wait(queue, 'five', 1000)], [8, 10]);
  assert.deepEqual(said, [
    ...odd.map((kind) => `dq: no handler for kind "${kind}" of job ${kind}`),
    'dq: no handler for kind "doubles" of job slip: did it mean "double"?',
  ]);
  assert.throws(() => kind('double', { attempt: 3 }), /kind 'double' has no option 'attempt': did you mean 'attempts'/);
  assert.throws(() => kind(''), /a kind needs a name/);
});

test('which kind an unknown one is like is looked for once', async () => {
  const { closest } = mistakes;
  const compared = [];
  mistakes.closest = (kind, all) => {
    compared.push(kind);
    return closest(kind, all);
  };
  const said = [];
  const logger = { info() {}, warn: (text) => said.push(text), error() {} };
  const worker = new Worker(queue, [kind('double').handler(() => {})], { logger });
  const kinds = Array.from({ length: 101 }, (_, n) => `${n}`);
  for (const some of [['doubles', 'doubles'], ['x'.repeat(100_000)], kinds, ['doubles']]) {
    await queue.addMany(some.map((kind) => ({ data: 1, kind, id: kind.length > 99 ? 'long' : undefined })));
    await worker.drain();
  }
  mistakes.closest = closest;
  assert.deepEqual(compared, ['doubles', 'x'.repeat(100), ...kinds, 'doubles']);
  assert.equal(said.filter((text) => text.endsWith(': did it mean "double"?')).length, 3);
  assert.ok(said.every((text) => text.length < 250));
  assert.equal((await queue.get('long')).reason, `unknown kind "${'x'.repeat(100)}"`);
});

test('a rate of 0 or null is none', async () => {
  for (const off of [0, null]) {
    await queue.configure({ rate: [100, 1000], grouprate: [5, 1000] });
    await queue.configure({ rate: off, grouprate: off });
    const { rate, grouprate } = await queue.settings();
    assert.deepEqual([rate, grouprate].flat().map(Number), [0, 0, 0, 0]);
    const acme = queue.group('acme');
    await acme.set({ rate: [9, 1000] });
    await acme.set({ rate: off });
    assert.deepEqual((await acme.stats()).rate, [0, 0]);
  }
});

test('shards are one queue', async () => {
  const queue = new Queue(dq.url, 'q', { shards: 5 });
  await queue.addMany(Array.from({ length: 50 }, (_, n) => ({ data: n, id: `j${n}` })));
  assert.equal(await queue.add(1, { id: 'j7' }), null);
  assert.equal(await queue.len(), 50);
  assert.equal((await queue.stats()).ready, 50);
  const ids = [];
  for await (const id of queue.ids()) ids.push(id);
  assert.deepEqual(ids.sort(), Array.from({ length: 50 }, (_, n) => `j${n}`).sort());
  assert.equal(await queue.delete(['j1', 'j2', 'nobody']), 2);
  assert.equal(await new Worker(queue, () => {}).drain(), 48);
});

test('telemetry links attempts to the producer', async () => {
  const [spans, figures] = [new InMemorySpanExporter(), new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)];
  const reader = new PeriodicExportingMetricReader({ exporter: figures, exportIntervalMillis: 1 << 30 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const telemetry = new Telemetry({ tracerProvider, meterProvider });
  const queue = new Queue(dq.url, 'q', { hooks: [telemetry] });
  await queue.add({ n: 1 }, { id: 'a', attempts: 1 });
  let inside;
  const fail = async () => {
    await null;
    inside = trace.getActiveSpan().spanContext().spanId;
    throw new RangeError('no');
  };
  await new Worker(queue, fail, { hooks: [telemetry], logger: silent }).drain();
  const [sent, processed] = spans.getFinishedSpans();
  assert.equal(processed.links[0].context.traceId, sent.spanContext().traceId);
  assert.notEqual(processed.spanContext().traceId, sent.spanContext().traceId);
  assert.equal(processed.parentSpanContext, undefined);
  assert.equal(inside, processed.spanContext().spanId);
  assert.equal(processed.status.message, 'RangeError: no');
  await queue.add(1, { id: 'gone' });
  const lose = (job) => queue.delete(job.id); // which its end finds out
  await new Worker(queue, lose, { hooks: [telemetry], logger: silent }).drain();
  await reader.collect().then(({ resourceMetrics }) => {
    const names = resourceMetrics.scopeMetrics.flatMap(({ metrics }) =>
      metrics.map(({ descriptor }) => descriptor.name),
    );
    assert.deepEqual(names.sort(), [
      'dq.client.lost.messages',
      'messaging.client.consumed.messages',
      'messaging.client.sent.messages',
      'messaging.process.duration',
    ]);
  });
  await meterProvider.shutdown();
});

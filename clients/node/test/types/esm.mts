// That types are what users expect: checked, never run.

import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, createSentinel } from 'redis';
import { type Codec, handler, type Job, Queue, type ReservedJob, Retry, type Stats, Worker } from 'dq-redis';
import { Telemetry } from 'dq-redis/otel';
import { InlineQueue, TestServer, withServer } from 'dq-redis/testing';

interface Order {
  order: number;
}

export const queues = [
  new Queue('redis://localhost', 'q'),
  new Queue(new Redis(), 'q'),
  new Queue(new Cluster([]), 'q', { shards: 12 }),
  new Queue(createClient(), 'q'),
  new Queue(createCluster({ rootNodes: [] }), 'q'),
  new Queue(createSentinel({ name: 'm', sentinelRootNodes: [] }), 'q', { hooks: [new Telemetry()] }),
];

export async function typed(queue: Queue<Order>) {
  const id: string | null = await queue.add({ order: 17 }, { delay: 1000, ifExists: 'replace' });
  // @ts-expect-error data of another shape
  await queue.add({ order: 'x' });
  // @ts-expect-error an instant is a Date
  await queue.add({ order: 1 }, { at: 5 });
  // @ts-expect-error no such option
  await queue.add({ order: 1 }, { dealy: 5 });
  const popped: ReservedJob[] = await queue.pop({ count: 5 });
  const stats: Stats | null = await queue.stats();
  const worker = new Worker(queue, async (job) => {
    const order: number = job.data.order;
    const signal: AbortSignal = job.signal;
    if (signal.aborted || order === 0) throw new Retry(1000, 'busy');
  });
  new Worker(queue, async (jobs) => jobs.map((job) => job.data.order), { batch: 100 });
  new Worker([queue, queue], { weights: [3, 1] }).job<Order>('close', (job) => job.data.order, { attempts: 5 });
  new Worker(queue, [
    handler((job: Job<Order>) => job.data.order, { kind: 'a' }),
    handler((jobs) => jobs.length, { batch: 2 }),
  ]);
  await worker.run({ signals: false });
  await using started = new Worker(queue, () => {});
  started.start();
  return { id, popped, stats, server: await TestServer.start(), withServer, inline: new InlineQueue<Order>(() => {}) };
}

export const codec: Codec<Date> = { encode: (at) => Buffer.from(String(+at)), decode: (raw) => new Date(Number(raw)) };

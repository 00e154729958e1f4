// That types are what users expect: checked, never run.

import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, createSentinel } from 'redis';
import {
  type Around,
  type Codec,
  handler,
  kind,
  type Job,
  type JobResult,
  Queue,
  type ReservedJob,
  Retry,
  type Stats,
  Worker,
} from 'dq-redis';
import { Telemetry } from 'dq-redis/otel';
import { job, run, TestServer, withServer } from 'dq-redis/testing';

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
  return {
    id,
    popped,
    stats,
    server: await TestServer.start(),
    withServer,
    tested: await run<Order>(async () => 1, { order: 1 }),
    one: job<Order>({ order: 1 }),
  };
}

interface Sent {
  at: string;
}

/** A kind, declared once. */
export async function kinds(queue: Queue) {
  const sendReceipt = kind<Order, Sent>('send_receipt', { attempts: 5, keep: 60_000 });
  const id: string = await sendReceipt.add(queue, { order: 17 }, { delay: 60_000 });
  const maybe: string | null = await sendReceipt.add(queue, { order: 17 }, { id: '17' });
  // @ts-expect-error it may have been refused
  const never: string = await sendReceipt.add(queue, { order: 17 }, { id: '17' });
  // @ts-expect-error data of another shape
  await sendReceipt.add(queue, { ordr: 17 });
  // @ts-expect-error the kind is known
  await sendReceipt.add(queue, { order: 17 }, { kind: 'other' });
  // @ts-expect-error no such default
  kind<Order>('other', { dealy: 5 });
  const sent: Sent | null = await sendReceipt.addAndWait(queue, { order: 17 }, { timeout: 1000 });
  const later: Sent | null = await sendReceipt.wait(queue, id, 1000);
  await queue.join([sendReceipt.of({ order: 1 }), sendReceipt.of({ order: 2 }, { priority: 1 })], {
    then: { data: null },
  });
  const worker = new Worker(queue, [
    sendReceipt.handler(async (job) => ({ at: `${job.data.order}` }), { timeout: 1000 }),
    handler((job: Job<string>) => job.data.length, { kind: 'b' }),
  ]);
  // @ts-expect-error a result of another shape
  sendReceipt.handler(async (job) => job.data.order);
  // @ts-expect-error what is not said to hold anything has to be looked at first
  new Worker(queue, (job) => job.data.order);
  // @ts-expect-error nor does a result
  const at: string = (await queue.wait('17'))!.at;
  const fresh: string = await queue.add({ any: 1 });
  return { id, maybe, never, sent, later, worker, at, fresh };
}

/** Results, flows and steps. */
export async function outcomes(queue: Queue<Order>) {
  const total: number | null = await queue.wait<number>('17', 5000, { signal: AbortSignal.timeout(1000) });
  const reply: { ok: boolean } | null = await queue.addAndWait<{ ok: boolean }>(
    { order: 1 },
    { timeout: 1000, keep: 0 },
  );
  const kept: string | null = await queue.result<string>('17');
  const ids: string[] = await queue.chain([{ data: { order: 1 } }, { data: { order: 2 }, priority: 1 }]);
  const given: (string | null)[] = await queue.chain([{ data: { order: 1 }, id: '17' }]);
  // @ts-expect-error a chain says what comes after what
  await queue.chain([{ data: { order: 1 }, after: ['17'] }]);
  await queue.addMany([{ data: { order: 1 }, after: ids, onDead: 'run' }]);
  // @ts-expect-error no such way
  await queue.add({ order: 1 }, { after: ids, onDead: 'retry' });
  const wasSet: boolean | null = await queue.signal('17', 'signed', { by: 'Ada' });
  const wasThere: boolean = await queue.cancel('17');
  const timed: Around<Job<Order>> = async (job, next) => (job.isLastAttempt ? null : next());
  const worker = new Worker(
    queue,
    async (job) => {
      const charge: { id: string } = await job.step('charge', async () => ({ id: `ch_${job.data.order}` }));
      await job.sleep('cool off', 1000);
      const signed = await job.wait<{ by: string }>('signed', 1000);
      const parts: JobResult[] = await job.spawn([{ data: 1, kind: 'part' }], { name: 'parts', onDead: 'die' });
      const others = await job.waitFor(ids);
      // @ts-expect-error a fraction is a number
      job.progress('half');
      job.progress(0.5, signed?.by);
      const moved: boolean = await job.once('move', 'return 1', ['a'], [1, 'x']);
      return [charge.id, moved, ...parts, ...others].length;
    },
    { timeout: 1000, retryOn: [TypeError], giveUpOn: [RangeError], around: [timed], health: '127.0.0.1:8081' },
  );
  // @ts-expect-error classes, not names
  new Worker(queue, () => {}, { retryOn: ['TypeError'] });
  return { total, reply, kept, wasSet, wasThere, isHealthy: worker.isHealthy };
}

export const codec: Codec<Date> = { encode: (at) => Buffer.from(String(+at)), decode: (raw) => new Date(Number(raw)) };

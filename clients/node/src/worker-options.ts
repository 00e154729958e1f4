// Options of a worker, and what is said about mistakes in them.

import {
  type BatchProcessor,
  count,
  Handler,
  HANDLER,
  type HandlerOptions,
  positiveMs,
  type Processor,
} from './handler';
import type { Around, Hooks, Logger } from './hooks';
import { consoleLogger } from './hooks';
import * as limits from './limits';
import { takes } from './mistakes';
import type { Queue } from './queue';
import { shown } from './format';
import { type Duration, toMs } from './times';
import { LONGEST_TIMER_MS } from './waiting';

export interface WorkerOptions extends HandlerOptions {
  /** How many handlers run at a time; 10 by default. */
  concurrency?: number;
  /** How many more jobs may be in hand, so that short handlers need not wait for the network; 0 by default. */
  prefetch?: number;
  /**
   * How long a job stays with a worker that crashed, if neither the job nor its queue has a TTR, nor its handler a lease; 60 s
   * by default.
   */
  lease?: Duration;
  /** With weights, each queue comes first in its share of the fetches; without, the order is strict. */
  weights?: readonly number[] | null;
  /** How long handlers may go on when the worker stops; 25 s by default. */
  drain?: Duration;
  /** How long one fetch waits at the server; then it is sent again. 5 s by default. */
  wait?: Duration;
  /** Middleware around the handlers, the first one outermost. */
  around?: readonly Around[];
  /** Where to ask whether it is healthy: `'127.0.0.1:8081'`, by HTTP, or the path of a file that is touched. */
  health?: string;
  hooks?: readonly Hooks[];
  logger?: Logger;
}

/** A processor, or one or several handlers. */
export type Processors<T> = Processor<T> | BatchProcessor<T> | Handler<any> | readonly Handler<any>[];

const WORKER: Record<keyof WorkerOptions, 1> = {
  concurrency: 1,
  ...HANDLER,
  prefetch: 1,
  weights: 1,
  drain: 1,
  wait: 1,
  around: 1,
  health: 1,
  hooks: 1,
  logger: 1,
};

/** The options as the worker uses them. */
export interface WorkerSettings {
  concurrency: number;
  prefetch: number;
  drainMs: number;
  waitMs: number;
  weights: readonly number[] | null;
  leaseMs: number | null;
  around: readonly Around[];
  health: string | null;
  hooks: readonly Hooks[];
  logger: Logger;
}

export function settingsOf(given: WorkerOptions, queues: number): WorkerSettings {
  const options = takes('a worker', given, WORKER);
  const weights = options.weights ?? null;
  if (weights && weights.length !== queues) throw new TypeError('weights: one for each queue');
  return {
    concurrency: count(options.concurrency ?? 10, 'concurrency', 1),
    prefetch: count(options.prefetch ?? 0, 'prefetch'),
    drainMs: Math.min(toMs(options.drain ?? limits.DRAIN_MS, 'drain'), LONGEST_TIMER_MS),
    waitMs: Math.max(limits.NO_WAIT_MS, toMs(options.wait ?? limits.WAIT_MS, 'wait')),
    weights,
    leaseMs: positiveMs(options.lease, 'lease', 'it is renewed while a handler runs'),
    around: functions(options.around ?? []),
    health: options.health ?? null,
    hooks: [...(options.hooks ?? [])],
    logger: options.logger ?? consoleLogger,
  };
}

function functions(around: readonly Around[]): readonly Around[] {
  if (Array.isArray(around) && around.every((each) => typeof each === 'function')) return [...around];
  throw new TypeError(`around must be an array of functions (job, next) => next(), not ${shown(around)}`);
}

/** The handlers. A worker's options include those of its only handler. */
export function handlersOf<T>(given: Processors<T>, options: WorkerOptions): readonly Handler<any>[] {
  if (isHandlers(given)) return [given].flat() as Handler<any>[];
  const { kind, attempts, backoff, batch, fill, timeout, retryOn, giveUpOn } = options;
  // Without a kind, the worker's lease is that of jobs that have no other lease.
  const lease = kind === undefined || kind === null ? undefined : options.lease;
  const terms = { kind, attempts, backoff, batch, fill, lease, timeout, retryOn, giveUpOn };
  return [new Handler(given as Processor<T>, terms)];
}

export const jobs = (count: number) => (count === 1 ? '1 job' : `${count} jobs`);

export function checkQueue(queue: unknown): void {
  if (typeof (queue as Queue | undefined)?.driver === 'function') return;
  const name = typeof queue === 'string' ? queue : 'orders';
  throw new TypeError(
    `a worker needs a Queue, not ${shown(queue)}: new Worker(new Queue('redis://localhost', '${name}'), ...)`,
  );
}

export function isHandlers(given: unknown): given is Handler<any> | readonly Handler<any>[] {
  return given instanceof Handler || Array.isArray(given);
}

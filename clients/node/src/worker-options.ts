// What a worker is made of, and what is said of mistakes there.

import { type BatchProcessor, Handler, type HandlerOptions, type Processor } from './handler';
import type { Hooks, Logger } from './hooks';
import type { Queue } from './queue';
import { shown } from './shown';
import type { Duration } from './times';

export interface WorkerOptions extends HandlerOptions {
  /** How many handlers run at a time; 10 by default. */
  concurrency?: number;
  /** How many jobs more may be in hand, so that short handlers need not wait for the network; 0 by default. */
  prefetch?: number;
  /**
   * For how long a job stays with a worker that crashed, where neither the job nor its queue has a TTR, nor its handler a
   * lease; 60 s by default.
   */
  lease?: Duration;
  /** Of several queues each comes first in its share of the fetches; without weights the order is strict. */
  weights?: readonly number[] | null;
  /** How long handlers may go on when the worker stops; 25 s by default. */
  drain?: Duration;
  /** How long one fetch waits at the server; then it is sent again. 5 s by default. */
  wait?: Duration;
  hooks?: readonly Hooks[];
  logger?: Logger;
}

/** A processor, a handler or several. */
export type Processors<T> = Processor<T> | BatchProcessor<T> | Handler<T> | readonly Handler<T>[];

export const WORKER: Record<keyof WorkerOptions, 1> = {
  concurrency: 1,
  attempts: 1,
  backoff: 1,
  lease: 1,
  batch: 1,
  kind: 1,
  prefetch: 1,
  weights: 1,
  drain: 1,
  wait: 1,
  hooks: 1,
  logger: 1,
};

export const jobs = (count: number) => (count === 1 ? '1 job' : `${count} jobs`);

export function checkQueue(queue: unknown): void {
  if (typeof (queue as Queue | undefined)?.driver === 'function') return;
  const name = typeof queue === 'string' ? queue : 'orders';
  throw new TypeError(
    `a worker needs a Queue, not ${shown(queue)}: new Worker(new Queue('redis://localhost', '${name}'), ...)`,
  );
}

export function isHandlers(given: unknown): given is Handler | readonly Handler[] {
  return given instanceof Handler || Array.isArray(given);
}

// Handlers: a function, and how its jobs are treated.

import type { Job } from './job';
import { shown, steps, takes } from './mistakes';
import { type Duration, exponentialMs, toMs } from './times';

export const DEFAULT_LEASE_MS = 30_000;
const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 3_600_000;

/** What does the work. When its promise fulfils, the job is done. */
export type Processor<T = any> = (job: Job<T>) => unknown;

/** A processor of up to `batch` jobs at a time. */
export type BatchProcessor<T = any> = (jobs: Job<T>[]) => unknown;

export interface HandlerOptions {
  /** The kind of jobs that it takes; without one, all that no other handler of the worker takes. */
  kind?: string | null;
  /** After so many failed deliveries the job is dead (0: no limit). The job's own limit goes first. */
  attempts?: number;
  /**
   * The waits after the 1st, 2nd, ... failure; the last one repeats. A ladder that the job has goes first. Without either:
   * 1 s, doubling to 1 hour, with jitter.
   */
  backoff?: readonly Duration[];
  /**
   * For how long a job stays with a worker that crashed (30 s). Slow handlers need no longer one: the worker renews it.
   */
  lease?: Duration;
  /** The processor takes an array of up to so many jobs. */
  batch?: number;
}

/** What `handler` makes. */
export class Handler<T = any> {
  readonly kind: string | null;
  readonly attempts: number;
  readonly backoffMs: readonly number[];
  readonly leaseMs: number;
  readonly batch: number;

  constructor(
    readonly processor: Processor<T> | BatchProcessor<T>,
    options: HandlerOptions = {},
  ) {
    if (typeof processor !== 'function') throw new TypeError(`a handler is a function, not ${shown(processor)}`);
    takes('a handler', options, { kind: 1, attempts: 1, backoff: 1, lease: 1, batch: 1 });
    this.kind = options.kind ?? null;
    this.attempts = count(options.attempts ?? 0, 'attempts');
    this.batch = count(options.batch ?? 0, 'batch');
    this.backoffMs = steps(options.backoff ?? []).map((step) => toMs(step, 'a step of backoff'));
    this.leaseMs = leaseMs(options.lease ?? DEFAULT_LEASE_MS);
  }

  /** How many jobs it takes at a time. */
  get size(): number {
    return this.batch || 1;
  }

  /** The wait after a failed attempt: its ladder's step, or exponential with jitter. */
  delayMs(attempt: number): number {
    const step = this.backoffMs[Math.min(attempt, this.backoffMs.length) - 1];
    return step ?? exponentialMs(attempt, FIRST_DELAY_MS, LONGEST_DELAY_MS);
  }

  /** Calls the processor. */
  call(jobs: Job<T>[]): unknown {
    return this.batch ? (this.processor as BatchProcessor<T>)(jobs) : (this.processor as Processor<T>)(jobs[0]!);
  }
}

/** A processor of many jobs at a time, with its options. */
export function handler<T = any>(processor: BatchProcessor<T>, options: HandlerOptions & { batch: number }): Handler<T>;
/** A processor with its options, where a worker has several. */
export function handler<T = any>(processor: Processor<T>, options?: HandlerOptions): Handler<T>;
export function handler<T = any>(processor: Processor<T> | BatchProcessor<T>, options?: HandlerOptions): Handler<T> {
  return new Handler(processor, options);
}

export function leaseMs(lease: Duration): number {
  const ms = toMs(lease, 'lease');
  if (ms < 1) throw new RangeError('lease is 1 ms or more: a handler that is slow needs no other, it is renewed');
  return ms;
}

export function count(value: number, name: string, least = 0): number {
  if (Number.isInteger(value) && value >= least) return value;
  throw new RangeError(`${name} is a whole number, ${least} or more, not ${shown(value)}`);
}

// Handlers: functions, how their jobs are treated, and which one gets a job.

import { ENVELOPE_VERSION } from './codec';
import { ConfigurationError } from './errors';
import type { Delivery, Job } from './job';
import { steps, takes } from './mistakes';
import { shown } from './shown';
import { type Duration, exponentialMs, toMs } from './times';

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
   * For how long a job stays with a worker that crashed, whatever TTR the job or its queue has. Slow handlers need no
   * longer one: the worker renews it.
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
  /** Null where nothing was said. */
  readonly leaseMs: number | null;
  readonly batch: number;

  constructor(
    readonly processor: Processor<T> | BatchProcessor<T>,
    options: HandlerOptions = {},
  ) {
    if (typeof processor !== 'function') throw new TypeError(`a handler must be a function, not ${shown(processor)}`);
    takes('a handler', options, { kind: 1, attempts: 1, backoff: 1, lease: 1, batch: 1 });
    this.kind = options.kind ?? null;
    this.attempts = count(options.attempts ?? 0, 'attempts');
    this.batch = count(options.batch ?? 0, 'batch');
    this.backoffMs = steps(options.backoff ?? []).map((step) => toMs(step, 'a step of backoff'));
    this.leaseMs = leaseMs(options.lease);
  }

  /** How many jobs it takes at a time. */
  get size(): number {
    return this.batch || 1;
  }

  /** The wait after a failed attempt: its ladder's step, or exponential with jitter. */
  delayMs(attempt: number): number {
    const step = this.backoffMs[Math.min(attempt, this.backoffMs.length) - 1];
    return step ?? defaultDelayMs(attempt);
  }

  /** Calls the processor. */
  call(jobs: Job<T>[]): unknown {
    return this.batch ? (this.processor as BatchProcessor<T>)(jobs) : (this.processor as Processor<T>)(jobs[0]!);
  }
}

export const defaultDelayMs = (attempt: number) => exponentialMs(attempt, FIRST_DELAY_MS, LONGEST_DELAY_MS);

/** A processor of many jobs at a time, with its options. */
export function handler<T = any>(processor: BatchProcessor<T>, options: HandlerOptions & { batch: number }): Handler<T>;
/** A processor with its options, where a worker has several. */
export function handler<T = any>(processor: Processor<T>, options?: HandlerOptions): Handler<T>;
export function handler<T = any>(processor: Processor<T> | BatchProcessor<T>, options?: HandlerOptions): Handler<T> {
  return new Handler(processor, options);
}

/** Null where nothing is said. */
export function leaseMs(lease: Duration | undefined): number | null {
  if (lease === undefined) return null;
  const ms = toMs(lease, 'lease');
  if (ms < 1) throw new RangeError('lease must be 1 ms or more: it is renewed while a handler runs');
  return ms;
}

export function count(value: number, name: string, least = 0): number {
  if (Number.isInteger(value) && value >= least) return value;
  throw new RangeError(`${name} must be a whole number, ${least} or more, not ${shown(value)}`);
}

/** The handlers of a worker, by kind. */
export class Handlers {
  fallback: Handler | null = null;
  readonly kinds = new Map<string, Handler>();

  constructor(handlers: Iterable<Handler> = []) {
    for (const handler of handlers) this.add(handler);
  }

  add(handler: Handler): void {
    if (handler.kind !== null) {
      if (this.kinds.has(handler.kind)) throw new ConfigurationError(`two handlers for jobs of kind ${handler.kind}`);
      this.kinds.set(handler.kind, handler);
    } else if (this.fallback) {
      throw new ConfigurationError('two handlers without a kind: name the kind of all but one');
    } else {
      this.fallback = handler;
    }
  }

  all(): Handler[] {
    return [...this.kinds.values(), ...(this.fallback ? [this.fallback] : [])];
  }

  /** Null where no handler takes it. */
  choose({ envelope }: Delivery): Handler | null {
    if (this.kinds.size === 0 || !envelope) return this.fallback;
    if (envelope.version !== ENVELOPE_VERSION) return null;
    return this.kinds.get(envelope.kind ?? '') ?? this.fallback;
  }

  /** How many jobs a free handler can take, whichever kind they are of. */
  get room(): number {
    return Math.min(...this.all().map((handler) => handler.size));
  }

  /** What all of them say; null where one says nothing or another thing. */
  get leaseMs(): number | null {
    const [first = null, ...others] = this.all().map((handler) => handler.leaseMs);
    return others.every((other) => other === first) ? first : null;
  }
}

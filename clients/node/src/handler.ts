// Handlers: functions, how their jobs are treated, and which one gets a job.

import { ENVELOPE_VERSION } from './codec';
import { ConfigurationError } from './errors';
import type { Delivery } from './delivery';
import type { Job } from './job';
import { steps, takes } from './mistakes';
import { shown } from './shown';
import { type Duration, exponentialMs, toMs } from './times';

const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 3_600_000;

/** What does the work. When its promise fulfils, the job is done, and what it returns is the job's result. */
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
  /** The handler may take so long; then it is told by `job.signal`, and the job fails. By default it may run for ever. */
  timeout?: Duration;
  /** Of these errors the job is retried, and of all others it is dead. */
  retryOn?: readonly ErrorType[];
  /** Of these errors the job is dead, whatever attempts it has left. */
  giveUpOn?: readonly ErrorType[];
}

/** A class of errors. */
export type ErrorType = abstract new (...args: any[]) => unknown;

/** The names of a handler's options. */
export const HANDLER: Record<keyof HandlerOptions, 1> = {
  kind: 1,
  attempts: 1,
  backoff: 1,
  lease: 1,
  batch: 1,
  timeout: 1,
  retryOn: 1,
  giveUpOn: 1,
};

/** What `handler` makes. */
export class Handler<T = any> {
  readonly kind: string | null;
  readonly attempts: number;
  readonly backoffMs: readonly number[];
  /** Null where nothing was said. */
  readonly leaseMs: number | null;
  readonly batch: number;
  /** Null where there is none. */
  readonly timeoutMs: number | null;
  private readonly retryOn: readonly ErrorType[] | null;
  private readonly giveUpOn: readonly ErrorType[];

  constructor(
    readonly processor: Processor<T> | BatchProcessor<T>,
    options: HandlerOptions = {},
  ) {
    if (typeof processor !== 'function') throw new TypeError(`a handler must be a function, not ${shown(processor)}`);
    takes('a handler', options, HANDLER);
    this.kind = options.kind ?? null;
    this.attempts = count(options.attempts ?? 0, 'attempts');
    this.batch = count(options.batch ?? 0, 'batch');
    this.backoffMs = steps(options.backoff ?? []).map((step) => toMs(step, 'a step of backoff'));
    this.leaseMs = positiveMs(options.lease, 'lease', 'it is renewed while a handler runs');
    this.timeoutMs = positiveMs(options.timeout, 'timeout', 'without one a handler may run for ever');
    this.retryOn = options.retryOn === undefined ? null : types(options.retryOn, 'retryOn');
    this.giveUpOn = types(options.giveUpOn ?? [], 'giveUpOn');
  }

  /** Whether the job is dead of that error. */
  isFinal(error: unknown): boolean {
    const isOf = (type: ErrorType) => error instanceof type;
    return this.giveUpOn.some(isOf) || (this.retryOn !== null && !this.retryOn.some(isOf));
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
export function positiveMs(given: Duration | undefined, name: string, why: string): number | null {
  if (given === undefined || given === null) return null;
  const ms = toMs(given, name);
  if (ms < 1) throw new RangeError(`${name} must be 1 ms or more: ${why}`);
  return ms;
}

function types(given: readonly ErrorType[], name: string): readonly ErrorType[] {
  if (Array.isArray(given) && given.every((type) => typeof type === 'function')) return [...given];
  throw new TypeError(`${name} must be an array of classes of errors, such as [TypeError], not ${shown(given)}`);
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

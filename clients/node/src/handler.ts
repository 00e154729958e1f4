// Handlers: functions, the terms on which they get jobs, and which handler gets a job.

import { ENVELOPE_VERSION } from './codec';
import { ConfigurationError } from './errors';
import type { Delivery } from './delivery';
import type { Job } from './job';
import { steps, takes } from './mistakes';
import { shown } from './format';
import { between, type Duration, toMs } from './times';

/** Does the work. When its promise fulfils, the job is done, and the value is the job's result. */
export type Processor<T = unknown> = (job: Job<T>) => unknown;

/** A processor of up to `batch` jobs at a time. */
export type BatchProcessor<T = unknown> = (jobs: Job<T>[]) => unknown;

export interface HandlerOptions {
  /** The kind of jobs that it takes; without one, all jobs that no other handler of the worker takes. */
  kind?: string | null;
  /** The job is dead after this many deliveries (0: no limit). The least of this, the job's own limit and its queue's counts. */
  attempts?: number;
  /**
   * The waits after the 1st, 2nd, ... failure; the last one repeats. The job's own backoff takes precedence. Without either,
   * the server's `default-backoff` holds.
   */
  backoff?: readonly Duration[];
  /**
   * How long a job stays with a worker that crashed, whatever TTR the job or its queue has. Slow handlers need no longer
   * lease: the worker renews it.
   */
  lease?: Duration;
  /** The processor takes an array of up to this many jobs. */
  batch?: number;
  /**
   * Waits until so many jobs are ready, or so long since the first was, as `[50, 2000]`. All handlers of the worker must have
   * a `batch`; of several the least number and the shortest wait hold.
   */
  fill?: readonly [jobs: number, wait: Duration];
  /** How long the handler may take: then `job.signal` aborts, and the job fails. By default there is no limit. */
  timeout?: Duration;
  /** Only errors of these classes are tried again; of any other error the job is dead. */
  retryOn?: readonly ErrorType[];
  /** Errors of these classes make the job dead, whatever attempts it has left. */
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
  fill: 1,
  timeout: 1,
  retryOn: 1,
  giveUpOn: 1,
};

/** What `handler` makes of a processor. */
export class Handler<T = unknown> {
  readonly kind: string | null;
  readonly attempts: number;
  readonly backoffMs: readonly number[];
  /** Null if not given. */
  readonly leaseMs: number | null;
  readonly batch: number;
  /** So many jobs, and so many milliseconds. */
  readonly fill: readonly [number, number] | null;
  /** Null: no timeout. */
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
    this.fill = filling(options.fill, this.batch);
    this.backoffMs = steps(options.backoff ?? []).map((step) => toMs(step, 'a step of backoff'));
    this.leaseMs = positiveMs(options.lease, 'lease', 'it is renewed while a handler runs');
    this.timeoutMs = positiveMs(options.timeout, 'timeout', 'without one a handler may run for ever');
    this.retryOn = options.retryOn === undefined ? null : types(options.retryOn, 'retryOn');
    this.giveUpOn = types(options.giveUpOn ?? [], 'giveUpOn');
  }

  /** Whether this error makes the job dead. */
  isFinal(error: unknown): boolean {
    const isOf = (type: ErrorType) => error instanceof type;
    return this.giveUpOn.some(isOf) || (this.retryOn !== null && !this.retryOn.some(isOf));
  }

  /** How many jobs it takes at a time. */
  get size(): number {
    return this.batch || 1;
  }

  /** The step of its backoff after a failed attempt; null if it has none. */
  delayMs(attempt: number): number | null {
    return this.backoffMs[Math.min(attempt, this.backoffMs.length) - 1] ?? null;
  }

  /** Calls the processor. */
  call(jobs: readonly Job<T>[]): unknown {
    return this.batch ? (this.processor as BatchProcessor<T>)([...jobs]) : (this.processor as Processor<T>)(jobs[0]!);
  }
}

/** Makes a handler of a processor of many jobs at a time, with options. */
export function handler<T = unknown>(
  processor: BatchProcessor<T>,
  options: HandlerOptions & { batch: number },
): Handler<T>;
/** Makes a handler of a processor, with options, for a worker that has several. */
export function handler<T = unknown>(processor: Processor<T>, options?: HandlerOptions): Handler<T>;
export function handler<T = unknown>(
  processor: Processor<T> | BatchProcessor<T>,
  options?: HandlerOptions,
): Handler<T> {
  return new Handler(processor, options);
}

/** The duration in milliseconds; null if not given. */
export function positiveMs(given: Duration | undefined, name: string, why: string): number | null {
  if (given === undefined || given === null) return null;
  const ms = toMs(given, name);
  if (ms < 1) throw new RangeError(`${name} must be 1 ms or more: ${why}`);
  return ms;
}

function filling(given: HandlerOptions['fill'], batch: number): readonly [number, number] | null {
  if (given === undefined || given === null) return null;
  if (batch < 2) throw new RangeError('fill needs a batch of 2 or more, such as { batch: 100, fill: [50, 2000] }');
  if (!Array.isArray(given) || given.length !== 2) {
    throw new TypeError(`fill must be a number of jobs and a wait, such as [50, 2000], not ${shown(given)}`);
  }
  return [between('fill', count(given[0], 'fill'), 2, batch, ' jobs'), toMs(given[1], 'the wait of fill', 1)];
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
  fallback: Handler<any> | null = null;
  readonly kinds = new Map<string, Handler<any>>();
  /** How many jobs a free handler can take, whatever their kind. */
  room = Infinity;

  constructor(handlers: Iterable<Handler<any>> = []) {
    for (const handler of handlers) this.add(handler);
  }

  add(handler: Handler<any>): void {
    if (handler.kind !== null) {
      if (this.kinds.has(handler.kind)) throw new ConfigurationError(`two handlers for jobs of kind ${handler.kind}`);
      this.kinds.set(handler.kind, handler);
    } else if (this.fallback) {
      throw new ConfigurationError('two handlers without a kind: name the kind of all but one');
    } else {
      this.fallback = handler;
    }
    this.room = Math.min(this.room, handler.size);
  }

  all(): Handler<any>[] {
    return [...this.kinds.values(), ...(this.fallback ? [this.fallback] : [])];
  }

  /** The job's handler; null if no handler takes it. */
  choose({ envelope }: Delivery): Handler<any> | null {
    if (this.kinds.size === 0 || !envelope) return this.fallback;
    if (envelope.version !== ENVELOPE_VERSION) return null;
    return this.kinds.get(envelope.kind ?? '') ?? this.fallback;
  }

  /** For how many jobs a fetch waits, and for how many ms. */
  get fill(): readonly [number, number] | null {
    const all = this.all();
    const fills = all.map(({ fill }) => fill).filter((fill) => fill !== null);
    if (fills.length === 0) return null;
    if (all.some(({ batch }) => batch === 0)) {
      throw new ConfigurationError(
        'fill needs handlers that all have a batch: another one of this worker takes single jobs',
      );
    }
    return [Math.min(...fills.map(([jobs]) => jobs)), Math.min(...fills.map(([, ms]) => ms))];
  }

  /** The lease that all handlers want; null if they differ, or want none. */
  get leaseMs(): number | null {
    const [first = null, ...others] = this.all().map((handler) => handler.leaseMs);
    return others.every((other) => other === first) ? first : null;
  }
}

// One job without a server: made for a unit test, or run by its handler until it ends.

import { type Codec, decodedValue, encoded, jsonCodec, writeEnvelope } from '../codec';
import { Delivery, type Desk, type End, type Row, type Suspension, WAITING } from '../delivery';
import { DqError } from '../errors';
import { verdict } from '../guard';
import { Handler, type Processor } from '../handler';
import { type Job, jobOf } from '../job';
import { DEFAULT_TTR_MS } from '../limits';
import { steps as ladder, takes } from '../mistakes';
import { hush, valueOf } from '../quiet';
import { toBytes } from '../text';
import { type Duration, toMs } from '../times';
import type { Command } from '../wire';
import type { Worker } from '../worker';

export interface TestJobOptions {
  id?: string;
  kind?: string;
  headers?: Record<string, string>;
  attempt?: number;
  /** How often the job may be delivered; 0: without limit. */
  attempts?: number;
  /** The job's own ladder. */
  backoff?: readonly Duration[];
  /** How the jobs ended that it is after: the result, or the reason. */
  results?: readonly (readonly [id: string, outcome: string, value: unknown])[];
  /** The signals that have come, by name. */
  signals?: Readonly<Record<string, unknown>>;
  codec?: Codec;
  /** The name of its queue. */
  queue?: string;
}

const OPTIONS: Record<keyof TestJobOptions, 1> = {
  id: 1,
  kind: 1,
  headers: 1,
  attempt: 1,
  attempts: 1,
  backoff: 1,
  results: 1,
  signals: 1,
  codec: 1,
  queue: 1,
};

/** What became of a job. */
export interface Run {
  /** `blocked`: it waits for a signal. `delayed`: it was tried 100 times. */
  state: 'done' | 'dead' | 'blocked' | 'delayed';
  /** What the handler returned, as whoever waits for it gets it. */
  result: unknown;
  /** Why it failed last. */
  reason: string | null;
  attempts: number;
  /** How long it waited each time: after failures (null: as the server says), in sleeps, for signals that did not come. */
  waits: (Duration | null)[];
  /** The job of each delivery. */
  jobs: Job[];
}

const MOST = 100;
const NO_BYTES = Buffer.alloc(0);

class Inline implements Desk {
  readonly steps = new Map<string, Buffer>();
  readonly signals: ReadonlyMap<string, Buffer>;
  readonly codec: Codec;
  lacking: DqError | null = null;
  attempt: number;
  private readonly backoffMs: readonly number[];

  constructor(
    private readonly data: unknown,
    private readonly options: TestJobOptions,
  ) {
    takes('testing.job', options, OPTIONS);
    this.codec = options.codec ?? jsonCodec;
    this.attempt = options.attempt ?? 1;
    this.backoffMs = ladder(options.backoff ?? []).map((step) => toMs(step, 'a step of backoff'));
    const signals = Object.entries(options.signals ?? {});
    this.signals = new Map(signals.map(([name, value]) => [name, encoded(this.codec, value, `the signal '${name}'`)]));
  }

  delivered(kind: string | null): Delivery {
    const { id = '1', attempts = 0, queue = 'test', headers, results = [] } = this.options;
    const isEnvelope = kind !== null || Object.keys(headers ?? {}).length > 0;
    const payload = isEnvelope ? writeEnvelope(this.data, kind ?? undefined, headers) : this.codec.encode(this.data);
    const now = Date.now();
    const rows = results.map(([other, outcome, value]) => {
      const bytes = outcome === 'done' ? encoded(this.codec, value, 'a result') : Buffer.from(String(value));
      return [toBytes(other), Buffer.from(outcome), bytes];
    });
    const step = this.backoffMs[Math.min(this.attempt, this.backoffMs.length) - 1] ?? null;
    const terms = [DEFAULT_TTR_MS, attempts, step];
    const times = [this.attempt, now + DEFAULT_TTR_MS, now] as const;
    const row: Row = [toBytes(id), toBytes(payload, 'a payload'), Buffer.from('1'), ...times, rows, [], terms];
    return new Delivery(toBytes(queue), row, this.steps, this.codec, this);
  }

  lack(what: string): never {
    this.lacking = new DqError(`${what} needs a server: see TestServer`);
    throw this.lacking;
  }

  /** What the handler of a delivery is to wait for; null if nothing ends its wait. */
  suspended(suspension: Suspension): Duration | null {
    if (suspension.for === 'jobs') return this.lack('job.waitFor');
    const { name, ms } = suspension;
    const signal = suspension.for === 'sleep' ? NO_BYTES : this.signals.get(name);
    if (signal) this.steps.set(name, signal);
    else if ('marker' in suspension) this.steps.set(suspension.marker, Buffer.from(WAITING));
    return suspension.for === 'sleep' ? ms : signal ? 0 : ms;
  }

  // --- Requests of handlers

  async ask(delivery: Delivery, commands: readonly Command[]): Promise<unknown[]> {
    return commands.map(([command, , , , name, value]) => {
      if (command === 'DQ.STEP') delivery.steps.set(String(name), Buffer.from(value as Buffer));
      else if (command !== 'DQ.TOUCH') this.lack('job.once'); // a cost: here are no rates
      return 1;
    });
  }

  lose(): void {}

  report(): void {}

  idLike(_: Delivery, id: string): Buffer {
    return toBytes(id);
  }

  async adding(): Promise<Command[]> {
    return this.lack('job.spawn');
  }
}

/**
 * A job for the unit test of a handler: `await close(job({ order: 17 }, { attempt: 3 }))`. `step` runs what it is given, `sleep`
 * and `wait` end the attempt as always, and what needs a server says so.
 */
export function job<T = unknown>(data?: T, options: TestJobOptions = {}): Job<T> {
  const inline = new Inline(data, options);
  for (const [name, value] of inline.signals) inline.steps.set(name, value);
  return jobOf(inline.delivered(options.kind ?? null)) as Job<T>;
}

/**
 * Runs a handler, or that of a worker, on a job until that is done, dead, or waits for a signal, without a server.
 *
 * After a failure it is tried again, as its ladder and limits say, but at once. So is a sleep over, and a wait for a signal, if
 * that is among `signals` or the wait has a timeout. A handler's own `timeout` does not hold.
 */
export async function run<T = unknown>(
  given: Processor<T> | Handler<T> | Worker<T>,
  data?: T,
  options: TestJobOptions = {},
): Promise<Run> {
  const inline = new Inline(data, options);
  const ended: Run = { state: 'delayed', result: null, reason: null, attempts: 0, waits: [], jobs: [] };
  const own = typeof given === 'function' ? new Handler<T>(given) : given instanceof Handler ? given : null;
  const kind = options.kind ?? own?.kind ?? null;
  while (ended.jobs.length < MOST) {
    const delivery = inline.delivered(kind);
    const handler = own ?? (given as Worker<T>).chosen(delivery);
    if (!handler || (handler.kind !== null && handler.kind !== kind)) {
      throw new DqError(`there is no handler for jobs of kind ${kind}`);
    }
    delivery.handlerAttempts = handler.attempts;
    ended.jobs.push(jobOf(delivery));
    const found = verdict(delivery, [delivery], await called(handler, delivery), handler);
    if (inline.lacking) throw inline.lacking;
    ended.attempts = inline.attempt - Number(found.how === 'suspend' || found.how === 'snooze');
    if ('reason' in found) ended.reason = found.reason;
    if (found.how === 'done') {
      return { ...ended, state: 'done', reason: null, result: decodedValue(inline.codec, found.result, 'the result') };
    }
    let waitMs: number | null = null;
    if (found.how === 'suspend') {
      waitMs = inline.suspended(found.suspension);
      if (waitMs === null) return { ...ended, state: 'blocked' };
    } else if (found.how === 'snooze') {
      waitMs = found.waitMs;
    } else if (found.how === 'fail') {
      if (delivery.limit > 0 && delivery.limit <= inline.attempt) return { ...ended, state: 'dead' };
      waitMs = found.waitMs ?? delivery.waitMs ?? handler.delayMs(inline.attempt);
      inline.attempt++;
    } else {
      return { ...ended, state: 'dead' };
    }
    if (waitMs !== 0) ended.waits.push(waitMs);
  }
  return ended;
}

async function called(handler: Handler<any>, delivery: Delivery): Promise<End> {
  try {
    return { value: await valueOf(handler.call([jobOf(delivery)])) };
  } catch (error) {
    hush(error);
    return { error };
  }
}

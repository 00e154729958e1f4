// A job in hand, and how a handler sees it.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Codec, decoded, type Envelope, readEnvelope } from './codec';
import { Cancelled, type PayloadError } from './errors';
import { Quiet, quietSignal } from './quiet';
import { toText } from './text';
import { type Duration, fromMs, maybeFromMs, toMs } from './times';
import { LONGEST_TIMER_MS } from './waiting';

/** Why a handler is told to end. */
export type Why = 'lost' | 'stopping';

/** What was thrown, which may be undefined. */
export interface Thrown {
  error: unknown;
}

/** One delivery of a job, as the worker knows it: nothing that a handler does to its `Job` changes anything here. */
export class Delivery {
  readonly id: Buffer;
  readonly payload: Buffer;
  readonly token: Buffer;
  readonly attempt: number;
  readonly deadlineMs: number;
  readonly dueMs: number | null;
  /** The job's own lease; deliveries allowed, 0 = without limit; its ladder's wait after a failure of this delivery. */
  readonly ttrMs: number;
  readonly maxAttempts: number;
  readonly waitMs: number | null;
  /** The lease of this delivery, and when it ends, by this process's clock. */
  leaseMs: number;
  endsAt = Infinity;
  /** It came while the event loop stood still, so its lease may have ended. */
  isDoubtful = false;
  /** What `job.fail` was given. */
  failure: Thrown | null = null;
  /** Its payload cannot be decoded. */
  unreadable: PayloadError | null = null;
  private why: Why | null = null;
  private controller: AbortController | null = null;
  private view: Job | null = null;
  private envelopeRead: Envelope | null | undefined;

  constructor(
    readonly key: Buffer,
    row: readonly any[],
    readonly codec: Codec,
    /** Of an error in a listener of the job's signal. */
    private readonly onError: (error: unknown) => void = () => {},
  ) {
    [this.id, this.payload, this.token] = [row[0], row[1], row[2]];
    this.attempt = Number(row[3]);
    this.deadlineMs = Number(row[4]);
    this.dueMs = row[5] === null ? null : Number(row[5]);
    const [ttr, limit, wait] = row[6] as unknown[];
    this.leaseMs = this.ttrMs = Number(ttr);
    this.maxAttempts = Number(limit);
    this.waitMs = wait === null ? null : Number(wait);
  }

  /** The job's id. Bytes that are not UTF-8 are lone surrogates. */
  get name(): string {
    return toText(this.id);
  }

  /** What handlers and hooks get. */
  get job(): Job {
    this.view ??= new Job(this);
    return this.view;
  }

  get envelope(): Envelope | null {
    if (this.envelopeRead === undefined) this.envelopeRead = readEnvelope(this.payload);
    return this.envelopeRead;
  }

  get told(): Why | null {
    return this.why;
  }

  tell(why: Why): void {
    if (this.why) return;
    this.why = why;
    this.isDoubtful = false;
    this.controller?.abort(new Cancelled(why));
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      quietSignal(this.controller.signal, this.onError);
      if (this.why) this.controller.abort(new Cancelled(this.why));
    }
    return this.controller.signal;
  }

  data(): unknown {
    if (this.unreadable) throw this.unreadable;
    if (this.envelope) return this.envelope.data;
    try {
      return decoded(this.codec, this.payload);
    } catch (error) {
      throw (this.unreadable = error as PayloadError);
    }
  }
}

/** One delivery of a job. */
export class Job<T = any> {
  #delivery: Delivery;
  #data: { value: T } | null = null;

  /** @internal */
  constructor(delivery: Delivery) {
    this.#delivery = delivery;
  }

  /** The job's id. Bytes that are not UTF-8 are lone surrogates. */
  get id(): string {
    return this.#delivery.name;
  }

  /** The key that it came from; of a sharded queue, the shard's. */
  get queue(): string {
    return toText(this.#delivery.key);
  }

  /** The payload's bytes, envelope included. */
  get payload(): Buffer {
    return this.#delivery.payload;
  }

  /** What names this delivery. It is larger than a number can hold. */
  get token(): string {
    return this.#delivery.token.toString();
  }

  /** How often the job was delivered, this time included. */
  get attempt(): number {
    return this.#delivery.attempt;
  }

  /** The job's own limit of deliveries; null where it has none. */
  get maxAttempts(): number | null {
    return this.#delivery.maxAttempts || null;
  }

  /** When the lease ended at delivery. The worker keeps renewing it while the handler runs. */
  get deadline(): Date {
    return fromMs(this.#delivery.deadlineMs);
  }

  /** When the job was due; of a recurring one, the instant of its occurrence. */
  get due(): Date | null {
    return maybeFromMs(this.#delivery.dueMs);
  }

  get occurrence(): Date | null {
    return this.due;
  }

  /** The envelope, where the payload is one. */
  get envelope(): Envelope | null {
    return this.#delivery.envelope;
  }

  get kind(): string | null {
    return this.envelope?.kind ?? null;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.envelope?.headers ?? {};
  }

  /** What was added, as the queue's codec reads it. Throws PayloadError; of that the job dies. */
  get data(): T {
    this.#data ??= { value: this.#delivery.data() as T };
    return this.#data.value;
  }

  /** Aborts once the job was lost or the worker stops: for `fetch`, database drivers, timers. */
  get signal(): AbortSignal {
    return this.#delivery.signal;
  }

  /** Another worker may have the job: stop, the end of this handler will not count. */
  get lost(): boolean {
    return this.#delivery.told === 'lost';
  }

  /** The job was lost, or the worker stops and the handler's time to finish is over. */
  get cancelled(): boolean {
    return this.#delivery.told !== null;
  }

  /** Throws `Cancelled` where `cancelled`: for long handlers, between two steps. */
  check(): void {
    const why = this.#delivery.told;
    if (why) throw new Cancelled(why);
  }

  /** Waits; throws `Cancelled` at once when `cancelled`. */
  sleep(duration: Duration): Promise<void> {
    const ms = Math.min(toMs(duration), LONGEST_TIMER_MS);
    const waits = sleep(ms, undefined, { signal: this.#delivery.signal });
    return Quiet.of(waits.catch(() => {}).then(() => this.check()));
  }

  /** In a batch: this one job failed (or is retried, snoozed, given up), and the others did not. */
  fail(error: unknown): void {
    this.#delivery.failure = { error };
  }
}

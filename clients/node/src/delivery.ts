// A job in hand, as the worker knows it: nothing that a handler does to its `Job` changes anything here.

import { type Codec, decoded, type Envelope, readEnvelope } from './codec';
import { Cancelled, type PayloadError, type Why } from './errors';
import type { AddOptions, OnDead } from './options';
import { quietSignal } from './quiet';
import { type Ended, endedOf } from './results';
import { toText } from './text';
import type { Command } from './wire';

/** How a handler ended, or how `job.fail` and `job.succeed` say that it did. */
export type End = { error: unknown } | { value: unknown };

export const isThrown = (end: End): end is { error: unknown } => 'error' in end;

/** What ends an attempt that is neither a success nor a failure: the handler begins again when that is over. */
export type Suspension =
  | { for: 'sleep'; name: string; ms: number }
  /** Without a limit, a marker is of no use. */
  | { for: 'signal'; name: string; ms: null }
  | { for: 'signal'; name: string; ms: number; marker: string }
  /** `adds`: the commands that add those jobs. */
  | { for: 'jobs'; ids: readonly Buffer[]; onDead: OnDead; adds: readonly Command[] };

/** What a marker of a wait with a limit says: the attempt waits, or the time is over. */
export const WAITING = 'waiting';
export const OVER = 'over';

/** What the server sends of a delivery, in the order of the fetch's options. */
export type Row = readonly [
  id: Buffer,
  payload: Buffer,
  token: Buffer,
  attempt: unknown,
  deadline: unknown,
  due: unknown,
  results: readonly (readonly unknown[])[],
  steps: unknown,
  terms: readonly unknown[],
];

/** A job that is to be added, and its id. */
export interface Part {
  id: Buffer;
  data: unknown;
  options: AddOptions;
}

/** What its handler can ask of who delivered a job. */
export interface Desk {
  /**
   * The answers to commands, which the server may get twice. Rejects with what the server refuses, and Cancelled where the
   * handler's time is over before there is an answer.
   */
  ask(delivery: Delivery, commands: readonly Command[]): Promise<unknown[]>;
  /** Another worker may have it. */
  lose(delivery: Delivery): void;
  /** Its handler has said how far it is. */
  report(delivery: Delivery): void;
  /** An id of its queue's key, like that one. */
  idLike(delivery: Delivery, id: string): Buffer;
  /** The commands that add them to its queue. */
  adding(delivery: Delivery, parts: readonly Part[]): Promise<Command[]>;
}

export class Delivery {
  readonly id: Buffer;
  readonly payload: Buffer;
  readonly token: Buffer;
  readonly attempt: number;
  readonly deadlineMs: number;
  readonly dueMs: number | null;
  /** How the jobs ended that this one was added after, or waited for. */
  readonly results: readonly Ended[];
  /** The job's own lease; deliveries allowed, 0 = without limit; its ladder's wait after a failure of this delivery. */
  readonly ttrMs: number;
  readonly maxAttempts: number;
  readonly waitMs: number | null;
  /** The lease of this delivery, and when it ends, by this process's clock. */
  leaseMs: number;
  /** Its handler's own limit of attempts, where the job has none. */
  handlerAttempts = 0;
  endsAt = Infinity;
  /** It came while the event loop stood still, so its lease may have ended. */
  isDoubtful = false;
  /** What `job.fail` or `job.succeed` was given. */
  said: End | null = null;
  /** The handler waits for something: its attempt has ended. */
  suspension: Suspension | null = null;
  /** What its handler said last of how far it is, until the server is told; and when it was told the last time. */
  progress: Buffer | null = null;
  reportedAt = -Infinity;
  /** Its payload cannot be decoded. */
  unreadable: PayloadError | null = null;
  /** What handlers and hooks get. */
  view: object | null = null;
  private why: Why | null = null;
  private controller: AbortController | null = null;
  private envelopeRead: Envelope | null | undefined;

  constructor(
    readonly key: Buffer,
    row: Row,
    /** What was done in earlier attempts, and what signals brought. */
    readonly steps: Map<string, Buffer>,
    readonly codec: Codec,
    readonly desk: Desk,
    /** Of an error in a listener of the job's signal. */
    private readonly onError: (error: unknown) => void = () => {},
  ) {
    [this.id, this.payload, this.token] = row;
    this.attempt = Number(row[3]);
    this.deadlineMs = Number(row[4]);
    this.dueMs = row[5] === null ? null : Number(row[5]);
    this.results = endedOf(row[6]);
    const [ttr, limit, wait] = row[8];
    this.leaseMs = this.ttrMs = Number(ttr);
    this.maxAttempts = Number(limit);
    this.waitMs = wait === null ? null : Number(wait);
  }

  /** The job's id. Bytes that are not UTF-8 are lone surrogates. */
  get name(): string {
    return toText(this.id);
  }

  /** Deliveries allowed, by the job or else its handler; 0 = without limit. */
  get limit(): number {
    return this.maxAttempts || this.handlerAttempts;
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

// A job in hand, as the worker sees it: nothing that a handler does to its `Job` changes it.

import type { Bagged } from './bag';
import { type Codec, decoded, type Envelope, readEnvelope } from './codec';
import { Cancelled, type PayloadError, type Why } from './errors';
import type { AddOptions, OnDead } from './options';
import { quietSignal } from './quiet';
import { stepsOf } from './reading';
import { type Ended, endedOf } from './results';
import { toText } from './text';
import type { Command } from './wire';

/** How a handler ended, or what `job.fail` or `job.succeed` said. */
export type End = { error: unknown } | { value: unknown };

export const isThrown = (end: End): end is { error: unknown } => 'error' in end;

/** What an attempt waits for that ends neither as a success nor as a failure. The handler begins again afterwards. */
export type Suspension =
  | { for: 'sleep'; name: string; ms: number }
  /** Without a time limit there is no need for a marker. */
  | { for: 'signal'; name: string; ms: null }
  | { for: 'signal'; name: string; ms: number; marker: string }
  /** `adds`: the commands that add these jobs. `named`: those that must be there, for this job or these to wait for. */
  | { for: 'jobs'; ids: readonly Buffer[]; onDead: OnDead; adds: readonly Command[]; named: readonly Buffer[] };

/** The value of a wait's marker: the job waits, or its time is over. */
export const WAITING = 'waiting';
export const OVER = 'over';

/** The step that counts the deliveries to workers that did not know the job's kind. */
export const UNKNOWN_KIND = 'dq:unknown';

/** The server's row for a delivery, in the order of the fetch's options. */
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

/** A job to be added, and its id. */
export interface Part {
  id: Buffer;
  data: unknown;
  options: AddOptions;
}

/** What a handler can ask of the link that delivered its job. */
export interface Desk {
  /**
   * Sends commands, which the server may get twice, and returns the replies. Rejects with the server's refusal, or with
   * Cancelled if the handler's time is over before there is a reply.
   */
  ask(delivery: Delivery, commands: readonly Command[]): Promise<unknown[]>;
  /** Reports the job as lost: another worker may have it. */
  lose(delivery: Delivery): void;
  /** The handler has reported progress. */
  report(delivery: Delivery): void;
  /** An id like this one, of the same key as the job. */
  idLike(delivery: Delivery, id: string): Buffer;
  /** The commands that add jobs to the job's queue. */
  adding(delivery: Delivery, parts: readonly Part[]): Promise<Command[]>;
}

export class Delivery implements Bagged {
  readonly id: Buffer;
  readonly payload: Buffer;
  readonly token: Buffer;
  readonly attempt: number;
  /** The job's own lease; its limit of deliveries (0: no limit); the wait of its ladder if this delivery fails. */
  readonly ttrMs: number;
  readonly maxAttempts: number;
  readonly waitMs: number | null;
  /** The length of this delivery's lease. `endsAt`: when it ends, by this process's clock. */
  leaseMs: number;
  /** When it came, by that clock. */
  sinceMs = -Infinity;
  /** Its job among all that this process has. */
  entry = '';
  /** Its handler runs, or has run. */
  hasBegun = false;
  place = -1;
  /** The handler's limit of attempts; 0: none. */
  handlerAttempts = 0;
  endsAt = Infinity;
  /** It came while the event loop was blocked, so its lease may have ended. */
  isDoubtful = false;
  /** What `job.fail` or `job.succeed` was given. */
  said: End | null = null;
  /** What the handler waits for, if that has ended its attempt. */
  suspension: Suspension | null = null;
  /** The handler's last progress that the server has not confirmed. `reportedAt`: when a report was last sent. */
  progress: Buffer | null = null;
  reportedAt = -Infinity;
  /** The error, if the payload cannot be decoded. */
  unreadable: PayloadError | null = null;
  /** The `Job` that handlers and hooks get. */
  view: object | null = null;
  private why: Why | null = null;
  private controller: AbortController | null = null;
  private envelopeRead: Envelope | null | undefined;

  constructor(
    readonly key: Buffer,
    private readonly row: Row,
    /** What earlier attempts kept, and what signals brought; null until that is read. */
    private kept: Map<string, Buffer> | null,
    readonly codec: Codec,
    readonly desk: Desk,
    /** Gets errors of listeners of the job's signal. */
    private readonly onError: (error: unknown) => void = () => {},
  ) {
    this.id = row[0];
    this.payload = row[1];
    this.token = row[2];
    this.attempt = Number(row[3]);
    const terms = row[8];
    this.leaseMs = this.ttrMs = Number(terms[0]);
    this.maxAttempts = Number(terms[1]);
    this.waitMs = terms[2] === null ? null : Number(terms[2]);
  }

  get deadlineMs(): number {
    return Number(this.row[4]);
  }

  get dueMs(): number | null {
    return this.row[5] === null ? null : Number(this.row[5]);
  }

  /** How the jobs ended that this one was `after`, or waited for. */
  get results(): readonly Ended[] {
    return endedOf(this.row[6]);
  }

  get steps(): Map<string, Buffer> {
    return (this.kept ??= stepsOf(this.row[7]));
  }

  /** The job's id. Bytes that are not UTF-8 are lone surrogates. */
  get name(): string {
    return toText(this.id);
  }

  /** The limit of deliveries: the least that the job, its queue and its handler say; 0: no limit. */
  get limit(): number {
    const { maxAttempts, handlerAttempts } = this;
    const ofHandler = handlerAttempts && handlerAttempts + this.unknown;
    return Math.min(maxAttempts || ofHandler, ofHandler || maxAttempts);
  }

  /** How many deliveries went to workers that did not know the kind: they are no attempts of the handler. */
  get unknown(): number {
    if (this.attempt === 1) return 0;
    const kept = this.steps.get(UNKNOWN_KIND)?.toString('latin1') ?? '';
    return /^\d{1,9}$/.test(kept) ? Math.min(Number(kept), this.attempt - 1) : 0;
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

// What a worker decides, without I/O or a clock.
//
// A delivery that ended becomes an `Outcome`: a command, then, by its answer, either another command or a verdict.

import { type Command, isServerError, type Word } from './driver';
import { Cancelled, ConfigurationError, GiveUp, Retry, Say, Snooze } from './errors';
import { DEFAULT_LEASE_MS, type Handler } from './handler';
import { ENVELOPE_VERSION, type Job } from './job';
import { exponentialMs } from './times';

export const DRAIN_MS = 25_000;
/** How long one BPOP waits; then it is sent again. So a connection that hangs is noticed. */
export const WAIT_MS = 5000;
/** How much longer than its wait a BPOP may take, on a slow network. */
export const SLACK_MS = 5000;
/** How long other answers may take. */
export const ANSWER_MS = 5000;
export const SHORTEST_ANSWER_MS = 1000;
export const CONNECT_MS = 5000;
export const SHORTEST_BEAT_MS = 5;
/** How long a fetch waits where more connections wait than jobs may be in hand, so that they take turns. */
export const TURN_MS = 250;
export const NO_WAIT_MS = 1;
export const FLUSH_AFTER_MS = 1;
export const FLUSH_COUNT = 100;
/** Then a heartbeat may be due. */
export const TELL_AT_ONCE = 500;
/** No handler can make its job come back faster than that. */
const SHORTEST_DELAY_MS = 100;
const UNKNOWN_KIND_DELAY_MS = 5000;
const FIRST_TROUBLE_MS = 50;
const LONGEST_TROUBLE_MS = 5000;
const REASON_BYTES = 1024;
/** From the end of drain on: for handlers that were told, then for the server. */
export const TOLD_MS = 500;
export const FINISH_MS = 1000;

/** Whose delivery it is: the link that fetched it. */
export interface Owner {
  settle(delivery: Delivery, outcome: Outcome): void;
  isStale(): boolean;
}

/** One job in hand. */
export class Delivery {
  readonly id: Buffer;
  readonly payload: Buffer;
  readonly token: Buffer;
  readonly attempt: number;
  readonly deadlineMs: number;
  readonly dueMs: number | null;
  job!: Job;
  handler: Handler | null = null;
  /** Of one job in a batch. */
  failure: { error: unknown } | null = null;

  constructor(
    readonly key: Buffer,
    row: readonly any[],
    readonly owner: Owner,
  ) {
    [this.id, this.payload, this.token] = [row[0], row[1], row[2]];
    this.attempt = Number(row[3]);
    this.deadlineMs = Number(row[4]);
    this.dueMs = row[5] === null ? null : Number(row[5]);
  }
}

type Verdict = string;
type Next = (reply: any) => Command | Verdict;

/** What the server is still to be told of a delivery that ended. */
export class Outcome {
  verdict: Verdict | null = null;

  constructor(
    readonly delivery: Delivery,
    public command: Command,
    private next: Next,
  ) {}

  /** Whether that was the last answer; else `command` is the next. */
  answered(reply: unknown): boolean {
    const then = this.next(reply);
    if (typeof then === 'string') {
      this.verdict = then;
      return true;
    }
    [this.command, this.next] = [then, state];
    return false;
  }
}

/** The verdict of a NACK. */
const state: Next = (reply) => (reply === null ? 'lost' : String(reply));

export function done(delivery: Delivery): Outcome {
  const command: Command = ['DQ.ACK', delivery.key, 'WITHTOKENS', delivery.id, delivery.token];
  return new Outcome(delivery, command, (reply) => (Number(reply) ? 'done' : 'lost'));
}

function nack(delivery: Delivery, ...options: Word[]): Command {
  return ['DQ.NACK', delivery.key, delivery.id, 'TOKEN', delivery.token, ...options];
}

/** Given back, as if it had not been delivered. */
export function returned(delivery: Delivery, ...options: Word[]): Outcome {
  return new Outcome(delivery, nack(delivery, 'SILENT', ...options), state);
}

/** Of a kind that this worker does not know: for another one, a little later. */
export function unknown(delivery: Delivery): Outcome {
  return returned(delivery, 'DELAY', Math.ceil(UNKNOWN_KIND_DELAY_MS * (1 + Math.random())));
}

/** What follows from an error of its handler. */
export function ended(delivery: Delivery, error: unknown): Outcome {
  if (delivery.job.cancelled && isAbort(error)) return returned(delivery);
  if (error instanceof GiveUp) {
    return new Outcome(delivery, nack(delivery, 'FATAL', 'REASON', reason(error)), state);
  }
  if (error instanceof Snooze) {
    const said = error.reason ? ['REASON', reason(error)] : [];
    return returned(delivery, 'DELAY', waitMs(error.delayMs), ...said);
  }
  return failed(delivery, error);
}

/** Whether it ended because it was told to: what `fetch` and others throw when their signal aborts. */
export function isAbort(error: unknown): boolean {
  if (error instanceof Cancelled) return true;
  const { name, code, cause } = (error ?? {}) as { name?: unknown; code?: unknown; cause?: unknown };
  return name === 'AbortError' || code === 'ABORT_ERR' || cause instanceof Cancelled;
}

/** Whether the job has a ladder and a limit of its own only its queue knows. */
function failed(delivery: Delivery, error: unknown): Outcome {
  return new Outcome(delivery, ['DQ.GET', delivery.key, delivery.id], (reply) => {
    const job = asMap(reply);
    if (!job || !delivery.token.equals((job.get('token') as Buffer | null) ?? Buffer.alloc(0))) return 'lost';
    const handler = delivery.handler!;
    const said = ['REASON', reason(error)] as const;
    const limit = Number(job.get('max-attempts')) ? 0 : handler.attempts;
    if (limit > 0 && limit <= delivery.attempt) return nack(delivery, 'FATAL', ...said);
    if (error instanceof Retry) return nack(delivery, 'DELAY', waitMs(error.delayMs), ...said);
    if ((job.get('backoff') as unknown[]).length > 0) return nack(delivery, ...said);
    return nack(delivery, 'DELAY', waitMs(handler.delayMs(delivery.attempt)), ...said);
  });
}

const waitMs = (delayMs: number) => Math.ceil(Math.max(delayMs, SHORTEST_DELAY_MS));

/** The error's type and message. */
export function reason(error: unknown): Buffer {
  return Buffer.from(reasonText(error)).subarray(0, REASON_BYTES);
}

function reasonText(error: unknown): string {
  try {
    if (error instanceof Say) return error.reason || error.name;
    if (!(error instanceof Error)) return String(error);
    const name = typeOf(error);
    return error.message ? `${name}: ${error.message}` : name;
  } catch {
    return 'an error that has no text';
  }
}

/** `class Declined extends Error {}` has the name of its class, whatever its `name` is. */
export function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return error.name && error.name !== 'Error' ? error.name : error.constructor?.name || 'Error';
}

/** A map of RESP3, in the shapes that clients give it, or what stands for it in RESP2. */
export function asMap(reply: unknown): Map<string, unknown> | null {
  if (reply === null || reply === undefined) return null;
  if (reply instanceof Map) return new Map([...reply].map(([name, value]) => [String(name), value]));
  if (!Array.isArray(reply)) return new Map(Object.entries(reply));
  const map = new Map<string, unknown>();
  for (let at = 0; at + 1 < reply.length; at += 2) map.set(String(reply[at]), reply[at + 1]);
  return map;
}

// --- Heartbeats, and what is given back in the end

function byKey(deliveries: Iterable<Delivery>): Delivery[][] {
  const groups = new Map<string, Delivery[]>();
  for (const delivery of deliveries) {
    const key = delivery.key.toString('latin1');
    const group = groups.get(key);
    if (group) group.push(delivery);
    else groups.set(key, [delivery]);
  }
  return [...groups.values()];
}

const ids = (group: Delivery[]): Word[] => ['IDS', group.length, ...group.flatMap(({ id, token }) => [id, token])];

/** One TOUCH for each queue. Where its answer is nil, the job is lost. */
export function heartbeats(deliveries: Iterable<Delivery>, leaseMs: number): [Command, Delivery[]][] {
  return byKey(deliveries).map((group) => [['DQ.TOUCH', group[0]!.key, ...ids(group), 'TTR', leaseMs], group]);
}

/** One NACK for each queue. */
export function giveBack(deliveries: Iterable<Delivery>): Command[] {
  return byKey(deliveries).map((group) => ['DQ.NACK', group[0]!.key, ...ids(group), 'SILENT']);
}

// --- Fetching

/** The fetch commands of one waiting connection. */
export class Fetches {
  constructor(
    readonly keys: readonly Buffer[],
    private readonly weights: readonly number[] | null,
    private readonly leaseMs: number,
  ) {}

  command(count: number, waitMs: number): Command {
    const wait = String(waitMs / 1000);
    return ['DQ.BPOP', ...this.order(), wait, 'COUNT', count, 'TTR', this.leaseMs, 'WITHDUE'];
  }

  /** Strict order is BPOP's own. With weights each queue comes first in its share of the fetches. */
  private order(): readonly Buffer[] {
    const { weights } = this;
    if (!weights) return this.keys;
    const drawn = this.keys.map((key, n) => ({ key, draw: Math.random() ** (1 / weights[n]!) }));
    return drawn.sort((one, other) => other.draw - one.draw).map(({ key }) => key);
  }
}

// --- Which handler

/** The handlers of a worker, by kind. */
export class Handlers {
  fallback: Handler | null = null;
  readonly kinds = new Map<string, Handler>();
  /** How many jobs the largest batch has. */
  size = 1;

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
    this.size = Math.max(this.size, handler.size);
  }

  all(): Handler[] {
    return [...this.kinds.values(), ...(this.fallback ? [this.fallback] : [])];
  }

  /** Null where no handler takes it. */
  choose(job: Job): Handler | null {
    if (this.kinds.size === 0) return this.fallback;
    const { envelope } = job;
    if (!envelope) return this.fallback;
    if (envelope.version !== ENVELOPE_VERSION) return null;
    return this.kinds.get(envelope.kind ?? '') ?? this.fallback;
  }

  /** The longest: renewed from a third of it on. */
  get leaseMs(): number {
    const leases = this.all().map((handler) => handler.leaseMs);
    return leases.length > 0 ? Math.max(...leases) : DEFAULT_LEASE_MS;
  }
}

// --- Trouble

/** How long to wait when the server is away, the first, second, ... time. */
export const troubleMs = (times: number) => exponentialMs(times, FIRST_TROUBLE_MS, LONGEST_TROUBLE_MS);

/** What cannot become right by waiting, in words that say what to do; null for all else. */
export function fatal(error: unknown): ConfigurationError | null {
  if (error instanceof ConfigurationError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (!isServerError(error)) {
    const isFault = [TypeError, RangeError, ReferenceError, SyntaxError].some((type) => error instanceof type);
    return isFault ? new ConfigurationError(message, { cause: error }) : null;
  }
  const text = message.replace(/^ERR /, '');
  const what = remedy(text);
  return what ? new ConfigurationError(`${what} (${text})`, { cause: error }) : null;
}

const NO_MODULE =
  "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration";

/** For who only adds: the same words as of a worker. */
export function withoutModule(error: unknown): ConfigurationError | null {
  if (!isServerError(error) || !/^(ERR )?unknown command/i.test(error.message)) return null;
  return new ConfigurationError(`${NO_MODULE} (${error.message.replace(/^ERR /, '')})`, { cause: error });
}

function remedy(text: string): string | null {
  const begins = (...starts: string[]) => starts.some((start) => text.startsWith(start));
  if (begins('NOPERM')) {
    return "the server's ACL forbids this user what a worker does: permit the queue's keys and the dq.* commands";
  }
  if (begins('NOAUTH', 'WRONGPASS', 'invalid password', 'AUTH ')) {
    return 'the server refuses user name or password: set the right ones in the URL, redis://user:password@host';
  }
  if (/unknown command/i.test(text)) {
    return NO_MODULE;
  }
  if (begins('WRONGTYPE')) {
    return "a queue's key holds a value of another type: choose another name for the queue, or delete that key";
  }
  if (begins('syntax error', 'wrong number of arguments', 'timeout is not a float')) {
    return "the server's dq module is older than this library: upgrade the module";
  }
  if (/DB index|invalid DB/i.test(text)) {
    return 'the server does not have this database: choose another number in the URL';
  }
  return null;
}

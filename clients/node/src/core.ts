// What a worker tells the server, without I/O or a clock.

import type { Verdict } from './guard';
import { defaultDelayMs, type Handler } from './handler';
import type { Delivery } from './job';
import {
  DEFAULT_TTR_MS,
  FIRST_TROUBLE_MS,
  LONGEST_TROUBLE_MS,
  REASON_BYTES,
  STILL_RUNNING_DELAY_MS,
  UNKNOWN_KIND_DELAY_MS,
} from './limits';
import { exponentialMs } from './times';
import type { Command, Word } from './wire';

// --- How a delivery ends

/** What the server is still to be told of a delivery that ended. */
export class Outcome {
  /** It was sent before, and the answer was lost: the server may have taken it. */
  isSentAgain = false;

  /** ways: each asks for less than the one before it, for where the server refuses that. */
  constructor(
    readonly delivery: Delivery,
    private readonly ways: Command[],
  ) {}

  get command(): Command {
    return this.ways[0]!;
  }

  /** Whether somebody else has the job. */
  isLost(reply: unknown): boolean {
    return !this.isSentAgain && (reply === null || Number(reply) === 0);
  }

  /** Goes on to the next way, if there is one. */
  refused(): boolean {
    if (this.ways.length === 1) return false;
    this.ways.shift();
    return true;
  }
}

export function done(delivery: Delivery): Outcome {
  return new Outcome(delivery, [['DQ.ACK', delivery.key, 'WITHTOKENS', delivery.id, delivery.token]]);
}

function nack(delivery: Delivery, ...options: Word[]): Command {
  return ['DQ.NACK', delivery.key, delivery.id, 'TOKEN', delivery.token, ...options];
}

/** Given back, as if it had not been delivered. */
export function returned(delivery: Delivery, ...options: Word[]): Outcome {
  return new Outcome(delivery, [nack(delivery, 'SILENT', ...options)]);
}

/** Of a kind that this worker does not know: for another one, a little later. */
export function unknown(delivery: Delivery): Outcome {
  return returned(delivery, 'DELAY', Math.ceil(UNKNOWN_KIND_DELAY_MS * (1 + Math.random())));
}

/** This process still runs an earlier delivery of the job. */
export const stillRunning = (delivery: Delivery) => returned(delivery, 'DELAY', STILL_RUNNING_DELAY_MS);

/** What follows from the end of its handler. */
export function ended(delivery: Delivery, handler: Handler, verdict: Verdict): Outcome {
  switch (verdict.how) {
    case 'done':
      return done(delivery);
    case 'return':
      return returned(delivery);
    case 'give up':
      return new Outcome(delivery, dead(delivery, verdict.reason));
    case 'fail':
      return new Outcome(delivery, failed(delivery, handler, verdict.reason, verdict.waitMs));
    case 'snooze': {
      const { waitMs, reason } = verdict;
      const asked = nack(delivery, 'SILENT', 'DELAY', waitMs, ...(reason === null ? [] : because(reason)));
      return new Outcome(delivery, [asked, ...failed(delivery, handler, reason ?? 'Snooze', null)]);
    }
  }
}

const dead = (delivery: Delivery, reason: string) => [
  nack(delivery, 'FATAL', ...because(reason)),
  nack(delivery, 'FATAL'),
];

/** After what was asked for, else the job's ladder, else the handler's. */
function failed(delivery: Delivery, handler: Handler, reason: string, askedMs: number | null): Command[] {
  const limit = delivery.maxAttempts ? 0 : handler.attempts;
  if (limit > 0 && limit <= delivery.attempt) return dead(delivery, reason);
  const wait = delivery.waitMs === null ? ['DELAY', Math.ceil(handler.delayMs(delivery.attempt))] : [];
  const ways = [nack(delivery, ...wait, ...because(reason))];
  if (askedMs !== null) ways.unshift(nack(delivery, 'DELAY', askedMs, ...because(reason)));
  return [...ways, nack(delivery, 'DELAY', Math.ceil(defaultDelayMs(delivery.attempt)))];
}

const because = (reason: string): Word[] => ['REASON', bytesOf(reason)];

/** Text as UTF-8, as much as the server keeps, and no half letter. */
export function bytesOf(text: string): Buffer {
  const bytes = Buffer.from(text.slice(0, REASON_BYTES));
  let end = Math.min(bytes.length, REASON_BYTES);
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}

// --- Heartbeats, and what is given back in the end

/** A command that tells of many deliveries. */
export type Together = [command: Command, group: Delivery[]];

function together(
  deliveries: Iterable<Delivery>,
  command: string,
  rest: (one: Delivery) => Word[] = () => [],
): Together[] {
  const groups = new Map<string, Delivery[]>();
  for (const delivery of deliveries) {
    const name = [delivery.key.toString('latin1'), ...rest(delivery)].join('\n');
    const group = groups.get(name);
    if (group) group.push(delivery);
    else groups.set(name, [delivery]);
  }
  return [...groups.values()].map((group) => {
    const ids = group.flatMap(({ id, token }) => [id, token]);
    return [[command, group[0]!.key, 'IDS', group.length, ...ids, ...rest(group[0]!)], group];
  });
}

/** One TOUCH for each queue; each lease stays as long as it is. Where its answer is nil, the job is lost. */
export const heartbeats = (deliveries: Iterable<Delivery>) => together(deliveries, 'DQ.TOUCH');

/** Gives them leases of other lengths. */
export const leases = (lengths: ReadonlyMap<Delivery, number>) =>
  together(lengths.keys(), 'DQ.TOUCH', (delivery) => ['TTR', lengths.get(delivery)!]);

/** One NACK for each queue. */
export const giveBack = (deliveries: Iterable<Delivery>) => together(deliveries, 'DQ.NACK', () => ['SILENT']);

// --- Fetching

/** What is said of leases: of this length whatever the job says, or where the job says nothing. */
export type Lease = { word: 'TTR' | 'LEASE'; ms: number } | null;

/** The fetch commands of one waiting connection. */
export class Fetches {
  private readonly options: readonly Word[];

  constructor(
    readonly keys: readonly Buffer[],
    private readonly weights: readonly number[] | null,
    private readonly lease: Lease,
  ) {
    this.options = [...(lease ? [lease.word, lease.ms] : []), 'WITHDUE', 'WITHTERMS'];
  }

  command(count: number, waitMs: number): Command {
    return ['DQ.BPOP', ...this.order(), String(waitMs / 1000), 'COUNT', count, ...this.options];
  }

  /** The lease of a delivery of a job with that TTR. */
  leaseMs(ttrMs: number): number {
    const { lease } = this;
    return lease && (lease.word === 'TTR' || ttrMs === DEFAULT_TTR_MS) ? lease.ms : ttrMs;
  }

  /** Strict order is BPOP's own. With weights each queue comes first in its share of the fetches. */
  private order(): readonly Buffer[] {
    const { weights } = this;
    if (!weights) return this.keys;
    const drawn = this.keys.map((key, n) => ({ key, draw: Math.random() ** (1 / weights[n]!) }));
    return drawn.sort((one, other) => other.draw - one.draw).map(({ key }) => key);
  }
}

/** How long to wait when the server is away, the first, second, ... time. */
export const troubleMs = (times: number) => exponentialMs(times, FIRST_TROUBLE_MS, LONGEST_TROUBLE_MS);

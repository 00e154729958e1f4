// What a worker tells the server, without I/O or a clock.

import { nack, progress, step } from './commands';
import { type Delivery, type Suspension, WAITING } from './delivery';
import type { Verdict } from './guard';
import { defaultDelayMs, type Handler } from './handler';
import {
  DEFAULT_TTR_MS,
  FIRST_TROUBLE_MS,
  LONGEST_TROUBLE_MS,
  STILL_RUNNING_DELAY_MS,
  UNKNOWN_KIND_DELAY_MS,
} from './limits';
import { bytesOf } from './shown';
import { exponentialMs } from './times';
import { allOrRefused, type Command, type Word } from './wire';

// --- How a delivery ends

/** One command, or several that are carried out together: none where the one before it is refused. */
type Way = readonly Command[];

/** What the server is still to be told of a delivery that ended. */
export class Outcome {
  /** It was sent before, and the answer was lost: the server may have taken it. */
  isSentAgain = false;
  /** Goes in front of it; no matter what is answered. */
  report: Command | null = null;

  /** ways: each asks for less than the one before it, for where the server refuses that. `otherwise`: the last ones. */
  constructor(
    readonly delivery: Delivery,
    private ways: readonly Way[],
    private otherwise: ((error: Error) => Way[]) | null = null,
  ) {}

  get commands(): readonly Command[] {
    const way = this.ways[0]!;
    const sent = way.length > 1 ? allOrRefused(this.delivery.key, way) : way[0]!;
    return this.report ? [this.report, sent] : [sent];
  }

  /** The one that counts of the answers to its commands. */
  answer(replies: readonly unknown[]): unknown {
    return replies.at(-1);
  }

  /** The job is to wait: where the server refuses that, the attempt fails. */
  get isWait(): boolean {
    return this.otherwise !== null;
  }

  /** Whether somebody else has the job. */
  isLost(reply: unknown): boolean {
    return !this.isSentAgain && (reply === null || Number(reply) === 0);
  }

  /** Goes on to the next way, if there is one. */
  refused(error: Error): boolean {
    const { otherwise } = this;
    this.ways = this.ways.slice(1);
    if (this.ways.length > 0) return true;
    this.otherwise = null;
    this.ways = otherwise?.(error) ?? [];
    return this.ways.length > 0;
  }
}

export function done(delivery: Delivery, result: Buffer | null = null): Outcome {
  const { key, id, token } = delivery;
  const plain: Way = [['DQ.ACK', key, 'WITHTOKENS', id, token]];
  return new Outcome(delivery, result ? [[['DQ.ACK', key, 'RESULTS', id, token, result]], plain] : [plain]);
}

/** Given back, as if it had not been delivered. */
export function returned(delivery: Delivery, ...options: Word[]): Outcome {
  return new Outcome(delivery, [[nack(delivery, 'SILENT', ...options)]]);
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
      return done(delivery, verdict.result);
    case 'suspend':
      return suspended(delivery, handler, verdict.suspension);
    case 'return':
      return returned(delivery);
    case 'give up':
      return new Outcome(delivery, dead(delivery, verdict.reason));
    case 'fail':
      return new Outcome(delivery, failed(delivery, handler, verdict.reason, verdict.waitMs));
    case 'snooze': {
      const { waitMs, reason } = verdict;
      const asked = nack(delivery, 'SILENT', 'DELAY', waitMs, ...(reason === null ? [] : because(reason)));
      return new Outcome(delivery, [[asked], ...failed(delivery, handler, reason ?? 'Snooze', null)]);
    }
  }
}

const dead = (delivery: Delivery, reason: string): Way[] => [
  [nack(delivery, 'FATAL', ...because(reason))],
  [nack(delivery, 'FATAL')],
];

/** After what was asked for, else the job's ladder, else the handler's. */
function failed(delivery: Delivery, handler: Handler, reason: string, askedMs: number | null): Way[] {
  const limit = delivery.maxAttempts ? 0 : handler.attempts;
  if (limit > 0 && limit <= delivery.attempt) return dead(delivery, reason);
  const wait = delivery.waitMs === null ? ['DELAY', Math.ceil(handler.delayMs(delivery.attempt))] : [];
  const ways: Way[] = [[nack(delivery, ...wait, ...because(reason))]];
  if (askedMs !== null) ways.unshift([nack(delivery, 'DELAY', askedMs, ...because(reason))]);
  return [...ways, [nack(delivery, 'DELAY', Math.ceil(defaultDelayMs(delivery.attempt)))]];
}

/** Where the server refuses what it would wait for, the attempt has failed of that. */
function suspended(delivery: Delivery, handler: Handler, suspension: Suspension): Outcome {
  return new Outcome(delivery, [waiting(delivery, suspension)], (error) =>
    failed(delivery, handler, error.message, null),
  );
}

function waiting(delivery: Delivery, suspension: Suspension): Way {
  switch (suspension.for) {
    case 'sleep':
      return [step(delivery, suspension.name, ''), nack(delivery, 'SILENT', 'DELAY', suspension.ms)];
    case 'signal': {
      const awaited = ['SILENT', 'AWAIT', suspension.name];
      if (suspension.ms === null) return [nack(delivery, ...awaited)];
      const limited = nack(delivery, ...awaited, 'DELAY', suspension.ms);
      return [step(delivery, suspension.marker, WAITING), limited];
    }
    case 'jobs': {
      const { ids, onDead, adds } = suspension;
      return [...adds, nack(delivery, 'SILENT', 'AFTER', ids.length, ...ids, 'ONDEAD', onDead.toUpperCase())];
    }
  }
}

/** What its handler said last of how far it is, for the server; null where it knows. */
export function reported(delivery: Delivery): Command | null {
  const { progress: text } = delivery;
  delivery.progress = null;
  return text && progress(delivery, text);
}

const because = (reason: string): Word[] => ['REASON', bytesOf(reason)];

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

/** As a heartbeat, and waits for so long while all of them are held. */
export const heard = (key: Buffer, deliveries: readonly Delivery[], waitMs: number): Command => [
  'DQ.BTOUCH',
  key,
  String(waitMs / 1000),
  'IDS',
  deliveries.length,
  ...deliveries.flatMap(({ id, token }) => [id, token]),
];

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
    this.options = [...(lease ? [lease.word, lease.ms] : []), 'WITHDUE', 'WITHRESULTS', 'WITHSTEPS', 'WITHTERMS'];
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

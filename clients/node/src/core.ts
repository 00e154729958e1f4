// What a worker tells the server, without I/O or a clock.

import { bytesIn, cutBy, nack, progress, step, unstorable } from './commands';
import { isRefusal, mayNot } from './fatal';
import { type Delivery, type Suspension, UNKNOWN_KIND, WAITING } from './delivery';
import type { Verdict } from './guard';
import type { Handler } from './handler';
import {
  CUTTING_BYTES,
  DEFAULT_TTR_MS,
  FIRST_TROUBLE_MS,
  JITTER,
  LONGEST_TROUBLE_MS,
  STILL_RUNNING_DELAY_MS,
  MOST_CUTS,
  UNKNOWN_KIND_ATTEMPTS,
  UNKNOWN_KIND_DELAY_MS,
  UNKNOWN_KIND_LONGEST_MS,
} from './limits';
import { bytesOf } from './format';
import { asWord, isUnheld, someOf, toText } from './text';
import { allOrRefused, type Command, type Word } from './wire';

// --- How a delivery ends

/** One command, or several that run as one: if one is refused, those after it do not run. */
type Way = readonly Command[];

/** What the server must still be told of a delivery that ended. */
export class Outcome {
  /** It was sent before, and the reply was lost: the server may have carried it out. */
  isSentAgain = false;
  /** Sent before the commands; its reply does not matter. */
  report: Command | null = null;

  /** The length of the result that it may still store. */
  resultBytes = 0;
  /** How often the connection was cut instead of a reply. */
  private cuts = 0;

  /**
   * ways: each asks for less than the one before it, in case the server refuses that; null: an ACK without a result.
   * `otherwise`: the last ones.
   */
  constructor(
    readonly delivery: Delivery,
    private ways: readonly Way[] | null,
    private otherwise: ((error: Error) => Way[]) | null = null,
  ) {}

  /** Whether one ACK can tell this and others of its queue. */
  get isPlain(): boolean {
    return this.report === null && this.ways === null;
  }

  get commands(): readonly Command[] {
    const way = this.ways ? this.ways[0]! : [ack([this])];
    const sent = way.length > 1 ? allOrRefused(this.delivery.key, way) : way[0]!;
    return this.report ? [this.report, sent] : [sent];
  }

  /** The server's refusal to count a delivery of an unknown kind. */
  uncounted(replies: readonly unknown[]): unknown {
    return replies.slice(0, -1).find((reply) => reply instanceof Error && mayNot(reply));
  }

  /** The reply that counts. */
  answer(replies: readonly unknown[]): unknown {
    return replies.at(-1);
  }

  /** It suspends the job. If the server refuses that, the attempt fails. */
  get isWait(): boolean {
    return this.otherwise !== null;
  }

  /** Whether another worker has the job. */
  isLost(reply: unknown): boolean {
    const one = Array.isArray(reply) ? reply[0] : reply;
    return !this.isSentAgain && (one === null || Number(one) === 0);
  }

  /** Whether the job is dead; if an answer was lost, whether it may be. */
  isDead(reply: unknown): boolean {
    return String(reply) === 'dead' || (reply === null && this.isSentAgain);
  }

  /** Whether the server refuses this as it is, so that less must be asked for. */
  isRefused(error: Error): boolean {
    const isFull = this.resultBytes > 0 && error.message.startsWith('OOM ');
    return isFull || isRefusal(error, this.commands.at(-1)![0]);
  }

  /**
   * The connection was lost before a reply. If it is long, that may be why: unless this end closed it (`isLate`), it is not
   * sent for a third time.
   */
  cut(isLate: boolean): void {
    this.isSentAgain = true;
    if (isLate) return;
    const bytes = this.resultBytes || bytesIn(this.commands);
    if (bytes < CUTTING_BYTES || ++this.cuts < MOST_CUTS) return;
    this.cuts = 0;
    if (this.resultBytes === 0) {
      this.refused(new Error(cutBy(MOST_CUTS, bytes)));
    } else {
      this.ways = dead(this.delivery, unstorable(bytes));
      this.resultBytes = 0;
    }
  }

  /** Goes on to the next way. Returns false if there is none. */
  refused(error: Error): boolean {
    const { otherwise } = this;
    this.resultBytes = 0;
    this.ways = this.ways?.slice(1) ?? [];
    if (this.ways.length > 0) return true;
    this.otherwise = null;
    this.ways = otherwise?.(error) ?? [];
    return this.ways.length > 0;
  }
}

/** One ACK for jobs of a queue that are done without a result. */
export function ack(outcomes: readonly Outcome[]): Command {
  const words: [string, ...Word[]] = [
    'DQ.ACK',
    asWord(outcomes[0]!.delivery.key),
    'WITHTOKENS',
    'IDS',
    outcomes.length,
  ];
  for (let n = 0; n < outcomes.length; n++) {
    const { id, token } = outcomes[n]!.delivery;
    words.push(asWord(id), token.toString('latin1'));
  }
  return words;
}

export function done(delivery: Delivery, result: Buffer | null = null): Outcome {
  const plain = new Outcome(delivery, null);
  if (!result) return plain;
  const { key, id, token } = delivery;
  const made = new Outcome(delivery, [[['DQ.ACK', key, 'RESULTS', 'IDS', 1, id, token, result]], plain.commands]);
  made.resultBytes = result.length;
  return made;
}

/** Gives a job back as if it had not been delivered. */
export function returned(delivery: Delivery, ...options: Word[]): Outcome {
  return new Outcome(delivery, [[nack(delivery, 'SILENT', ...options)]]);
}

/** The job is of a kind that this worker does not know: it fails, to come to another worker later, each time much later. */
export function unknown(delivery: Delivery, kind: string): Outcome {
  const { attempt } = delivery;
  const reason = `unknown kind "${kind}"`;
  if (attempt >= UNKNOWN_KIND_ATTEMPTS) return new Outcome(delivery, dead(delivery, reason));
  const delayMs = Math.min(attempt * UNKNOWN_KIND_DELAY_MS, UNKNOWN_KIND_LONGEST_MS);
  const back = new Outcome(delivery, [[nack(delivery, 'DELAY', delayMs, ...because(reason))]]);
  back.report = step(delivery, UNKNOWN_KIND, delivery.unknown + 1);
  return back;
}

export const USED_UP = 'attempts used up; its workers were lost';

/** Its earlier deliveries ended without an answer. */
export const usedUp = (delivery: Delivery) => new Outcome(delivery, dead(delivery, USED_UP));

/** No handler could be chosen for it: it comes again after the wait of its ladder, or the server's. */
export const unplaced = (delivery: Delivery, reason: string) =>
  new Outcome(delivery, failed(delivery, null, reason, null));

/** Given back, as this process still runs an earlier delivery of the job. */
export const stillRunning = (delivery: Delivery) => returned(delivery, 'DELAY', STILL_RUNNING_DELAY_MS);

/** The outcome of a delivery whose handler ended. */
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

/** The job comes again after the wait that user code asked for, else by the job's ladder, the handler's, or the server's. */
function failed(delivery: Delivery, handler: Handler | null, reason: string, askedMs: number | null): Way[] {
  if (delivery.limit > 0 && delivery.limit <= delivery.attempt) return dead(delivery, reason);
  const stepMs = delivery.waitMs === null ? (handler?.delayMs(delivery.attempt) ?? null) : null;
  const waits = [askedMs, stepMs].filter((waitMs) => waitMs !== null);
  const ways: Way[] = waits.map((waitMs) => [nack(delivery, 'DELAY', waitMs, ...because(reason))]);
  return [...ways, [nack(delivery, ...because(reason))], [nack(delivery)]];
}

/** Suspends the job. If the server refuses that, the attempt has failed with the server's error. */
function suspended(delivery: Delivery, handler: Handler, suspension: Suspension): Outcome {
  return new Outcome(delivery, [waiting(delivery, suspension)], (error) =>
    failed(delivery, handler, refusal(suspension, error), null),
  );
}

function refusal(suspension: Suspension, error: Error): string {
  if (suspension.for !== 'jobs' || !isUnheld(error)) return error.message;
  const ids = someOf([...new Set(suspension.named.map((id) => toText(id)))]);
  return `${error.message}: it has ended, or was never added. Add it with a keep, or by spawn (waited for: ${ids})`;
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

/** The handler's last progress that the server does not know yet; null if it knows. */
export function reported(delivery: Delivery): Command | null {
  const { progress: text } = delivery;
  delivery.progress = null;
  return text && progress(delivery, text);
}

const because = (reason: string): Word[] => ['REASON', bytesOf(reason)];

// --- Heartbeats, and jobs that are given back at the stop

/** One command about many deliveries. */
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

/** One TOUCH for each queue; each lease keeps its length. A nil in the reply means that the job is lost. */
export const heartbeats = (deliveries: Iterable<Delivery>) => together(deliveries, 'DQ.TOUCH');

/** Renews leases with new lengths. */
export const leases = (lengths: ReadonlyMap<Delivery, number>) =>
  together(lengths.keys(), 'DQ.TOUCH', (delivery) => ['TTR', lengths.get(delivery)!]);

/** Renews leases as a heartbeat does, and waits for `waitMs` unless one of the jobs is lost before. */
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

/**
 * What is given back waits for a while, as the server may read the last fetch after this, and before it knows that the
 * connection is closed.
 */
export function parting(command: Command): Command {
  const isBack = command[0] === 'DQ.NACK' && command.at(-1) === 'SILENT' && command.at(-2) !== 'REASON';
  return isBack ? [...command, 'DELAY', STILL_RUNNING_DELAY_MS] : command;
}

// --- Fetching

/** What a fetch asks for: leases of this length for all jobs (TTR), or for those that have no TTR (LEASE). */
export type Lease = { word: 'TTR' | 'LEASE'; ms: number } | null;

/** The fetch commands of one waiting connection. */
export class Fetches {
  private readonly options: readonly Word[];
  private readonly keys: readonly Word[];
  /** When the first of the calls began that had to give way while they waited for a batch. */
  private since: number | null = null;
  private began = 0;
  private overAt = 0;

  constructor(
    keys: readonly Buffer[],
    private readonly weights: readonly number[] | null,
    private readonly lease: Lease,
    private readonly fill: readonly [jobs: number, ms: number] | null = null,
  ) {
    this.keys = keys.map(asWord);
    this.options = [...(lease ? [lease.word, lease.ms] : []), 'WITHDUE', 'WITHRESULTS', 'WITHSTEPS', 'WITHTERMS'];
  }

  get fills(): boolean {
    return this.fill !== null;
  }

  command(count: number, waitMs: number, atMs: number): Command {
    this.began = atMs;
    this.overAt = atMs + waitMs;
    const filling = this.filling(count, atMs);
    return ['DQ.BPOP', ...this.order(), String(waitMs / 1000), 'COUNT', count, ...filling, ...this.options];
  }

  private filling(count: number, atMs: number): Word[] {
    if (!this.fill || count < 2) return [];
    const [jobs, ms] = this.fill;
    return ['FILL', Math.min(jobs, count), Math.max(1, Math.floor(ms - (atMs - (this.since ?? atMs))))];
  }

  /** The call has ended. If it neither got jobs nor lasted as long as it could, the next one goes on with its wait. */
  fetched(isAny: boolean, atMs: number): void {
    this.since = isAny || atMs >= this.overAt ? null : (this.since ?? this.began);
  }

  /** The lease of a delivery whose job has this TTR. */
  leaseMs(ttrMs: number): number {
    const { lease } = this;
    return lease && (lease.word === 'TTR' || ttrMs === DEFAULT_TTR_MS) ? lease.ms : ttrMs;
  }

  /** BPOP itself serves keys in strict order. With weights each queue comes first in its share of the fetches. */
  private order(): readonly Word[] {
    const { weights } = this;
    if (!weights) return this.keys;
    const drawn = this.keys.map((key, n) => ({
      key,
      draw: Math.random() ** (1 / weights[n]!),
    }));
    return drawn.sort((one, other) => other.draw - one.draw).map(({ key }) => key);
  }
}

/** How long to wait when the server is away for the first, second, ... time. Jitter only adds. */
export const troubleMs = (times: number) =>
  Math.min(LONGEST_TROUBLE_MS, FIRST_TROUBLE_MS * 2 ** Math.min(times - 1, 62)) * (1 + JITTER * Math.random());

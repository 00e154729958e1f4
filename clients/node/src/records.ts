// Typed replies of all queries but DQ.GET.

import type { Codec } from './codec';
import { maybeText, stepsOf } from './reading';
import { endedOf, type JobResult, results } from './results';
import { toText } from './text';
import { fromMs, maybeFromMs } from './times';

/** A job taken by `pop` or `bpop`, without a worker. */
export interface ReservedJob {
  queue: string;
  id: string;
  payload: Buffer;
  /** What `ack`, `nack` and `touch` need; null with `noack`. */
  token: string | null;
  attempt: number;
  deadline: Date | null;
  due: Date;
  /** How the jobs ended that this one was `after`. */
  results: JobResult[];
  /** What was kept with the job, by name. */
  steps: ReadonlyMap<string, Buffer>;
}

/** A job as DQ.PEEK shows it. */
export interface Peeked {
  id: string;
  payload: Buffer;
  /** When it is due, its lease ends, or it ended, depending on the state asked for; null for a blocked job without a time. */
  at: Date | null;
  attempts: number;
  priority: number;
  /** The payload's whole length, where `payload` is cut too. */
  payloadBytes: number;
}

/** A group that holds jobs. */
export interface Group {
  name: string;
  waiting: number;
  reserved: number;
}

/** A queue's figures; of a sharded queue, those of its shards added up. Durations are milliseconds. */
export interface Stats {
  delayed: number;
  ready: number;
  reserved: number;
  dead: number;
  blocked: number;
  done: number;
  doneBytes: number;
  nextDue: Date | null;
  oldestReady: number | null;
  waitingClients: number;
  /** True: until resumed. A Date: until then. */
  paused: boolean | Date;
  bytes: number;
  recurring: number;
  groups: number;
  /** What the deliveries in the window of RATE add up to. */
  rateUsed: number;
  /** `added`, `delivered`, `acked`, `nacked`, `timed-out`, `died`, `deleted`, `expired`, ... */
  totals: Record<string, number>;
  latenessCount: number;
  latenessMean: number;
  latenessMax: number;
  /** Upper bounds (null: no bound), and how many deliveries were at most that late. */
  latenessBuckets: [bound: number | null, count: number][];
}

type Fields = Map<string, unknown>;

export function reserved(key: Buffer, row: any[], codec: Codec): ReservedJob {
  const [id, payload, token, attempt, deadline, due, after, steps] = row;
  return {
    queue: toText(key),
    id: toText(id),
    payload,
    token: maybeText(token),
    attempt: Number(attempt),
    deadline: maybeFromMs(deadline),
    due: fromMs(due),
    results: results(endedOf(after), codec),
    steps: stepsOf(steps),
  };
}

export function peeked([id, payload, at, attempts, priority, length = payload.length]: any[]): Peeked {
  return {
    id: toText(id),
    payload,
    at: maybeFromMs(at),
    attempts: Number(attempts),
    priority: Number(priority),
    payloadBytes: Number(length),
  };
}

export function group([name, waiting, held]: any[]): Group {
  return { name: toText(name), waiting: Number(waiting), reserved: Number(held) };
}

const NO_TOTALS = new Set(
  (
    'delayed ready reserved dead blocked done done-bytes next-due oldest-ready-ms waiting-clients paused bytes ' +
    'recurring groups rate-used'
  ).split(' '),
);

/** Shards are paused as long as the one that is paused longest. */
export function paused(values: number[]): boolean | Date {
  if (values.includes(-1)) return true;
  const until = Math.max(0, ...values);
  return until > 0 && fromMs(until);
}

/** The shards' figures, added up; null if there is no queue. */
export function addUp(replies: (Fields | null)[]): Stats | null {
  const found = replies.filter((each): each is Fields => each !== null);
  const first = found[0];
  if (!first) return null;
  const values = (name: string) =>
    found
      .map((each) => each.get(name))
      .filter((value) => typeof value === 'number' || value instanceof Uint8Array || typeof value === 'string')
      .map(Number);
  const total = (name: string) => values(name).reduce((sum, value) => sum + value, 0);
  const [dues, ages, count] = [values('next-due'), values('oldest-ready-ms'), total('lateness-count')];
  const buckets = new Map<number | null, number>();
  for (const [bound, number] of found.flatMap((each) => (each.get('lateness-buckets') ?? []) as any[])) {
    const ms = bound === null ? null : Number(bound) / 1000;
    buckets.set(ms, (buckets.get(ms) ?? 0) + Number(number));
  }
  const totals = [...first.keys()].filter((name) => !NO_TOTALS.has(name) && !name.startsWith('lateness-'));
  return {
    delayed: total('delayed'),
    ready: total('ready'),
    reserved: total('reserved'),
    dead: total('dead'),
    blocked: total('blocked'),
    done: total('done'),
    doneBytes: total('done-bytes'),
    nextDue: dues.length > 0 ? fromMs(Math.min(...dues)) : null,
    oldestReady: ages.length > 0 ? Math.max(...ages) : null,
    waitingClients: total('waiting-clients'),
    paused: paused(values('paused')),
    bytes: total('bytes'),
    recurring: total('recurring'),
    groups: total('groups'),
    rateUsed: total('rate-used'),
    totals: Object.fromEntries(totals.map((name) => [name, total(name)])),
    latenessCount: count,
    latenessMean: count > 0 ? total('lateness-sum') / count / 1000 : 0,
    latenessMax: Math.max(0, ...values('lateness-max')) / 1000,
    latenessBuckets: [...buckets],
  };
}

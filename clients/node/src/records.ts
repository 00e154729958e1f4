// What the queries answer, typed.

import type { Codec } from './codec';
import { endedOf, type JobResult, results } from './results';
import { toText } from './text';
import { fromMs, maybeFromMs } from './times';
import { asMap } from './wire';

export type State = 'delayed' | 'ready' | 'reserved' | 'dead' | 'blocked' | 'done';

/** A job that was popped by hand, without a worker. */
export interface ReservedJob {
  queue: string;
  id: string;
  payload: Buffer;
  /** What `ack`, `nack` and `touch` need; null with `noack`. */
  token: string | null;
  attempt: number;
  deadline: Date | null;
  due: Date;
  /** How the jobs ended that it was added after. */
  results: JobResult[];
  /** What was kept of it, by name. */
  steps: ReadonlyMap<string, Buffer>;
}

/** A job as DQ.GET shows it. */
export interface JobInfo {
  id: string;
  payload: Buffer;
  state: State;
  priority: number;
  due: Date | null;
  deadline: Date | null;
  /** Durations are milliseconds. */
  ttr: number;
  attempts: number;
  maxAttempts: number;
  backoff: number[];
  expires: Date | null;
  token: string | null;
  reason: string | null;
  failed: Date | null;
  group: string | null;
  /** The payload of what runs once more after the current run. */
  next: Buffer | null;
  /** Of a job that is done: its result as bytes, and when it ended. */
  result: Buffer | null;
  finished: Date | null;
  /** The latest delivery, of one that is reserved or done. */
  started: Date | null;
  /** For how long it is kept once it is done; null: as its queue says. */
  keep: number | null;
  cost: number;
  /** What its handler said last. */
  progress: string | null;
  /** Of one that is blocked: what it comes after. */
  after: string[];
  afterGroup: string | null;
  onDead: string | null;
  /** The signal that it waits for. */
  awaits: string | null;
  /** What was kept of it, by name. */
  steps: ReadonlyMap<string, Buffer>;
  /** Of a recurring job. */
  rule: Rule | null;
  /** All fields as the server gave them. */
  fields: ReadonlyMap<string, unknown>;
}

/** By what rule a job comes again: `every` so many milliseconds, or by the expression `cron`. */
export interface Rule {
  every: number | null;
  cron: string | null;
  tz: string | null;
  until: Date | null;
  times: number | null;
  grace: number | null;
  jitter: number | null;
  /** The instant of the occurrence that is to come or under way. */
  occurrence: Date | null;
  /** How many have ended. */
  runs: number;
}

/** A job as DQ.PEEK shows it. */
export interface Peeked {
  id: string;
  payload: Buffer;
  /** When it is due, its lease ends, or it ended, by the state that was asked for; null of a blocked one without a time. */
  at: Date | null;
  attempts: number;
  priority: number;
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
  /** True until resumed, or until then. */
  paused: boolean | Date;
  bytes: number;
  recurring: number;
  groups: number;
  /** What the deliveries in the window of RATE count. */
  rateUsed: number;
  /** `added`, `delivered`, `acked`, `nacked`, `timed-out`, `died`, `deleted`, `expired`, ... */
  totals: Record<string, number>;
  latenessCount: number;
  latenessMean: number;
  latenessMax: number;
  /** Upper bound (null: no bound) and how many deliveries were at most so late. */
  latenessBuckets: [bound: number | null, count: number][];
}

type Fields = Map<string, unknown>;

const maybeText = (raw: unknown) => (raw === null || raw === undefined ? null : String(raw));
const maybeId = (raw: unknown) => (raw === null || raw === undefined ? null : toText(raw as Buffer));

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
    steps: asMap(steps) as Map<string, Buffer>,
  };
}

export function jobInfo(fields: Fields | null): JobInfo | null {
  if (!fields) return null;
  const get = (name: string): any => fields.get(name);
  return {
    id: toText(get('id')),
    payload: get('payload'),
    state: String(get('state')) as State,
    priority: Number(get('priority')),
    due: maybeFromMs(get('due')),
    deadline: maybeFromMs(get('deadline')),
    ttr: Number(get('ttr')),
    attempts: Number(get('attempts')),
    maxAttempts: Number(get('max-attempts')),
    backoff: get('backoff').map(Number),
    expires: maybeFromMs(get('expires')),
    token: maybeText(get('token')),
    reason: maybeText(get('reason')),
    failed: maybeFromMs(get('failed')),
    group: maybeId(get('group')),
    next: get('next') ?? null,
    result: get('result') ?? null,
    finished: maybeFromMs(get('finished')),
    started: maybeFromMs(get('started')),
    keep: get('keep') === null || get('keep') === undefined ? null : Number(get('keep')),
    cost: Number(get('cost') ?? 1),
    progress: maybeText(get('progress')),
    after: (get('after') ?? []).map(toText),
    afterGroup: maybeId(get('after-group')),
    onDead: maybeText(get('on-dead')),
    awaits: maybeText(get('awaits')),
    steps: (asMap(get('steps')) ?? new Map()) as Map<string, Buffer>,
    rule: rule(fields),
    fields,
  };
}

function rule(fields: Fields): Rule | null {
  const get = (name: string): any => fields.get(name) ?? null;
  const number = (name: string) => (get(name) === null ? null : Number(get(name)));
  if (get('every') === null && get('cron') === null) return null;
  return {
    every: number('every'),
    cron: maybeText(get('cron')),
    tz: maybeText(get('tz')),
    until: maybeFromMs(get('until')),
    times: number('times'),
    grace: number('grace'),
    jitter: number('jitter'),
    occurrence: maybeFromMs(get('occurrence')),
    runs: Number(get('runs')),
  };
}

export function peeked([id, payload, at, attempts, priority]: any[]): Peeked {
  return { id: toText(id), payload, at: maybeFromMs(at), attempts: Number(attempts), priority: Number(priority) };
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

/** Of shards: as long as the longest. */
function paused(values: number[]): boolean | Date {
  if (values.includes(-1)) return true;
  const until = Math.max(0, ...values);
  return until > 0 && fromMs(until);
}

/** Null where there is no queue. */
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

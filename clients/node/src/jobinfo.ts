// Written from docs/libraries.md by `make generated`; DO NOT EDIT.

import { type Codec, type Decoded, withDecoded } from './codec';
import { type FailedAttempt, historyOf, maybeId, maybeNumber, maybeText, stepsOf } from './reading';
import { endedOf, type JobResult, results } from './results';
import { type Rule, rule } from './rule';
import { toText } from './text';
import { maybeFromMs } from './times';

export type State = 'delayed' | 'ready' | 'reserved' | 'dead' | 'blocked' | 'done';

/** A job as DQ.GET shows it. Durations are milliseconds. */
export interface JobInfo extends Decoded {
  /** The job's. */
  id: string;
  /** What was added. */
  payload: Buffer;
  /** Where the job is. */
  state: State;
  /** Smaller is delivered first. */
  priority: number;
  /** When it is due; nothing of a blocked job without a time of its own. */
  due: Date | null;
  /** When its lease ends; nothing unless reserved. */
  deadline: Date | null;
  /** How long its leases are. */
  ttr: number;
  /** Deliveries so far. */
  attempts: number;
  /** Deliveries allowed; 0: no limit. */
  maxAttempts: number;
  /** The waits after failures. */
  backoff: number[];
  /** What kind of job it is, for those who look; it changes nothing of how the job is served. */
  label: string | null;
  /** When its TTL ends it. */
  expires: Date | null;
  /** The current one. */
  token: string | null;
  /** Why it failed last. */
  reason: string | null;
  /** When that was. */
  failed: Date | null;
  /** Its last attempts that failed, as many as the queue's `HISTORY` keeps. */
  history: FailedAttempt[];
  /** The group that it is in. */
  group: string | null;
  /** The payload of the job that takes its place when its run is over. */
  next: Buffer | null;
  /** How a recurring job comes again. */
  rule: Rule | null;
  /** What its handler reported last. */
  progress: string | null;
  /** How long it stays once it is done; nothing: as its queue says. */
  keep: number | null;
  /** What a delivery counts for `RATE` and `GROUPRATE`. */
  cost: number;
  /** The signal that it waits for. */
  awaits: string | null;
  /** What its handler has kept, by name. */
  steps: ReadonlyMap<string, Buffer>;
  /** The latest delivery, of a reserved or done job. */
  started: Date | null;
  /** Who works on it: the name or the address of the connection that it was delivered to, if the server knows it. */
  client: string | null;
  /** When a done job was acknowledged. */
  finished: Date | null;
  /** What the handler of a done job returned, as the codec encoded it. */
  result: Buffer | null;
  /** The jobs that a blocked job still waits for. */
  after: string[];
  /** The group that it waits for. */
  afterGroup: string | null;
  /** What it does if a job that it is after dies: `wait`, `run` or `die`. */
  onDead: string | null;
  /** How the jobs ended that it is after, or was. */
  results: JobResult[];
  /** The payload's whole length, where `payload` is cut too. */
  payloadBytes: number;
  /** All fields as the server gave them, also those that this library does not know. */
  fields: ReadonlyMap<string, unknown>;
}

export function jobInfo(fields: Map<string, unknown> | null, codec: Codec): JobInfo | null {
  if (!fields) return null;
  const get = (name: string): any => fields.get(name);
  const read: Omit<JobInfo, keyof Decoded> = {
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
    label: maybeId(get('label')),
    expires: maybeFromMs(get('expires')),
    token: maybeId(get('token')),
    reason: maybeText(get('reason')),
    failed: maybeFromMs(get('failed')),
    history: historyOf(get('history')),
    group: maybeId(get('group')),
    next: get('next') ?? null,
    rule: rule(fields),
    progress: maybeText(get('progress')),
    keep: maybeNumber(get('keep')),
    cost: Number(get('cost') ?? 1),
    awaits: maybeId(get('awaits')),
    steps: stepsOf(get('steps')),
    started: maybeFromMs(get('started')),
    client: maybeText(get('client')),
    finished: maybeFromMs(get('finished')),
    result: get('result') ?? null,
    after: (get('after') ?? []).map(toText),
    afterGroup: maybeId(get('after-group')),
    onDead: maybeText(get('on-dead')),
    results: results(endedOf(get('results') ?? []), codec),
    payloadBytes: Number(get('payload-bytes') ?? 0),
    fields,
  };
  return withDecoded(read, codec);
}

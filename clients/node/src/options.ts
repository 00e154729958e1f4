// Options of a queue's methods, and the words of commands that they become.

import { CORRECTED, type Corrected, SAID, said, type Said } from './joboptions';
import type { State } from './jobinfo';
import { bytesOf, shown } from './format';
import { type Bytes, toBytes } from './text';
import { between, type Duration, toMs } from './times';
import type { Word } from './wire';
import { amount, flag, instant, isGiven, type Maybe, ms, named, number, value } from './words';

export * from './words';

export interface JobOptions extends Said {
  /** With a kind or headers, the payload becomes an envelope. The kind is the job's label, too, unless that is another. */
  kind?: string | null;
  headers?: Record<string, string>;
}

/** What a job does if one that it is after dies: wait (as it may be kicked), run, or die as well. */
export type OnDead = 'wait' | 'run' | 'die';

/** The jobs that a job is after. */
export interface AfterOptions {
  /** Ids of jobs of this queue that must end before this one begins. */
  after?: readonly Bytes[];
  /** `wait` by default. */
  onDead?: OnDead;
  /** The job begins when all jobs of that group have ended. */
  afterGroup?: string;
}

export interface AddOptions extends JobOptions, AfterOptions {
  /**
   * Unique in the queue; made up if omitted. A second job with an existing id is refused, so adding twice does no harm. A dead
   * or done job is replaced.
   */
  id?: Bytes;
  /** Due after this time; by default at once. */
  delay?: Duration;
  /** Due at an instant. */
  at?: Date;
  /** Instead of refusing the job: `only-replace` adds no new job, `next` runs once more when the current run is over. */
  ifExists?: 'replace' | 'only-replace' | 'next';
}

export interface RuleOptions extends JobOptions {
  id: Bytes;
  /** The last instant at which an occurrence may be. */
  until?: Date;
  /** The number of occurrences. */
  times?: number;
  /** An occurrence that is this late is skipped. */
  grace?: Duration;
  /** Each occurrence is due up to this much later. */
  jitter?: Duration;
}

export interface EveryOptions extends RuleOptions {
  /** When the first occurrence is due; by default one interval from now. */
  first?: Date;
}

export interface CronOptions extends RuleOptions {
  /** The name of an IANA time zone; UTC by default. */
  tz?: string;
}

export interface NackOptions extends AfterOptions {
  /** Waits until `queue.signal` gives this signal. With mode `silent` only, as `after` and `afterGroup`. */
  awaits?: string;
  delay?: Duration;
  priority?: number;
  /** `silent`: this delivery is not counted. `fatal`: dead now. */
  mode?: 'fail' | 'silent' | 'fatal';
  reason?: string;
}

/** So many jobs in a window; 0 or null: no limit. */
export type Rate = readonly [jobs: number, window: Duration] | 0 | null;

/** Settings of a queue. 0 turns a limit off, also a rate. Rates are [jobs, window]. */
export interface Settings {
  ttr?: Duration;
  attempts?: number;
  /** `default` takes the queue's own away, so that the server's holds; `[]` is no wait. */
  backoff?: readonly Duration[] | 'default';
  maxlen?: number;
  maxbytes?: number;
  deadlen?: number;
  dedupe?: Duration;
  maxreserved?: number;
  rate?: Rate;
  groupmax?: number;
  grouprate?: Rate;
  groupfifo?: boolean;
  /** How many done jobs are kept, for how long, and how many bytes. */
  donelen?: number;
  donettl?: Duration;
  donebytes?: number;
  /** How many failed attempts each job keeps, at most 100. */
  history?: number;
}

/** Which ids to return. All but `state`, `recurring` and `count` are patterns, as of KEYS; `group` is a name. */
export interface ScanOptions {
  state?: State;
  match?: Bytes;
  group?: Bytes;
  payload?: Bytes;
  label?: Bytes;
  /** The name of the signal that the job waits for. */
  awaits?: Bytes;
  /** Why the job failed last. */
  reason?: Bytes;
  /** Only jobs with a rule. */
  recurring?: boolean;
  /** How many jobs one step looks at. */
  count?: number;
}

/** Options of `touch`: a new length of the lease, progress, and what is known of the delivery only now. */
export interface TouchOptions extends Corrected {
  ttr?: Duration;
  progress?: string;
}

const LABEL_BYTES = 256;

/** The words of a job's options. Without a label, the kind is it, where it can be. */
export function saidOf({ kind, label, ...rest }: JobOptions): Word[] {
  const isLabel = typeof kind === 'string' && kind !== '' && Buffer.byteLength(kind) <= LABEL_BYTES;
  return said({ ...rest, label: label ?? (isLabel ? kind : undefined) });
}

const JOB: Record<keyof JobOptions, 1> = { ...SAID, kind: 1, headers: 1 };
const AFTER: Record<keyof AfterOptions, 1> = { after: 1, onDead: 1, afterGroup: 1 };
const RULE: Record<keyof RuleOptions, 1> = { id: 1, until: 1, times: 1, grace: 1, jitter: 1, ...JOB };
/** The options of each method. */
export const ADD: Record<keyof AddOptions, 1> = { delay: 1, at: 1, id: 1, ifExists: 1, ...AFTER, ...JOB };
export const EVERY: Record<keyof EveryOptions, 1> = { ...RULE, first: 1 };
export const CRON: Record<keyof CronOptions, 1> = { ...RULE, tz: 1 };
export const NACK: Record<keyof NackOptions, 1> = {
  delay: 1,
  priority: 1,
  mode: 1,
  reason: 1,
  awaits: 1,
  ...AFTER,
};
export const TOUCH: Record<keyof TouchOptions, 1> = { ttr: 1, progress: 1, ...CORRECTED };
export const SETTINGS: Record<keyof Settings, 1> = {
  ttr: 1,
  attempts: 1,
  backoff: 1,
  maxlen: 1,
  maxbytes: 1,
  deadlen: 1,
  dedupe: 1,
  maxreserved: 1,
  rate: 1,
  groupmax: 1,
  grouprate: 1,
  groupfifo: 1,
  donelen: 1,
  donettl: 1,
  donebytes: 1,
  history: 1,
};
export const SCAN: Record<keyof ScanOptions, 1> = {
  state: 1,
  match: 1,
  group: 1,
  payload: 1,
  label: 1,
  awaits: 1,
  reason: 1,
  recurring: 1,
  count: 1,
};

/** The id of a job to be added. */
export function newId(id: Bytes): Buffer {
  const bytes = toBytes(id);
  if (bytes.equals(ANY)) throw new TypeError('id: "*" is not an id; leave it out for a new one');
  between('id', bytes.length, 1, 1024, ' bytes');
  return bytes;
}

const ANY = Buffer.from('*');

export function due(delay: Maybe<Duration>, at: Maybe<Date>): Word[] {
  if (isGiven(delay) && isGiven(at)) throw new TypeError('delay and at cannot be combined');
  return [...ms('DELAY', delay), ...instant('AT', at)];
}

export function rate(name: string, given: Settings['rate']): Word[] {
  if (given === undefined) return [];
  if (given === 0 || given === null) return [name, 0, 0];
  if (!Array.isArray(given) || given.length !== 2) {
    const what = 'a number of jobs and a window, such as [100, 60_000], or 0';
    throw new TypeError(`${name.toLowerCase()} must be ${what}, not ${shown(given)}`);
  }
  const [jobs, window] = given;
  return [name, between(name.toLowerCase(), jobs, 0, 2 ** 32 - 1), toMs(window, `the window of ${name.toLowerCase()}`)];
}

function chosen<T extends object>(name: string, given: keyof T, all: T): T[keyof T] {
  if (Object.hasOwn(all, given)) return all[given];
  throw new TypeError(`${name} must be one of ${Object.keys(all).join(', ')}, not ${shown(given)}`);
}

const CONDITIONS = { replace: 'REPLACE', 'only-replace': 'XX', next: 'NEXT' };

export function condition(ifExists: AddOptions['ifExists']): Word[] {
  if (!isGiven(ifExists)) return [];
  return [chosen('ifExists', ifExists, CONDITIONS)];
}

const ON_DEAD = { wait: 'WAIT', run: 'RUN', die: 'DIE' };

/** An `after` that is missing or empty: the job waits for nothing. */
export function ofAfter({ after, onDead, afterGroup }: AfterOptions): Word[] {
  if (isGiven(after) && !Array.isArray(after))
    throw new TypeError(`after must be an array of ids, not ${shown(after)}`);
  const ids =
    isGiven(after) && after.length > 0
      ? ['AFTER', between('after', after.length, 1, 1000, ' jobs'), ...after.map((id) => toBytes(id))]
      : [];
  const group = isGiven(afterGroup) ? ['AFTER', ...named('GROUP', afterGroup)] : [];
  return [...ids, ...group, ...(isGiven(onDead) ? ['ONDEAD', chosen('onDead', onDead, ON_DEAD)] : [])];
}

export const ofTouch = ({ progress, ...given }: TouchOptions): Word[] => [
  ...said(given),
  ...value('PROGRESS', isGiven(progress) ? bytesOf(progress) : null),
];

export function ofRule({ until, times, grace, jitter }: RuleOptions): Word[] {
  return [
    ...instant('UNTIL', until),
    ...number('TIMES', times, 1, Number.MAX_SAFE_INTEGER),
    ...ms('GRACE', grace),
    ...ms('JITTER', jitter),
  ];
}

const MODES = { fail: 'FAIL', silent: 'SILENT', fatal: 'FATAL' };

export function ofNack({ delay, priority, mode = 'fail', reason, awaits, ...after }: NackOptions): Word[] {
  const how = chosen('mode', mode, MODES);
  const waits = [...value('AWAIT', awaits), ...ofAfter(after)];
  return [
    ...ms('DELAY', delay),
    ...said({ priority }),
    how,
    ...waits,
    ...value('REASON', isGiven(reason) ? bytesOf(reason) : null),
  ];
}

export function ofScan({ count, recurring, ...filters }: ScanOptions): Word[] {
  const patterns = Object.entries(filters).flatMap(([name, given]) =>
    isGiven(given) ? [name.toUpperCase(), toBytes(given)] : [],
  );
  return [...patterns, ...flag('RECURRING', recurring), ...value('COUNT', count)];
}

export function ofSettings({ backoff, ...settings }: Settings): Word[] {
  const isDefault = backoff === 'default';
  return [
    ...said({ ttr: settings.ttr, attempts: settings.attempts, backoff: isDefault ? undefined : backoff }),
    ...(isDefault ? ['BACKOFF', 'DEFAULT'] : []),
    ...amount('MAXLEN', settings.maxlen),
    ...amount('MAXBYTES', settings.maxbytes),
    ...amount('DEADLEN', settings.deadlen),
    ...ms('DEDUPE', settings.dedupe),
    ...amount('MAXRESERVED', settings.maxreserved),
    ...rate('RATE', settings.rate),
    ...amount('GROUPMAX', settings.groupmax),
    ...rate('GROUPRATE', settings.grouprate),
    ...value('GROUPFIFO', isGiven(settings.groupfifo) ? Number(settings.groupfifo) : null),
    ...amount('DONELEN', settings.donelen),
    ...ms('DONETTL', settings.donettl),
    ...amount('DONEBYTES', settings.donebytes),
    ...number('HISTORY', settings.history, 0, 100),
  ];
}

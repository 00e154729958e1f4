// Written from src/queue/attr/rows.rs by `make generated`; DO NOT EDIT.

import type { Duration } from './times';
import type { Word } from './wire';
import { ladder, ms, named, number } from './words';

/** What a job may have. */
export interface Said {
  /** The job's priority: smaller is delivered first. */
  priority?: number;
  /** The length of the job's leases. */
  ttr?: Duration;
  /** How often the job may be delivered; 0: without limit, whatever the queue's settings say. */
  attempts?: number;
  /** The job expires this long after it was added. */
  ttl?: Duration;
  /** The group that the job belongs to, such as a tenant or a user. Groups take turns. */
  group?: string;
  /** How long the job is kept with its result once it is done, whatever the queue keeps; 0: not at all. */
  keep?: Duration;
  /** What a delivery counts towards the rates of the queue and of its group; 1 by default. */
  cost?: number;
  /** The waits after the 1st, 2nd, ... failure; the last one repeats. Empty: no waits. */
  backoff?: readonly Duration[];
  /** What kind of job it is, for those who look; it changes nothing of how the job is served. */
  label?: string;
}

export const SAID: Record<keyof Said, 1> = {
  priority: 1,
  ttr: 1,
  attempts: 1,
  ttl: 1,
  group: 1,
  keep: 1,
  cost: 1,
  backoff: 1,
  label: 1,
};

/** What of it is set anew for the current delivery. */
export interface Corrected {
  /** Sets it for this delivery: what a delivery counts towards the rates of the queue and of its group. */
  cost?: number;
}

export const CORRECTED: Record<keyof Corrected, 1> = {
  cost: 1,
};

export function said(given: Said): Word[] {
  return [
    ...number('PRIORITY', given.priority, -2147483648, 2147483647),
    ...ms('TTR', given.ttr, 1),
    ...number('ATTEMPTS', given.attempts, 0, 4294967295),
    ...ms('TTL', given.ttl, 1),
    ...named('GROUP', given.group, 256),
    ...ms('KEEP', given.keep, 0),
    ...number('COST', given.cost, 1, 1000000),
    ...ladder(given.backoff),
    ...named('LABEL', given.label, 256),
  ];
}

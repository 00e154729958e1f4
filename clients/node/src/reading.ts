// Parts of replies, typed.

import { toText } from './text';
import { asMap } from './wire';

const isNothing = (raw: unknown): raw is null | undefined => raw === null || raw === undefined;

export const maybeText = (raw: unknown): string | null => (isNothing(raw) ? null : String(raw));
export const maybeId = (raw: unknown): string | null => (isNothing(raw) ? null : toText(raw as Buffer));
export const maybeNumber = (raw: unknown): number | null => (isNothing(raw) ? null : Number(raw));

/** An attempt of a job that failed. */
export interface FailedAttempt {
  /** Deliveries by then, with this one. */
  attempts: number;
  started: Date;
  ended: Date;
  how: 'nacked' | 'fatal' | 'timeout';
  reason: string | null;
}

export const historyOf = (reply: unknown): FailedAttempt[] =>
  ((reply ?? []) as unknown[][]).map(([attempts, started, ended, how, reason]) => ({
    attempts: Number(attempts),
    started: new Date(Number(started)),
    ended: new Date(Number(ended)),
    how: String(how) as FailedAttempt['how'],
    reason: maybeText(reason),
  }));

export const stepsOf = (reply: unknown): Map<string, Buffer> => (asMap(reply) ?? new Map()) as Map<string, Buffer>;

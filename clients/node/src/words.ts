// Options as words of commands.

import { steps } from './mistakes';
import { between, type Duration, instantToMs, toMs } from './times';
import type { Word } from './wire';

export type Maybe<T> = T | null | undefined;

export const value = (name: string, given: Maybe<Word>): Word[] =>
  given === null || given === undefined ? [] : [name, given];
export const ms = (name: string, given: Maybe<Duration>, least = 0) =>
  value(name, isGiven(given) ? toMs(given, name.toLowerCase(), least) : null);
export const number = (name: string, given: Maybe<number>, first: number, last: number): Word[] =>
  value(name, isGiven(given) ? between(name.toLowerCase(), given, first, last) : null);
export const amount = (name: string, given: Maybe<number>) => number(name, given, 0, Number.MAX_SAFE_INTEGER);

/** A name that is kept with jobs. */
export function named(name: string, given: Maybe<string>, most = 256): Word[] {
  if (isGiven(given)) between(name.toLowerCase(), Buffer.byteLength(given), 1, most, ' bytes');
  return value(name, given);
}

export const instant = (name: string, given: Maybe<Date>) =>
  value(name, isGiven(given) ? instantToMs(given, name.toLowerCase()) : null);
export const flag = (name: string, given: Maybe<boolean>): Word[] => (given ? [name] : []);

export function isGiven<T>(given: Maybe<T>): given is T {
  return given !== null && given !== undefined;
}

export function ladder(backoff: Maybe<readonly Duration[]>): Word[] {
  if (!isGiven(backoff)) return [];
  return [
    'BACKOFF',
    between('backoff', steps(backoff).length, 0, 1024, ' steps'),
    ...backoff.map((step) => toMs(step, 'backoff')),
  ];
}

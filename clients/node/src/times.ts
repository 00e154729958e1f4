// Durations and instants: milliseconds and Dates here, whole milliseconds on the wire.

import { shown } from './shown';

/** A number of milliseconds. */
export type Duration = number;

/** The duration in whole milliseconds, rounded up: no wait is shorter than asked for. */
export function toMs(duration: Duration, name = 'a duration'): number {
  if (typeof duration !== 'number' || !Number.isFinite(duration)) {
    const example = '30 * 60_000 for 30 minutes';
    throw new TypeError(`${name} must be a number of milliseconds, such as ${example}, not ${shown(duration)}`);
  }
  if (duration < 0) throw new RangeError(`${name} must be 0 or more milliseconds, not ${duration}`);
  return Math.ceil(Math.round(duration * 1000) / 1000);
}

/** The instant in Unix milliseconds. */
export function instantToMs(instant: Date, name = 'an instant'): number {
  if (!(instant instanceof Date) || Number.isNaN(instant.getTime())) {
    throw new TypeError(`${name} is a Date, as new Date(Date.now() + 60_000), not ${shown(instant)}`);
  }
  return instant.getTime();
}

export function fromMs(ms: unknown): Date {
  return new Date(Number(ms));
}

export function maybeFromMs(ms: unknown): Date | null {
  return ms === null || ms === undefined ? null : fromMs(ms);
}

/** Doubles with each attempt. Jitter only adds, so nothing comes too early. */
export function exponentialMs(attempt: number, firstMs: number, longestMs: number): number {
  const JITTER = 0.25;
  return Math.min(longestMs, firstMs * 2 ** Math.min(attempt - 1, 62)) * (1 + JITTER * Math.random());
}

// Durations and instants: milliseconds and Dates here, whole milliseconds on the wire.

import { shown } from './format';

/** A number of milliseconds. */
export type Duration = number;

/** The server's latest instant, and its longest wait, in milliseconds. */
const LATEST_MS = 2 ** 42 - 1;

/** A number within the server's bounds. */
export function between(name: string, given: number, first: number, last: number, unit = ''): number {
  if (typeof given !== 'number' || (unit === '' && !Number.isInteger(given))) {
    throw new TypeError(`${name} must be a whole number, not ${shown(given)}`);
  }
  if (given >= first && given <= last) return given;
  throw new RangeError(`${name}: ${given}${unit} is not between ${first} and ${last}`);
}

/** The duration in whole milliseconds, rounded up: no wait is shorter than asked for. */
export function toMs(duration: Duration, name = 'a duration', leastMs = 0): number {
  if (typeof duration !== 'number' || Number.isNaN(duration)) {
    const example = '30 * 60_000 for 30 minutes';
    throw new TypeError(`${name} must be a number of milliseconds, such as ${example}, not ${shown(duration)}`);
  }
  const ms = Math.ceil(Math.round(duration * 1000) / 1000);
  return between(name, Number.isFinite(ms) ? ms : duration, leastMs, LATEST_MS, ' ms');
}

/** The instant in Unix milliseconds. */
export function instantToMs(instant: Date, name = 'an instant'): number {
  if (!(instant instanceof Date) || Number.isNaN(instant.getTime())) {
    throw new TypeError(`${name} is a Date, as new Date(Date.now() + 60_000), not ${shown(instant)}`);
  }
  return between(name, instant.getTime(), 0, LATEST_MS, ' ms');
}

export function fromMs(ms: unknown): Date {
  return new Date(Number(ms));
}

export function maybeFromMs(ms: unknown): Date | null {
  return ms === null || ms === undefined ? null : fromMs(ms);
}

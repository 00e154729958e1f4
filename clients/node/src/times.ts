// Durations and instants: numbers of milliseconds and Dates here, whole milliseconds on the wire.

/** A number of milliseconds. */
export type Duration = number;

/** In whole milliseconds, rounded up: no wait is shorter than asked for. */
export function toMs(duration: Duration, name = 'a duration'): number {
  if (typeof duration !== 'number' || !Number.isFinite(duration)) {
    throw new TypeError(`${name} is a number of milliseconds, not ${String(duration)}`);
  }
  return Math.ceil(Math.round(duration * 1000) / 1000);
}

/** Unix milliseconds. */
export function instantToMs(instant: Date): number {
  if (!(instant instanceof Date) || Number.isNaN(instant.getTime())) {
    throw new TypeError(`an instant is a Date, not ${String(instant)}`);
  }
  return instant.getTime();
}

export function fromMs(ms: unknown): Date {
  return new Date(Number(ms));
}

export function maybeFromMs(ms: unknown): Date | null {
  return ms === null || ms === undefined ? null : fromMs(ms);
}

/** Doubles with each attempt; the jitter only adds, so nothing comes too early. */
export function exponentialMs(attempt: number, firstMs: number, longestMs: number): number {
  const JITTER = 0.25;
  return Math.min(longestMs, firstMs * 2 ** Math.min(attempt - 1, 62)) * (1 + JITTER * Math.random());
}

// Waiting that can be ended.

/** A timer that is longer fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Wakes the one that waits. */
export class Bell {
  private isRung = false;
  private wake: (() => void) | null = null;

  ring(): void {
    this.isRung = true;
    this.wake?.();
  }

  /** Until it rings, or rang since the last time, or so long. */
  async wait(ms: number): Promise<void> {
    if (!this.isRung && ms > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.wake = null;
    this.isRung = false;
  }
}

/**
 * Calls back after so long, but not before what arrived meanwhile was read: when the event loop stood still, timers come first.
 * Returns what takes it back.
 */
export function afterAll(ms: number, late: () => void): () => void {
  let isOff = false;
  const timer = setTimeout(() => setImmediate(() => isOff || late()), Math.min(ms, LONGEST_TIMER_MS));
  return () => {
    isOff = true;
    clearTimeout(timer);
  };
}

/** Rejects when it takes longer; `onLate` ends what is waited for. */
export async function within<T>(promise: Promise<T>, ms: number, what: string, onLate: () => void): Promise<T> {
  let inTime = () => {};
  const late = new Promise<never>((_, reject) => {
    inTime = afterAll(ms, () => {
      reject(new Error(`${what}: no answer within ${Math.round(ms)} ms`));
      onLate();
    });
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    inTime();
  }
}

export interface Watch {
  /** By how much its next tick is late (or less than nothing): what is read before that may be as old. */
  lateMs(): number;
  end(): void;
}

/** Looks every `ms` whether the event loop stood still, and tells for how long. Returns what ends it. */
export function watch(ms: number, tick: (lateMs: number) => void): Watch {
  let due = nowMs() + ms;
  const timer = setInterval(() => {
    const now = nowMs();
    tick(now - due);
    due = now + ms;
  }, ms);
  return { lateMs: () => nowMs() - due, end: () => clearInterval(timer) };
}

/** Whether all of them ended within that time, however they ended. */
export async function settled(promises: Iterable<Promise<unknown>>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  try {
    return await Promise.race([late, Promise.allSettled(promises).then(() => true)]);
  } finally {
    clearTimeout(timer);
  }
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
/** Lets what is to be done at once be done. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
export const nowMs = () => performance.now();

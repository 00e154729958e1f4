// Waits that can be ended.

/** The longest timer of Node: a longer one fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Wakes a single waiter. */
export class Bell {
  private isRung = false;
  private wake: (() => void) | null = null;

  ring(): void {
    this.isRung = true;
    this.wake?.();
  }

  /** Waits until the bell rings, but at most `ms`. Returns at once if it has rung since the last wait. */
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
 * Calls back after `ms`, but not before data that arrived meanwhile was read: after the event loop was blocked, timers come
 * first. Returns a function that cancels it.
 */
export function afterAll(ms: number, late: () => void): () => void {
  let isOff = false;
  const timer = setTimeout(() => setImmediate(() => isOff || late()), Math.min(ms, LONGEST_TIMER_MS));
  return () => {
    isOff = true;
    clearTimeout(timer);
  };
}

/** Rejects if the promise takes longer than `ms`; `onLate` ends what it waits for. */
export function within<T>(promise: Promise<T>, ms: number, what: string, onLate: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const inTime = afterAll(ms, () => {
      reject(new Error(`${what}: no answer within ${Math.round(ms)} ms`));
      onLate();
    });
    promise.then(
      (value) => {
        inTime();
        resolve(value);
      },
      (error) => {
        inTime();
        reject(error);
      },
    );
  });
}

export interface Watch {
  /** How late the next tick is (negative: not yet due). What is read before that tick may be as old. */
  lateMs(): number;
  end(): void;
}

/** Checks every `ms` whether the event loop was blocked, and passes `tick` for how long. */
export function watch(ms: number, tick: (lateMs: number) => void): Watch {
  let due = nowMs() + ms;
  const timer = setInterval(() => {
    const now = nowMs();
    tick(now - due);
    due = now + ms;
  }, ms);
  return { lateMs: () => nowMs() - due, end: () => clearInterval(timer) };
}

/** Whether all promises settled within `ms`. */
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
/** Lets everything run that is ready to run. */
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
export const nowMs = () => performance.now();

// The one door to the user's code: handlers, hooks and loggers are called here, and what they throw or return is read
// here. Nothing in this file throws or rejects because of them. (Codecs: `decoded` in codec.ts.)

import { Cancelled, GiveUp, Retry, Say, Snooze } from './errors';
import type { Hooks, Logger } from './hooks';
import type { Delivery, Job, Thrown } from './job';
import * as limits from './limits';
import { hush, mayBePromise, Quiet, quietly, valueOf } from './quiet';
import { shown, stackOf, textOf } from './shown';
import { toMs } from './times';
import { afterAll } from './waiting';

// --- What a handler's end means

export type Verdict =
  | { how: 'done' }
  /** `waitMs`: what it asked for. `complaint`: it asked for what is no delay. */
  | { how: 'fail'; reason: string; waitMs: number | null; complaint?: string }
  | { how: 'snooze'; reason: string | null; waitMs: number }
  | { how: 'give up'; reason: string }
  /** As if it had not been delivered. */
  | { how: 'return' };

/** What becomes of a job of those that were handled together, and ended with that. */
export function verdict(delivery: Delivery, together: readonly Delivery[], thrown: Thrown | null): Verdict {
  const ended = delivery.failure ?? thrown;
  if (!ended) return { how: 'done' };
  const { error } = ended;
  const unreadable = together.find((each) => each.unreadable !== null && each.unreadable === error);
  // In a batch, a payload that cannot be decoded is no fault of the others.
  if (unreadable && unreadable !== delivery) return { how: 'return' };
  if (unreadable) return { how: 'give up', reason: unreadable.unreadable!.message };
  try {
    return read(error, delivery.told !== null);
  } catch {
    return { how: 'fail', reason: textOf(error), waitMs: null };
  }
}

/** May throw: a proxy does at each look. */
function read(error: unknown, isTold: boolean): Verdict {
  if (isTold && isAbort(error)) return { how: 'return' };
  if (!(error instanceof Say)) return { how: 'fail', reason: textOf(error), waitMs: null };
  const reason = reasonOf(error);
  if (error instanceof GiveUp) return { how: 'give up', reason: reason ?? 'GiveUp' };
  if (!(error instanceof Retry || error instanceof Snooze)) {
    return { how: 'fail', reason: reason ?? textOf(error), waitMs: null };
  }
  const { waitMs, complaint } = delayOf(error);
  if (error instanceof Snooze && waitMs !== null) return { how: 'snooze', reason, waitMs };
  const name = error instanceof Snooze ? 'Snooze' : 'Retry';
  return { how: 'fail', reason: reason ?? complaint ?? name, waitMs, complaint };
}

function reasonOf(said: Say): string | null {
  try {
    const { reason } = said;
    return reason === undefined || reason === null || reason === '' ? null : textOf(reason);
  } catch (error) {
    return `(no text: ${textOf(error)})`;
  }
}

function delayOf(said: Retry | Snooze): { waitMs: number | null; complaint?: string } {
  let delay: unknown;
  try {
    delay = said.delayMs;
    return { waitMs: Math.max(toMs(delay as number), limits.SHORTEST_DELAY_MS) };
  } catch {
    return { waitMs: null, complaint: `its delay is ${shown(delay)}, which is not a number of milliseconds` };
  }
}

/** Whether it ended because it was told to: what `fetch` and others throw when their signal aborts. */
function isAbort(error: unknown): boolean {
  if (error instanceof Cancelled) return true;
  const { name, code, cause } = (error ?? {}) as { name?: unknown; code?: unknown; cause?: unknown };
  return name === 'AbortError' || code === 'ABORT_ERR' || cause instanceof Cancelled;
}

/** Whether a log need not say that the handler failed. */
export function isSaid(error: unknown): boolean {
  try {
    return error instanceof Say;
  } catch {
    return false;
  }
}

// --- Calling it

/** What a logger throws must not keep a job from being settled. */
export function careful(logger: Logger): Logger {
  const say = (level: keyof Logger) => (message: string) =>
    quietly(
      () => logger[level](message),
      () => {},
    );
  return { info: say('info'), warn: say('warn'), error: say('error') };
}

type Name = keyof Hooks;

export class Guard {
  constructor(
    private readonly hooks: readonly Hooks[],
    readonly log: Logger,
  ) {}

  /** For what the user attached to something of ours. */
  readonly complain = (error: unknown): void => this.log.error(`dq: a listener failed: ${stackOf(error)}`);

  /**
   * Calls that hook of each; null where there is nothing to wait for. They are not waited for if they take too long.
   */
  call(name: Exclude<Name, 'around' | 'adding'>, jobs: readonly Job[], error?: unknown): Promise<unknown> | null {
    const waits = this.hooks.flatMap((hooks) => {
      const made = jobs.map((job) => this.one(name, () => hooks[name]?.(job, error)));
      return made.filter((wait) => wait !== null);
    });
    return waits.length > 0 ? Promise.all(waits) : null;
  }

  private one(name: Name, call: () => unknown): Promise<boolean> | null {
    try {
      const given = call();
      return mayBePromise(given) ? this.inTime(name, given) : null;
    } catch (error) {
      return Promise.resolve(this.failed(name, error));
    }
  }

  /** Whether it ended well, and in time. */
  private inTime(name: Name, given: unknown): Promise<boolean> {
    return new Promise((resolve) => {
      const inTime = afterAll(limits.HOOK_MS, () => {
        this.log.error(`dq: the hook ${name} takes longer than ${limits.HOOK_MS} ms: not waited for`);
        resolve(false);
      });
      const end = (isWell: boolean) => {
        inTime();
        resolve(isWell);
      };
      valueOf(given).then(
        () => end(true),
        (error) => end(this.failed(name, error)),
      );
    });
  }

  private failed(name: Name, error: unknown): false {
    this.log.error(`dq: the hook ${name} failed: ${stackOf(error)}`);
    return false;
  }

  /** The headers as the hooks `adding` leave them. One that fails leaves them as they were. */
  async adding(queue: string, given: Record<string, string> | undefined): Promise<Record<string, string> | undefined> {
    let headers = given;
    for (const hooks of this.hooks) {
      const changed = { ...headers };
      const isWell = (await this.one('adding', () => hooks.adding?.(queue, changed))) ?? true;
      if (isWell) headers = this.readable(changed);
    }
    return headers;
  }

  /** A hook may set headers that are no texts. */
  private readable(headers: Record<string, unknown>): Record<string, string> {
    const texts: Record<string, string> = {};
    for (const [name, value] of Object.entries(Object.getOwnPropertyDescriptors(headers))) {
      if (typeof value.value === 'string') texts[name] = value.value;
      else this.log.error(`dq: the hook adding set the header ${name} to a value that is not text: ignored`);
    }
    return texts;
  }

  /** Runs a handler, inside the hooks `around`. What it threw, or null. Never rejects. */
  handle(jobs: readonly Job[], call: () => unknown): Promise<Thrown | null> {
    return this.layer(0, jobs, call);
  }

  private async layer(n: number, jobs: readonly Job[], call: () => unknown): Promise<Thrown | null> {
    const hooks = this.hooks[n];
    if (!hooks) return ended(call);
    if (!this.hasAround(hooks)) return this.layer(n + 1, jobs, call);
    let inner: Promise<Thrown | null> | null = null;
    let isOver = false;
    const next = () => {
      inner ??= this.layer(n + 1, jobs, call).finally(() => (isOver = true));
      return Quiet.of(inner.then(rethrow));
    };
    const outer = await ended(() => hooks.around!([...jobs], next));
    if (inner === null) {
      this.failed('around', outer ? outer.error : new Error('it did not call next'));
      return this.layer(n + 1, jobs, call);
    }
    // Where it did not wait for the handler, only the handler's own end counts.
    return isOver ? outer : inner;
  }

  private hasAround(hooks: Hooks): boolean {
    try {
      return Boolean(hooks.around);
    } catch (error) {
      return this.failed('around', error);
    }
  }
}

async function ended(call: () => unknown): Promise<Thrown | null> {
  try {
    await valueOf(call());
    return null;
  } catch (error) {
    hush(error); // a promise may be thrown
    return { error };
  }
}

function rethrow(thrown: Thrown | null): void {
  if (thrown) throw thrown.error;
}

// The only place that touches the user's code: handlers, hooks and loggers are called here, and what they throw or return
// is read here. Nothing in this file throws or rejects because of them. (Codecs: `decoded` in codec.ts.)

import { types } from 'node:util';
import { type Codec, encoded } from './codec';
import { unstorable } from './commands';
import { type Delivery, type End, isThrown, type Suspension } from './delivery';
import { Cancelled, ControlError, EncodingError, GiveUp, Retry, Snooze, Suspended } from './errors';
import type { Handler } from './handler';
import type { Around, Hooks, Logger } from './hooks';
import type { Job } from './job';
import type { JobInfo } from './jobinfo';
import * as limits from './limits';
import { hush, mayBePromise, Quiet, quietly, valueOf } from './quiet';
import { shown, stackOf, textOf } from './format';
import { toMs } from './times';
import { afterAll } from './waiting';

// --- What a handler's end means

export type Verdict =
  | { how: 'done'; result: Buffer | null }
  /** `waitMs`: the wait that the handler asked for. `complaint`: what it asked for is not a delay. */
  | { how: 'fail'; reason: string; waitMs: number | null; complaint?: string }
  | { how: 'snooze'; reason: string | null; waitMs: number }
  | { how: 'give up'; reason: string }
  /** Neither a success nor a failure: the job waits for something. */
  | { how: 'suspend'; suspension: Suspension }
  /** Given back as if it had not been delivered. */
  | { how: 'return' };

/** The verdict on one of the jobs that were handled together, whose handler ended with `end`. */
export function verdict(delivery: Delivery, together: readonly Delivery[], end: End, handler: Handler<any>): Verdict {
  if (delivery.suspension) return { how: 'suspend', suspension: delivery.suspension };
  const own = ownEnd(delivery, end, handler);
  if (!isThrown(own)) return doneWith(delivery.codec, own.value);
  const { error } = own;
  const isTrue = (read: () => boolean) => {
    try {
      return read();
    } catch {
      return false;
    }
  };
  const unreadable = together.find((each) => each.unreadable !== null && each.unreadable === error);
  // In a batch, other jobs do not fail because one payload cannot be decoded, or because one job waits.
  if (unreadable && unreadable !== delivery) return { how: 'return' };
  if (unreadable) return { how: 'give up', reason: unreadable.unreadable!.message };
  if (together.some(({ suspension }) => suspension) && isTrue(() => error instanceof Suspended))
    return { how: 'return' };
  try {
    return read(error, delivery.told !== null, handler);
  } catch {
    return { how: 'fail', reason: textOf(error), waitMs: null };
  }
}

/** What the handler said of this job, else what it threw or returned. A batch's return value belongs to no single job. */
export function ownEnd(delivery: Delivery, end: End, handler: Handler<any>): End {
  return delivery.said ?? (handler.batch > 0 && !isThrown(end) ? { value: null } : end);
}

function doneWith(codec: Codec, value: unknown): Verdict {
  if (value === undefined || value === null) return { how: 'done', result: null };
  try {
    const result = encoded(codec, value, 'result');
    if (result.length > limits.RESULT_BYTES) return { how: 'give up', reason: unstorable(result.length) };
    return { how: 'done', result };
  } catch (error) {
    // The handler has done its work: no other attempt would help.
    return { how: 'give up', reason: (error as EncodingError).message };
  }
}

/** May throw: a proxy can throw at each access. */
function read(error: unknown, isTold: boolean, handler: Handler): Verdict {
  if (isTold && isAbort(error)) return { how: 'return' };
  if (!(error instanceof ControlError)) {
    const reason = textOf(error);
    return handler.isFinal(error) ? { how: 'give up', reason } : { how: 'fail', reason, waitMs: null };
  }
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

function reasonOf(said: ControlError): string | null {
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

/** Whether it ended because it was told to: `fetch` and others throw such errors when their signal aborts. */
function isAbort(error: unknown): boolean {
  if (error instanceof Cancelled) return true;
  const { name, code, cause } = (error ?? {}) as { name?: unknown; code?: unknown; cause?: unknown };
  return name === 'AbortError' || code === 'ABORT_ERR' || cause instanceof Cancelled;
}

/** Whether the handler threw it to say how its job goes on, which is not logged as a failure. */
export function isControl(error: unknown): boolean {
  try {
    return error instanceof ControlError;
  } catch {
    return false;
  }
}

// --- Calling the user's code

/** A logger whose errors are ignored: they must not keep a job from being settled. */
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
    private readonly around: readonly Around[] = [],
  ) {}

  /** Logs an error in a listener that the user attached to an object of the library. */
  readonly complain = (error: unknown): void => this.log.error(`dq: a listener failed: ${stackOf(error)}`);

  /**
   * Calls a hook of all `Hooks`. Returns null if there is nothing to wait for. A hook that takes too long is not waited for.
   */
  call(
    name: Exclude<Name, 'context' | 'adding' | 'dead'>,
    jobs: readonly Job[],
    error?: unknown,
  ): Promise<unknown> | null {
    if (this.hooks.length === 0) return null;
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

  /** Whether a hook succeeded in time. */
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

  /** Whether a hook wants to know of deaths. */
  get wantsDead(): boolean {
    return this.hooks.some((hooks) => this.has(hooks, 'dead'));
  }

  /** Calls the hooks `dead`, one after the other, however long they take. */
  async died(queue: string, job: JobInfo): Promise<void> {
    for (const hooks of this.hooks) {
      const end = await ended(() => hooks.dead?.(queue, job));
      if (isThrown(end)) this.failed('dead', end.error);
    }
  }

  private failed(name: Name, error: unknown): false {
    this.log.error(`dq: the hook ${name} failed: ${stackOf(error)}`);
    return false;
  }

  /** The headers as the hooks `adding` leave them. A hook that fails leaves them unchanged. */
  async adding(queue: string, given: Record<string, string> | undefined): Promise<Record<string, string> | undefined> {
    let headers = given;
    for (const hooks of this.hooks) {
      const changed = { ...headers };
      const isWell = (await this.one('adding', () => hooks.adding?.(queue, changed))) ?? true;
      if (isWell) headers = this.readable(changed);
    }
    return headers;
  }

  /** The headers that are texts: a hook may set others. */
  private readable(headers: Record<string, unknown>): Record<string, string> {
    const texts: Record<string, string> = {};
    for (const [name, value] of Object.entries(Object.getOwnPropertyDescriptors(headers))) {
      if (typeof value.value === 'string') texts[name] = value.value;
      else this.log.error(`dq: the hook adding set the header ${name} to a value that is not text: ignored`);
    }
    return texts;
  }

  /** Runs a handler, inside the hooks `context` and the middleware, and calls back, later than it returns. */
  handle(jobs: readonly Job[], handler: Handler, over: (end: End) => void): void {
    if (this.hooks.length === 0 && this.around.length === 0) return begun(handler, jobs, over);
    const given = () => (handler.batch > 0 ? [...jobs] : jobs[0]!);
    const call = () => ended(() => handler.call(jobs));
    const inner = this.around.reduceRight<Call>((next, around) => middleware(around, given, next), call);
    void this.hooks
      .reduceRight<Call>((next, hooks) => this.inContext(hooks, jobs, next), inner)()
      .then(over);
  }

  /** Runs the call inside the hook `context`. What the hook throws or returns changes nothing. */
  private inContext(hooks: Hooks, jobs: readonly Job[], call: Call): Call {
    return async () => {
      if (!this.has(hooks, 'context')) return call();
      const once = callOnce(call);
      const outer = await ended(() => hooks.context!([...jobs], () => once.next()));
      const inner = once.begun();
      if (!inner) this.failed('context', isThrown(outer) ? outer.error : new Error('it did not call next'));
      const end = await once.start();
      if (inner && isThrown(outer) && !(isThrown(end) && end.error === outer.error))
        this.failed('context', outer.error);
      return end;
    };
  }

  private has(hooks: Hooks, name: Name): boolean {
    try {
      return Boolean(hooks[name]);
    } catch (error) {
      return this.failed(name, error);
    }
  }
}

type Call = () => Promise<End>;

/** What middleware throws is the handler's error, what it returns the result; but not before the handler has ended. */
function middleware(around: Around, given: () => unknown, call: Call): Call {
  return async () => {
    const once = callOnce(call);
    const outer = await ended(() => around(given(), () => once.next()));
    const inner = once.begun();
    if (!inner || once.isOver()) return outer;
    const end = await inner;
    return isThrown(end) ? end : outer;
  };
}

/** For user code that may call `next` twice, too late, or without waiting for it. */
function callOnce(call: Call) {
  let begun: Promise<End> | null = null;
  let isOver = false;
  let isTooLate = false;
  const start = () => (begun ??= call().finally(() => (isOver = true)));
  return {
    start,
    next(): Promise<unknown> {
      const end = isTooLate && !begun ? Promise.reject(new Error('next was called too late')) : start().then(unwrap);
      return Quiet.of(end);
    },
    /** The call if it has begun. From now on it cannot begin. */
    begun() {
      isTooLate = true;
      return begun;
    },
    isOver: () => isOver,
  };
}

/** Calls a handler as `ended` does, but a promise that is nobody's own class is not awaited: its end is called back. */
function begun(handler: Handler, jobs: readonly Job[], over: (end: End) => void): void {
  let given: unknown;
  const failed = (error: unknown) => {
    hush(error); // a promise may be thrown
    over({ error });
  };
  try {
    given = handler.call(jobs);
    if (types.isPromise(given) && given.constructor === Promise) {
      Promise.prototype.then.call(given, (value) => over({ value }), failed);
      return;
    }
  } catch (error) {
    return queueMicrotask(() => failed(error));
  }
  if (mayBePromise(given)) void ended(() => given).then(over);
  else queueMicrotask(() => over({ value: given }));
}

async function ended(call: () => unknown): Promise<End> {
  try {
    const given = call();
    return { value: mayBePromise(given) ? await given : given };
  } catch (error) {
    hush(error); // a promise may be thrown
    return { error };
  }
}

function unwrap(end: End): unknown {
  if (isThrown(end)) throw end.error;
  return end.value;
}

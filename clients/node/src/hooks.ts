// Where other code joins in: logging, metrics, tracing.

import type { Job } from './job';

/**
 * Give what you need. A hook may return a promise, which is awaited, but not for longer than 5 s. What a hook throws is
 * logged, and changes nothing.
 */
export interface Hooks {
  /** A job is about to be added; headers may be set. For a `Queue`. */
  adding?(queue: string, headers: Record<string, string>): unknown;
  /** Its handler is about to run. */
  before?(job: Job): unknown;
  /**
   * Runs the handler: calls `next`, and waits for what it returns. For contexts, as of AsyncLocalStorage: how the handler ended
   * stays as it is. See `around` of a worker, which may change that.
   */
  context?(jobs: readonly Job[], next: () => unknown): unknown;
  /** Its handler ended without an error. */
  after?(job: Job): unknown;
  /** Its handler ended with an error, or with what it may throw to say how the job goes on. */
  failed?(job: Job, error: unknown): unknown;
  /** Its handler waits for a time, a signal or other jobs: this attempt has ended, and another one follows. */
  suspended?(job: Job): unknown;
  /** The job was cancelled, or another worker may have it, as its lease expired before it was acknowledged. */
  lost?(job: Job): unknown;
}

/**
 * Middleware: it gets the job (of a batch, the array), calls `next` and returns what that returns, or something else. What it
 * throws is the handler's error; where it does not call `next`, the handler does not run.
 */
export type Around<J = any> = (job: J, next: () => Promise<any>) => unknown;

/** As of console, pino or winston. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

const say = (message: string) => console.error(`${new Date().toISOString()} ${message}`);

/** All goes to the console, on standard error, with the time. */
export const consoleLogger: Logger = { info: say, warn: say, error: say };

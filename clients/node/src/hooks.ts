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
   * Runs the handler: call `next` and return what it returns. For contexts, as of AsyncLocalStorage, and transactions: what
   * it throws after `next` is the handler's error.
   */
  around?(jobs: readonly Job[], next: () => unknown): unknown;
  /** Its handler ended without an error. */
  after?(job: Job): unknown;
  /** Its handler ended with an error, or with what it may throw to say how the job goes on. */
  failed?(job: Job, error: unknown): unknown;
  /** Another worker may have the job, as its lease expired before it was acknowledged. */
  lost?(job: Job): unknown;
}

/** As of console, pino or winston. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

const say = (message: string) => console.error(`${new Date().toISOString()} ${message}`);

/** All goes to the console, on standard error, with the time. */
export const consoleLogger: Logger = { info: say, warn: say, error: say };

// Where other code joins in: logging, metrics, tracing.

import type { Job } from './job';

/** Give what you need. What a hook throws is logged, and changes nothing. */
export interface Hooks {
  /** A job is about to be added; headers may be set. For a `Queue`. */
  adding?(queue: string, headers: Record<string, string>): void;
  /** Its handler is about to run. */
  before?(job: Job): void;
  /** Runs the handler: call `next` and return what it returns. For contexts, as of AsyncLocalStorage. */
  around?(jobs: readonly Job[], next: () => unknown): unknown;
  /** Its handler ended without an error. */
  after?(job: Job): void;
  /** Its handler ended with an error, or with what it may throw to say how the job goes on. */
  failed?(job: Job, error: unknown): void;
  /** Another worker may have the job, as its lease ended before it was acknowledged. */
  lost?(job: Job): void;
}

/** As of console, pino or winston. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Warnings and errors go to the console, the rest nowhere. */
export const consoleLogger: Logger = {
  info: () => {},
  warn: (message) => console.warn(message),
  error: (message) => console.error(message),
};

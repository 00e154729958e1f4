// Hooks: where logging, metrics and tracing join in.

import type { Job } from './job';
import type { JobInfo } from './jobinfo';

/**
 * Give the methods that you need. A hook may return a promise, which is awaited for at most 5 s. What a hook throws is logged,
 * and changes nothing.
 */
export interface Hooks {
  /** A job is about to be added; the hook may set headers. For hooks of a `Queue`. */
  adding?(queue: string, headers: Record<string, string>): unknown;
  /** The handler is about to run. */
  before?(job: Job): unknown;
  /**
   * Runs the handler: calls `next`, and waits for its promise. For contexts, such as AsyncLocalStorage: it cannot change how
   * the handler ended. `around` of a worker can.
   */
  context?(jobs: readonly Job[], next: () => unknown): unknown;
  /** The handler ended without an error. */
  after?(job: Job): unknown;
  /** The handler ended with an error, or threw how its job goes on, such as `Retry`. */
  failed?(job: Job, error: unknown): unknown;
  /** The attempt is over, uncounted: the job waits for a time, a signal or other jobs, and then begins again. */
  suspended?(job: Job): unknown;
  /** The job was cancelled, or its lease expired before it was acknowledged, so another worker may have it. */
  lost?(job: Job): unknown;
  /**
   * The job died: its attempts are used up, its handler gave it up, or a job that it was after died. Called by the worker that
   * the server told, for one job at a time, and awaited without a limit. If the job died with its lease or with another one,
   * each worker that has this hook finds that, at the latest a lease later: a job may be told of more than once. Not found is
   * what died before the worker's start, and what the queue's DEADLEN took before. A stop waits for it as for handlers.
   */
  dead?(queue: string, job: JobInfo): unknown;
}

/**
 * Middleware: it gets the job (in a batch, the array), calls `next` and returns what that returns, or something else. What it
 * throws is the handler's error. If it does not call `next`, the handler does not run.
 */
export type Around<J = any> = (job: J, next: () => Promise<unknown>) => unknown;

/** A logger: console, pino, winston or the like. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

const say = (message: string) => console.error(`${new Date().toISOString()} ${message}`);

/** Logs everything to the console, on standard error, with the time. */
export const consoleLogger: Logger = { info: say, warn: say, error: say };

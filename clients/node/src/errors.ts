// Errors, and what a handler may throw to say how its job goes on.

import { textOf } from './format';
import type { Duration } from './times';

/** The base of this package's errors. */
export class DqError extends Error {
  override name = this.constructor.name;
}

/** The worker cannot run as it is configured; waiting would not help. The message says what to do. */
export class ConfigurationError extends DqError {}

/** What is known of a command that the server refuses; null where its answer does not tell. */
export interface Refusal {
  /** The first word of the answer: `ERR`, `NOPERM`, `OOM`, `WRONGTYPE`, ... */
  readonly code: string;
  /** The answer, without that word. */
  readonly said: string;
  /** The job's. */
  readonly id: string | null;
  /** What is refused, such as `tz`. */
  readonly argument: string | null;
  /** What that was. */
  readonly value: string | number | null;
}

/** The server refuses a command. `cause` is the client's error. */
export class Refused extends DqError implements Refusal {
  declare readonly code: string;
  declare readonly said: string;
  declare readonly id: string | null;
  declare readonly argument: string | null;
  declare readonly value: string | number | null;

  constructor(text: string, refusal: Refusal, cause?: unknown) {
    super(text, { cause });
    Object.assign(this, refusal);
  }
}

/** The queue has reached its MAXLEN or MAXBYTES. Of many jobs some may have been added: then the message says how many. */
export class QueueFull extends Refused {}

/** What was waited for did not come in time, or the handler took longer than its timeout. */
export class TimedOut extends DqError {
  constructor(
    text: string,
    /** The job that was waited for, or whose handler it was. */
    readonly id: string,
    readonly timeoutMs: Duration,
  ) {
    super(text);
  }
}

/** The queue's codec cannot read the payload. `job.payload` still has its bytes. */
export class PayloadError extends DqError {}

/** The queue's codec cannot encode a result or the value of a step. */
export class EncodingError extends DqError {}

/** A job that was waited for has no result: it is dead, was deleted, has expired, or is unknown. */
export class JobFailed extends DqError {
  constructor(
    /** The job's id. */
    readonly id: string,
    /**
     * `unknown`: the queue has no such job. It may have been done: results can be read later if the job has a `keep` or the
     * queue a DONETTL.
     */
    readonly outcome: 'dead' | 'deleted' | 'expired' | 'unknown',
    /** The reason of a dead job's last failure. */
    readonly reason: string | null,
  ) {
    super(`job ${id} ${FATES[outcome]}${reason ? `: ${reason}` : ''}`);
  }
}

const FATES = {
  dead: 'is dead',
  deleted: 'was deleted',
  expired: 'has expired',
  unknown:
    'is not in the queue: it ended before and was not kept (KEEP of the job or DONETTL of the queue keeps results), ' +
    'or it was never there',
};

/** A handler misused steps: a name was used twice, or is reserved. */
export class StepError extends DqError {}

/** Why a handler is told to stop. */
export type Why = 'lost' | 'stopping' | 'timeout';

/** Base of what a handler throws (or gives to `job.fail`) to say how its job goes on. The reason may be an error. */
export class ControlError extends DqError {
  readonly reason: string | undefined;

  constructor(reason?: unknown) {
    const text = reason === undefined || reason === null ? undefined : textOf(reason);
    super(text ?? '');
    this.reason = text;
  }
}

/** This attempt failed; try again after `delay` instead of the wait that the backoff says. */
export class Retry extends ControlError {
  constructor(
    readonly delayMs: Duration,
    reason?: unknown,
  ) {
    super(reason);
  }
}

/** Not now: try again after `delay`; this attempt does not count. */
export class Snooze extends ControlError {
  constructor(
    readonly delayMs: Duration,
    reason?: unknown,
  ) {
    super(reason);
  }
}

/** This job cannot succeed: it is dead now, whatever attempts it has left. */
export class GiveUp extends ControlError {}

/**
 * The reason of `job.signal` once the job was lost, its handler's timeout is over, or the worker stops.
 *
 * If the worker stops, a handler that throws it, or the AbortError of what it gave the signal to, gives its job back,
 * uncounted.
 */
export class Cancelled extends ControlError {
  constructor(readonly why: Why) {
    super(why);
  }
}

/**
 * Thrown by `job.sleep`, `job.wait`, `job.waitFor` and `job.spawn` to end the attempt. Let it pass: catching it changes
 * nothing.
 */
export class Suspended extends ControlError {}

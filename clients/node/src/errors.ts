// What a handler may throw to say how its job goes on, and what can go wrong.

import { textOf } from './shown';
import type { Duration } from './times';

/** The base of this package's errors. */
export class DqError extends Error {
  override name = this.constructor.name;
}

/** The worker cannot run as it is configured; waiting would not help. The message says what to do. */
export class ConfigurationError extends DqError {}

/** The queue has reached its MAXLEN or MAXBYTES; nothing was added. */
export class QueueFull extends DqError {}

/** The payload is not what the queue's codec reads. `job.payload` still has its bytes. */
export class PayloadError extends DqError {}

/** The queue's codec cannot make bytes of a result or of a step's value. */
export class EncodingError extends DqError {}

/** The job that was waited for has ended, and not by a handler's success. */
export class JobFailed extends DqError {
  constructor(
    /** The job's id. */
    readonly id: string,
    /**
     * `unknown`: the server holds no such job. It may have succeeded: results of jobs with a `keep`, and of queues with a
     * DONETTL, can be read later.
     */
    readonly outcome: 'dead' | 'deleted' | 'expired' | 'unknown',
    /** Of a dead job: what its last failure said. */
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

/** What a handler did with steps that cannot be: a name used twice, or one that is reserved. */
export class StepError extends DqError {}

/** Why a handler is told to end. */
export type Why = 'lost' | 'stopping' | 'timeout';

/** The base of what a handler throws (or gives to `job.fail`) to decide how its job goes on. Its reason may be an error. */
export class ControlError extends DqError {
  readonly reason: string | undefined;

  constructor(reason?: unknown) {
    const text = reason === undefined || reason === null ? undefined : textOf(reason);
    super(text ?? '');
    this.reason = text;
  }
}

/** This attempt failed; try again after `delay`, instead of what the ladder says. */
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
 * The reason of `job.signal` once the job was lost, its handler took longer than its timeout, or the worker stops.
 *
 * A job of a worker that stops is given back uncounted when its handler throws this, or the AbortError of what it gave the
 * signal to.
 */
export class Cancelled extends ControlError {
  constructor(readonly why: Why) {
    super(why);
  }
}

/**
 * What `job.sleep`, `job.wait`, `job.waitFor` and `job.spawn` throw to end the attempt: let it pass. Where it is caught, the
 * attempt has ended all the same.
 */
export class Suspended extends ControlError {}

/** A handler took longer than its timeout. */
export class TimedOut extends ControlError {}

/** What was waited for did not come in time: a TimeoutError, as of AbortSignal.timeout. */
export const timeoutError = (text: string) => new DOMException(text, 'TimeoutError');

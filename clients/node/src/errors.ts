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

/** The base of what a handler throws (or gives to `job.fail`) to say how its job goes on. Its reason may be an error. */
export class Say extends DqError {
  readonly reason: string | undefined;

  constructor(reason?: unknown) {
    const text = reason === undefined || reason === null ? undefined : textOf(reason);
    super(text ?? '');
    this.reason = text;
  }
}

/** This attempt failed; try again after `delay`, instead of what the ladder says. */
export class Retry extends Say {
  constructor(
    readonly delayMs: Duration,
    reason?: unknown,
  ) {
    super(reason);
  }
}

/** Not now: try again after `delay`; this attempt does not count. */
export class Snooze extends Say {
  constructor(
    readonly delayMs: Duration,
    reason?: unknown,
  ) {
    super(reason);
  }
}

/** This job cannot succeed: it is dead now, whatever attempts it has left. */
export class GiveUp extends Say {}

/**
 * The reason of `job.signal` once the job was lost or the worker stops.
 *
 * A job of a worker that stops is given back uncounted when its handler throws this, or the AbortError of what it gave the
 * signal to.
 */
export class Cancelled extends Say {
  constructor(readonly why: 'lost' | 'stopping') {
    super(why);
  }
}

package io.github.redisdq;

import java.time.Duration;

/** Not now: the job comes again after {@code delay}, and this attempt does not count. */
public final class SnoozeException extends ControlException {
    final Duration delay;

    public SnoozeException(Duration delay) {
        this(delay, null);
    }

    /** The job keeps the reason. */
    public SnoozeException(Duration delay, String reason) {
        super(reason);
        this.delay = delay;
    }
}

package io.github.redisdq;

import java.time.Duration;

/** Not now: the job is tried again after {@code delay}, and this attempt does not count. */
public final class SnoozeException extends ControlException {
    final Duration delay;

    public SnoozeException(Duration delay) {
        this(delay, null);
    }

    /** The reason stays with the job. */
    public SnoozeException(Duration delay, String reason) {
        super(reason);
        this.delay = delay;
    }
}

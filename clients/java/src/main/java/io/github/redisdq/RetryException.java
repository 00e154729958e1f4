package io.github.redisdq;

import java.time.Duration;

/** This attempt failed: the job is tried again after {@code delay}, whatever its backoff says. */
public final class RetryException extends ControlException {
    final Duration delay;

    public RetryException(Duration delay) {
        this(delay, null);
    }

    public RetryException(Duration delay, String reason) {
        super(reason);
        this.delay = delay;
    }
}

package io.github.redisdq;

/** Thrown by a handler, or given to {@link Job#fail}, to decide how its job goes on. */
public abstract sealed class ControlException extends DqException
        permits CancelledException, GiveUpException, RetryException, SnoozeException {
    ControlException(String reason) {
        super(reason, null);
    }
}

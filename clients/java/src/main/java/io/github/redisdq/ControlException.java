package io.github.redisdq;

/** What a handler throws, or gives to {@link Job#fail}, to decide how its job goes on. */
public abstract sealed class ControlException extends DqException
        permits CancelledException, GiveUpException, RetryException, SnoozeException {
    ControlException(String reason) {
        super(reason, null);
    }
}

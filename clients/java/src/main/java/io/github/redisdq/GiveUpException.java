package io.github.redisdq;

/** The job cannot succeed: it is dead now, whatever attempts it has left. */
public final class GiveUpException extends ControlException {
    public GiveUpException(String reason) {
        super(reason);
    }
}

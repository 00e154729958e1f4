package io.github.redisdq;

/**
 * Ends an attempt whose job sleeps or waits: {@link Job#sleep}, {@link Job#awaitSignal}, {@link Job#waitFor} and
 * {@link Job#spawn} throw it. Not to be caught: the attempt has ended. It is no Exception, so that a handler that catches
 * those does not catch this.
 */
public final class SuspendedError extends Error {
    private static final long serialVersionUID = 1;

    SuspendedError(String what) {
        super(what, null, false, false);
    }
}

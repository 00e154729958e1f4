package io.github.redisdq;

/**
 * Ends an attempt whose job sleeps or waits: {@link Job#sleep}, {@link Job#waitSignal}, {@link Job#waitFor} and
 * {@link Job#spawn} throw it. Do not catch it: the attempt has ended. It is an Error, so handlers that catch Exception
 * do not catch it.
 */
public final class SuspendedError extends Error {
    private static final long serialVersionUID = 1;

    SuspendedError(String what) {
        super(what, null, false, false);
    }
}

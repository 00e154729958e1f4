package io.github.redisdq;

import java.util.Locale;

/** Thrown by {@link Job#check()} once the job was lost or the worker stops. */
public final class CancelledException extends ControlException {
    CancelledException(CancelReason why) {
        super(why.name().toLowerCase(Locale.ROOT));
    }
}

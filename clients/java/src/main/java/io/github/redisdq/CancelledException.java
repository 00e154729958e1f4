package io.github.redisdq;

import java.util.Locale;

/** Thrown by {@link Job#check()} once the handler was told to end: see {@link CancelReason}. */
public final class CancelledException extends ControlException {
    CancelledException(CancelReason why) {
        super(why.name().toLowerCase(Locale.ROOT));
    }
}

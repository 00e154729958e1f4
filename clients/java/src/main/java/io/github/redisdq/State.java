package io.github.redisdq;

import java.util.Locale;

/** The state of a job. */
public enum State {
    BLOCKED,
    DELAYED,
    READY,
    RESERVED,
    DEAD,
    DONE,
    /** A state that this library does not know: the server's module is newer. */
    OTHER;

    static State of(Object reply) {
        if (reply == null) {
            return null;
        }
        String name = String.valueOf(Reply.text(reply)).toUpperCase(Locale.ROOT);
        for (State each : values()) {
            if (each.name().equals(name)) {
                return each;
            }
        }
        return OTHER;
    }
}

package io.github.redisdq;

import java.util.Locale;

/** Of a job. */
public enum State {
    DELAYED,
    READY,
    RESERVED,
    DEAD;

    static State of(Object reply) {
        return reply == null ? null : valueOf(Reply.text(reply).toUpperCase(Locale.ROOT));
    }
}

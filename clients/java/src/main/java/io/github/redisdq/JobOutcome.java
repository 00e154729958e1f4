package io.github.redisdq;

import java.util.Locale;

/** How a job ended. */
public enum JobOutcome {
    DONE,
    DEAD,
    DELETED,
    EXPIRED,
    /** It ended before without being kept, or was never there; or it is still to end, where a job was kicked out of its wait. */
    UNKNOWN;

    static JobOutcome of(Object reply) {
        String name = String.valueOf(Reply.text(reply)).toUpperCase(Locale.ROOT);
        for (JobOutcome each : values()) {
            if (each.name().equals(name)) {
                return each;
            }
        }
        return UNKNOWN;
    }

    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}

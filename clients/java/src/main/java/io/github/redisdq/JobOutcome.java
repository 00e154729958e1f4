package io.github.redisdq;

import java.util.Locale;

/** How a job ended. */
public enum JobOutcome {
    DONE,
    DEAD,
    DELETED,
    EXPIRED,
    /**
     * The job ended before, without being kept, or never existed. Or it has not ended yet, if the job that waited was
     * kicked.
     */
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

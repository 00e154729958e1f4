package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;

/** What {@link DqQueue#reschedule} changes: a due time, a priority, or both. */
public final class RescheduleOptions {
    private final Words words = new Words();

    /** How long from now the jobs are due. */
    public RescheduleOptions delay(Duration delay) {
        words.value("DELAY", delay);
        return this;
    }

    /** When the jobs are due. */
    public RescheduleOptions at(Instant at) {
        words.value("AT", at);
        return this;
    }

    /** Smaller is delivered first. */
    public RescheduleOptions priority(int priority) {
        words.value("PRIORITY", priority);
        return this;
    }

    Words words() {
        if (words.all().length == 0) {
            throw new IllegalArgumentException("reschedule needs a new delay, at or priority");
        }
        return words;
    }
}

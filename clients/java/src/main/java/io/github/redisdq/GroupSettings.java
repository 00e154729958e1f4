package io.github.redisdq;

import java.time.Duration;

/** What a group has of its own, for {@link QueueGroup#set}. What is not set stays as it is; 0 is no limit. */
public final class GroupSettings {
    private final Words words = new Words();

    /** How many deliveries its turn lasts, 1 to 1000. */
    public GroupSettings weight(int deliveries) {
        words.value("WEIGHT", deliveries);
        return this;
    }

    /** How many of its jobs may run at a time. */
    public GroupSettings max(long jobs) {
        words.value("MAX", jobs);
        return this;
    }

    /** How many of its jobs, weighted by their cost, may begin in any window of that length; 0, whatever the window: any number. */
    public GroupSettings rate(long jobs, Duration window) {
        words.rate("RATE", jobs, window);
        return this;
    }

    /** How many jobs it may have. */
    public GroupSettings maxLen(long jobs) {
        words.value("MAXLEN", jobs);
        return this;
    }

    Words words() {
        return words;
    }
}

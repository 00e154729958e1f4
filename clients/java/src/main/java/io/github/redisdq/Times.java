package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;

/** Durations and instants in whole milliseconds, rounded up: no wait is shorter than asked for. */
final class Times {
    private static final long MOST_SECONDS = Long.MAX_VALUE / 1000 - 1;
    private static final Duration LONGEST = Duration.ofDays(36_500);

    private Times() {}

    /** A duration too long for a long becomes Long.MAX_VALUE, which the server refuses with an error. */
    static long ms(Duration duration) {
        if (duration.getSeconds() >= MOST_SECONDS) {
            return Long.MAX_VALUE;
        }
        long whole = duration.toMillis();
        return duration.compareTo(Duration.ofMillis(whole)) > 0 ? whole + 1 : whole;
    }

    static long ms(Instant instant) {
        if (Math.abs(instant.getEpochSecond()) >= MOST_SECONDS) {
            return instant.getEpochSecond() < 0 ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
        long whole = instant.toEpochMilli();
        return instant.isAfter(Instant.ofEpochMilli(whole)) ? whole + 1 : whole;
    }

    /** Checks a lease. */
    static Duration lease(Duration lease) {
        return length("a lease", lease);
    }

    static Duration length(String what, Duration length) {
        if (length.isNegative() || length.isZero() || length.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(what + " must be longer than 0 and at most " + LONGEST.toDays() + " days, not " + length);
        }
        return length;
    }

    static Duration min(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? one : other;
    }

    static Duration max(Duration one, Duration other) {
        return one.compareTo(other) > 0 ? one : other;
    }
}

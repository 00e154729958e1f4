package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ThreadLocalRandom;

/** Durations and instants in whole milliseconds, rounded up: no wait is shorter than asked for. */
final class Times {
    private static final double JITTER = 0.25;

    private Times() {}

    static long ms(Duration duration) {
        long whole = duration.toMillis();
        return duration.compareTo(Duration.ofMillis(whole)) > 0 ? whole + 1 : whole;
    }

    static long ms(Instant instant) {
        long whole = instant.toEpochMilli();
        return instant.isAfter(Instant.ofEpochMilli(whole)) ? whole + 1 : whole;
    }

    /** Doubles with each attempt; the jitter only adds, so nothing comes too early. */
    static Duration exponential(int attempt, Duration first, Duration longest) {
        double grown = Math.min(longest.toMillis(), first.toMillis() * Math.pow(2, Math.min(attempt - 1, 62)));
        return Duration.ofMillis((long) Math.ceil(grown * (1 + JITTER * ThreadLocalRandom.current().nextDouble())));
    }

    static Duration min(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? one : other;
    }

    static Duration max(Duration one, Duration other) {
        return one.compareTo(other) > 0 ? one : other;
    }
}

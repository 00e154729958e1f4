package io.github.redisdq.testing;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.function.Function;

/**
 * The server's clock. It stands still, begins at the real time, and never goes back. When a method returns, everything
 * that became due on the way has happened.
 */
public final class Clock {
    private final Function<String[], Object> server;

    Clock(Function<String[], Object> server) {
        this.server = server;
    }

    public Instant now() {
        return ask("GET").orElseThrow();
    }

    public Instant advance(Duration duration) {
        return ask("ADVANCE", String.valueOf(duration.plusNanos(999_999).toMillis())).orElseThrow();
    }

    public Instant set(Instant instant) {
        return ask("SET", String.valueOf(instant.plusNanos(999_999).toEpochMilli())).orElseThrow();
    }

    /** Moves the clock to the next instant at which anything happens, and returns it; empty: nothing will happen. */
    public Optional<Instant> next() {
        return ask("NEXT");
    }

    private Optional<Instant> ask(String... words) {
        String[] all = new String[words.length + 1];
        all[0] = "DQ.CLOCK";
        System.arraycopy(words, 0, all, 1, words.length);
        return Optional.ofNullable((Long) server.apply(all)).map(Instant::ofEpochMilli);
    }
}

package io.github.redisdq;

import java.math.BigDecimal;
import java.time.Duration;

/** What was waited for did not come in time, or, for {@link Hooks#failed}, a handler took longer than its timeout. */
public final class TimedOutException extends DqException {
    private final String id;
    private final Duration timeout;

    TimedOutException(String message, String id, Duration timeout) {
        super(message, null);
        this.id = id;
        this.timeout = timeout;
    }

    /** The handler of the job took too long. */
    TimedOutException(String id, Duration timeout) {
        this(text(timeout), id, timeout);
    }

    static String text(Duration limit) {
        BigDecimal seconds = BigDecimal.valueOf(Times.ms(limit)).movePointLeft(3).stripTrailingZeros();
        return "timeout after " + seconds.toPlainString() + " s";
    }

    /** The job that was waited for, or that waited for a signal, or whose handler it was. */
    public String id() {
        return id;
    }

    public Duration timeout() {
        return timeout;
    }
}

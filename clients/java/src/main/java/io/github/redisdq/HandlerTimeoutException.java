package io.github.redisdq;

import java.math.BigDecimal;
import java.time.Duration;

/** A handler took longer than its timeout: for {@link Hooks#failed}. */
public final class HandlerTimeoutException extends DqException {
    HandlerTimeoutException(Duration limit) {
        super(text(limit), null);
    }

    static String text(Duration limit) {
        BigDecimal seconds = BigDecimal.valueOf(Times.ms(limit)).movePointLeft(3).stripTrailingZeros();
        return "timeout after " + seconds.toPlainString() + " s";
    }
}

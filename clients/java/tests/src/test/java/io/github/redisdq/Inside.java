package io.github.redisdq;

import java.time.Duration;

/** What the probe needs of the library's inside. */
public final class Inside {
    private Inside() {}

    /** Has workers ask sooner why they get no jobs. */
    public static void idleAfter(Duration after) {
        Idle.after = after;
    }

    /** Bytes as the text of an id. */
    public static String text(byte[] raw) {
        return Bytes.text(raw);
    }
}

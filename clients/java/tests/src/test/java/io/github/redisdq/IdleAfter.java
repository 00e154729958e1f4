package io.github.redisdq;

import java.time.Duration;

/** Has workers ask sooner why they get no jobs. */
public final class IdleAfter {
    private IdleAfter() {}

    public static void set(Duration after) {
        Idle.after = after;
    }
}

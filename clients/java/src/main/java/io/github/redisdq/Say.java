package io.github.redisdq;

import java.time.Duration;

/**
 * What a handler throws, or gives to {@link Job#fail}, to say how its job goes on. Its factories are {@link #retryIn},
 * {@link #snooze} and {@link #giveUp}.
 */
public abstract sealed class Say extends DqException {
    private Say(String reason, Throwable cause) {
        super(reason, cause);
    }

    /** This attempt failed; try again after {@code delay}, instead of what the ladder says. */
    public static Retry retryIn(Duration delay, String reason) {
        return new Retry(delay, reason);
    }

    /** This attempt failed; try again after {@code delay}, instead of what the ladder says. */
    public static Retry retryIn(Duration delay) {
        return new Retry(delay, null);
    }

    /** Not now: try again after {@code delay}; this attempt does not count. */
    public static Snooze snooze(Duration delay) {
        return new Snooze(delay, null);
    }

    /** As {@link #snooze(Duration)}; the reason stays with the job. */
    public static Snooze snooze(Duration delay, String reason) {
        return new Snooze(delay, reason);
    }

    /** This job cannot succeed: it is dead now, whatever attempts it has left. */
    public static GiveUp giveUp(String reason) {
        return new GiveUp(reason);
    }

    /** See {@link Say#retryIn(Duration)}. */
    public static final class Retry extends Say {
        final Duration delay;

        private Retry(Duration delay, String reason) {
            super(reason, null);
            this.delay = delay;
        }
    }

    /** See {@link Say#snooze(Duration)}. */
    public static final class Snooze extends Say {
        final Duration delay;

        private Snooze(Duration delay, String reason) {
            super(reason, null);
            this.delay = delay;
        }
    }

    /** See {@link Say#giveUp(String)}. */
    public static final class GiveUp extends Say {
        private GiveUp(String reason) {
            super(reason, null);
        }
    }

    /** Thrown by {@link Job#check()} once the job was lost or the worker stops. */
    public static final class Cancelled extends Say {
        Cancelled(Told why) {
            super(why.name().toLowerCase(java.util.Locale.ROOT), null);
        }
    }
}

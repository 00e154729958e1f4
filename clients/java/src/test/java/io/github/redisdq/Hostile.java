package io.github.redisdq;

import java.io.IOException;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Map;

/** All that a program can throw: by name, what makes it. What leaves something behind does so, too. */
final class Hostile {
    private Hostile() {}

    interface Thrower {
        void run() throws Throwable;
    }

    static class Unspeakable extends RuntimeException {
        @Override
        public String getMessage() {
            throw new IllegalStateException("no message");
        }
    }

    static class Unprintable extends RuntimeException {
        @Override
        public String toString() {
            throw new StackOverflowError();
        }

        @Override
        public void printStackTrace(java.io.PrintStream out) {
            throw new NoSuchMethodError("printStackTrace");
        }
    }

    static class Endless extends RuntimeException {
        @Override
        public String getMessage() {
            return toString(); // which asks for the message
        }
    }

    private static void recurse() {
        recurse();
    }

    private static Thrower throwing(Throwable error) {
        return () -> {
            throw error;
        };
    }

    static Map<String, Thrower> all() {
        Duration forEver = ChronoUnit.FOREVER.getDuration();
        Duration negative = Duration.ofSeconds(Long.MIN_VALUE);
        Duration century = Duration.ofDays(36_500);
        Map<String, Thrower> all = new LinkedHashMap<>();
        all.put("no message can be had", throwing(new Unspeakable()));
        all.put("no text can be had", throwing(new Unprintable()));
        all.put("a message without end", throwing(new Endless()));
        all.put("a class without a name", throwing(new RuntimeException() {}));
        all.put("no message", throwing(new RuntimeException((String) null)));
        all.put("half characters", throwing(new RuntimeException("\udc80 \ud800 \u0000")));
        all.put("a long message", throwing(new RuntimeException("ä".repeat(1 << 14))));
        all.put("null", () -> {
            throw null;
        });
        RuntimeException one = new RuntimeException("one");
        one.initCause(new RuntimeException("other", one));
        all.put("a circle of causes", throwing(one));
        all.put("a checked one", throwing(new IOException("disk")));
        all.put("a Throwable", throwing(new Throwable("bare")));
        all.put("NoSuchMethodError", throwing(new NoSuchMethodError("gone")));
        all.put("ExceptionInInitializerError", throwing(new ExceptionInInitializerError("first")));
        all.put("OutOfMemoryError", throwing(new OutOfMemoryError("by hand")));
        all.put("StackOverflowError", Hostile::recurse);
        all.put("AssertionError", throwing(new AssertionError(null, null)));
        all.put("ThreadDeath", throwing(new ThreadDeath()));
        all.put("InterruptedException", throwing(new InterruptedException()));
        all.put("an interrupt", () -> Thread.currentThread().interrupt());
        all.put("an interrupt and more", () -> {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted");
        });
        all.put("an error of the server", throwing(new RefusedException("NOPERM this user has no permissions")));
        all.put("an error of configuration", throwing(new ConfigurationException("not the worker's")));
        all.put("no payload", throwing(new PayloadException(null, null)));
        all.put("retryIn(null)", throwing(new RetryException(null)));
        all.put("retryIn(FOREVER)", throwing(new RetryException(forEver, "\udc80")));
        all.put("retryIn(negative)", throwing(new RetryException(negative, null)));
        all.put("retryIn(century)", throwing(new RetryException(century)));
        all.put("snooze(null)", throwing(new SnoozeException(null)));
        all.put("snooze(FOREVER)", throwing(new SnoozeException(forEver, "x".repeat(1 << 14))));
        all.put("snooze(negative)", throwing(new SnoozeException(negative)));
        all.put("snooze(century)", throwing(new SnoozeException(century, "\ud800")));
        all.put("giveUp(null)", throwing(new GiveUpException(null)));
        all.put("giveUp(half a character)", throwing(new GiveUpException("\udc80")));
        all.put("somebody else's Cancelled", throwing(new CancelledException(CancelReason.LOST)));
        return all;
    }
}

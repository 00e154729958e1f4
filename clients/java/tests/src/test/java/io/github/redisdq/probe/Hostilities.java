package io.github.redisdq.probe;

import io.github.redisdq.GiveUpException;
import io.github.redisdq.Hooks;
import io.github.redisdq.Job;
import io.github.redisdq.PayloadException;
import io.github.redisdq.RetryException;
import io.github.redisdq.SnoozeException;
import java.io.IOException;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;

/** The worst that a handler and a hook can do. */
final class Hostilities implements Hooks {
    private interface Act {
        void run() throws Exception;
    }

    private static final class Unspeakable extends RuntimeException {
        @Override
        public String getMessage() {
            throw new IllegalStateException("no text");
        }
    }

    private static final Duration FOR_EVER = ChronoUnit.FOREVER.getDuration();
    private static final List<Act> ACTS = List.of(
            () -> {
                throw new Unspeakable();
            },
            () -> {
                throw new RetryException(null);
            },
            () -> {
                throw new RetryException(FOR_EVER, "\udc80");
            },
            () -> {
                throw new RetryException(Duration.ofSeconds(-1));
            },
            () -> {
                throw new SnoozeException(null);
            },
            () -> {
                throw new SnoozeException(FOR_EVER, "\ud800");
            },
            () -> {
                throw new GiveUpException(null);
            },
            () -> {
                throw null;
            },
            () -> {
                throw new PayloadException(null, null);
            },
            () -> {
                throw new IOException("\ud800 \u0000");
            },
            () -> {
                throw new NoSuchMethodError("gone");
            },
            () -> {
                throw new OutOfMemoryError("by hand");
            },
            () -> {
                throw new StackOverflowError();
            },
            () -> {
                throw new ThreadDeath();
            },
            () -> {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("an interrupt is left behind");
            });

    static void act(int number) throws Exception {
        ACTS.get(number % ACTS.size()).run();
    }

    private static void fail() {
        throw new NoSuchMethodError("of a hook");
    }

    @Override
    public void before(Job job) {
        fail();
    }

    @Override
    public void after(Job job) {
        fail();
    }

    @Override
    public void failed(Job job, Throwable error) {
        fail();
    }

    @Override
    public void lost(Job job) {
        fail();
    }
}

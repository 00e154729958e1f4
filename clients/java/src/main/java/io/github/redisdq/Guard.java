package io.github.redisdq;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All code of users is called through this class, and what it returns is read here: handlers, hooks, codecs, loggers
 * and the texts of exceptions. Nothing that it throws gets out.
 */
final class Guard {
    private static final Logger LOG = LoggerFactory.getLogger(Worker.class);
    private static final int LONGEST_TEXT = 1024; // the server keeps that many bytes of a reason
    private static final Duration LONGEST_DELAY = Duration.ofMillis((1L << 42) - 1); // the bound of the server's instants

    private Guard() {}

    /** Code of a user's. */
    @FunctionalInterface
    interface Call {
        void run() throws Throwable;
    }

    /** How a handler ended. */
    enum End {
        DONE,
        FAILED,
        SNOOZED,
        GIVEN_UP,
        RETURNED
    }

    /** {@code delay}: null if the handler gave none that can be used. */
    record Verdict(End end, Duration delay, String reason) {
        private static final Verdict DONE = new Verdict(End.DONE, null, null);
        private static final Verdict RETURNED = new Verdict(End.RETURNED, null, null);
    }

    /** Calls it, and returns what it threw, or null. */
    static Throwable call(Call call) {
        try {
            call.run();
            return null;
        } catch (Throwable error) { // an Error too: the thread must live
            return error;
        }
    }

    /** Calls a hook of a worker in one of its threads, in which an interrupt must not be left behind. */
    static void hook(String name, Hooks hooks, Call call) {
        Throwable error = call(call);
        Thread.interrupted();
        if (error != null) {
            log(() -> LOG.error("the hook {} of {} failed", name, hooks.getClass().getName(), error),
                    () -> LOG.error("the hook {} of {} failed: {}", name, hooks.getClass().getName(), text(error)));
        }
    }

    // --- What a handler throws

    static Verdict verdict(Job job, Throwable error) {
        if (error == null) {
            return Verdict.DONE;
        }
        if (error instanceof GiveUpException || error instanceof UnencodableException) { // the work of the latter is done
            return new Verdict(End.GIVEN_UP, null, text(error));
        }
        if (error instanceof PayloadException) {
            return new Verdict(End.GIVEN_UP, null, PayloadException.SAID + message(error));
        }
        if (!(error instanceof ControlException) && job.handler.isFinal(error)) {
            return new Verdict(End.GIVEN_UP, null, text(error));
        }
        if (error instanceof SnoozeException snooze) {
            Duration wait = usable(job, snooze.delay);
            return wait == null
                    ? new Verdict(End.FAILED, null, snooze.getMessage() == null ? "snooze without a delay" : snooze.getMessage())
                    : new Verdict(End.SNOOZED, wait, snooze.getMessage());
        }
        if (error instanceof RetryException retry) {
            return new Verdict(End.FAILED, usable(job, retry.delay), text(error));
        }
        if (error instanceof CancelledException && job.batchWasTold() || job.cancelReason() == CancelReason.STOPPING) {
            return Verdict.RETURNED; // whatever it threw: it was told to end
        }
        return new Verdict(End.FAILED, null, text(error));
    }

    private static Duration usable(Job job, Duration delay) {
        if (delay != null && !delay.isNegative() && delay.compareTo(LONGEST_DELAY) <= 0) {
            return delay;
        }
        warn(job + ": its handler asked for an invalid delay, " + delay + ": ignored");
        return null;
    }

    // --- Texts

    /** The error's type and message; of a {@link ControlException} the message alone. */
    static String text(Throwable error) {
        String name = name(error);
        String message = message(error);
        if (message == null) {
            return name;
        }
        return error instanceof ControlException || error instanceof UnencodableException ? message : name + ": " + message;
    }

    private static String name(Throwable error) {
        String name = error.getClass().getSimpleName();
        return name.isEmpty() ? error.getClass().getName() : name;
    }

    private static String message(Throwable error) {
        try {
            String message = error.getMessage();
            return message == null || message.length() <= LONGEST_TEXT ? message : message.substring(0, LONGEST_TEXT);
        } catch (Throwable unspeakable) {
            return "(no text: " + name(unspeakable) + ")";
        }
    }

    // --- The log, whose code is the user's, too

    static void info(String text) {
        call(() -> LOG.info("{}", text));
    }

    static void warn(String text) {
        call(() -> LOG.warn("{}", text));
    }

    /** With the stack, if that can be logged. */
    static void warn(String text, Throwable error) {
        log(() -> LOG.warn("{}", text, error), () -> LOG.warn("{}: {}", text, text(error)));
    }

    private static void log(Call first, Call otherwise) {
        if (call(first) != null) {
            call(otherwise);
        }
    }
}

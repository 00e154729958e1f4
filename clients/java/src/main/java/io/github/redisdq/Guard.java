package io.github.redisdq;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All code of users is called through this class, and what it returns is read here: handlers, hooks, codecs, loggers
 * and the texts of exceptions. Nothing that it throws gets out.
 */
final class Guard {
    private static final Logger LOG = LoggerFactory.getLogger("io.github.redisdq.Worker");
    private static final int LONGEST_TEXT = 1024; // the server keeps that many bytes of a reason

    private Guard() {}

    /** Code of a user's. */
    @FunctionalInterface
    interface Call {
        void run() throws Throwable;
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
    static void hook(String name, Object hooks, Call call) {
        Throwable error = call(call);
        Thread.interrupted();
        if (error != null) {
            log(() -> LOG.error("the hook {} of {} failed", name, hooks.getClass().getName(), error),
                    () -> LOG.error("the hook {} of {} failed: {}", name, hooks.getClass().getName(), text(error)));
        }
    }

    // --- Texts

    /** The error's type and message; of the library's own the message alone. */
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

    /** Null if it has none. */
    static String message(Throwable error) {
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

    /** With the stack, if that can be logged, without the library's insides. */
    static void warn(String text, Throwable error) {
        call(() -> Frames.trimmed(error));
        log(() -> LOG.warn("{}", text, error), () -> LOG.warn("{}: {}", text, text(error)));
    }

    private static void log(Call first, Call otherwise) {
        if (call(first) != null) {
            call(otherwise);
        }
    }
}

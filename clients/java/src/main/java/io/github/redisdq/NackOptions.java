package io.github.redisdq;

import java.time.Duration;

/** How a job is given back. */
public final class NackOptions {
    private final Words words;

    private NackOptions(String mode) {
        words = new Words(mode);
    }

    /** The attempt failed. */
    public static NackOptions fail() {
        return new NackOptions("FAIL");
    }

    /** This delivery does not count. */
    public static NackOptions silent() {
        return new NackOptions("SILENT");
    }

    /** The job is dead now. */
    public static NackOptions fatal() {
        return new NackOptions("FATAL");
    }

    /** Before the next delivery; without it, what the job's ladder says. */
    public NackOptions delay(Duration delay) {
        words.value("DELAY", delay);
        return this;
    }

    public NackOptions priority(int priority) {
        words.value("PRIORITY", priority);
        return this;
    }

    public NackOptions reason(String reason) {
        words.value("REASON", reason);
        return this;
    }

    Words words() {
        return words;
    }
}

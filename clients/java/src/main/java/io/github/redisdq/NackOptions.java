package io.github.redisdq;

import java.time.Duration;
import java.util.List;

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

    /** This delivery does not count, and the job waits for a signal: see {@link DqQueue#signal}. */
    public static NackOptions untilSignal(String name) {
        NackOptions options = silent();
        options.words.add("AWAIT").add(name);
        return options;
    }

    /** This delivery does not count, and the job waits until these jobs of its queue have ended. */
    public static NackOptions after(JobOptions.OnDead onDead, String... ids) {
        NackOptions options = silent();
        options.words.add("AFTER").add(ids.length).ids(List.of(ids)).value("ONDEAD", onDead);
        return options;
    }

    /** The job is dead now. */
    public static NackOptions fatal() {
        return new NackOptions("FATAL");
    }

    /** The wait before the next delivery (default: as the job's backoff says). */
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

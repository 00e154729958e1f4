package io.github.redisdq;

import java.time.Duration;
import java.util.List;

/** Settings of a queue, for {@link DqQueue#configure}. Those that are not set stay as they are; 0 turns a limit off. */
public final class Settings {
    private final Words words = new Words();

    public Settings ttr(Duration ttr) {
        words.value("TTR", ttr);
        return this;
    }

    public Settings attempts(int attempts) {
        words.value("ATTEMPTS", attempts);
        return this;
    }

    /** The queue's backoff; none given: no backoff. */
    public Settings backoff(Duration... steps) {
        words.value("BACKOFF", List.of(steps));
        return this;
    }

    /** Takes the queue's own backoff away, so that the server's holds. */
    public Settings backoffDefault() {
        words.add("BACKOFF").add("DEFAULT");
        return this;
    }

    /** How many failed attempts each job keeps, at most 100. */
    public Settings history(int attempts) {
        words.value("HISTORY", attempts);
        return this;
    }

    public Settings maxLen(long jobs) {
        words.value("MAXLEN", jobs);
        return this;
    }

    public Settings maxBytes(long bytes) {
        words.value("MAXBYTES", bytes);
        return this;
    }

    public Settings deadLen(long jobs) {
        words.value("DEADLEN", jobs);
        return this;
    }

    /** How many done jobs are kept: the latest. */
    public Settings doneLen(long jobs) {
        words.value("DONELEN", jobs);
        return this;
    }

    /** How long done jobs are kept. */
    public Settings doneTtl(Duration ttl) {
        words.value("DONETTL", ttl);
        return this;
    }

    /** How many bytes of done jobs are kept: the latest. */
    public Settings doneBytes(long bytes) {
        words.value("DONEBYTES", bytes);
        return this;
    }

    public Settings dedupe(Duration window) {
        words.value("DEDUPE", window);
        return this;
    }

    public Settings maxReserved(long jobs) {
        words.value("MAXRESERVED", jobs);
        return this;
    }

    /** At most this many jobs, weighted by their cost, in any window of that length; 0, whatever the window: any number. */
    public Settings rate(int jobs, Duration window) {
        words.rate("RATE", jobs, window);
        return this;
    }

    public Settings groupMax(int jobs) {
        words.value("GROUPMAX", jobs);
        return this;
    }

    /** As {@link #rate}, for the jobs of each group. */
    public Settings groupRate(int jobs, Duration window) {
        words.rate("GROUPRATE", jobs, window);
        return this;
    }

    /** Whether jobs within a group are delivered strictly in the order of adding. */
    public Settings groupFifo(boolean isFifo) {
        words.value("GROUPFIFO", isFifo ? 1 : 0);
        return this;
    }

    Words words() {
        return words;
    }
}

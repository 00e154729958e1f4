package io.github.redisdq;

// Written from src/queue/attr/rows.rs by `make generated`; DO NOT EDIT.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

/** What a job may have. */
abstract class Said<T extends Said<T>> {
    /** Of durations in ms, of texts in bytes. */
    static final Map<String, long[]> BOUNDS = Map.ofEntries(
            Map.entry("PRIORITY", new long[] {-2147483648, 2147483647L}),
            Map.entry("TTR", new long[] {1, (1L << 42) - 1}),
            Map.entry("ATTEMPTS", new long[] {0, 4294967295L}),
            Map.entry("TTL", new long[] {1, (1L << 42) - 1}),
            Map.entry("GROUP", new long[] {1, 256}),
            Map.entry("KEEP", new long[] {0, (1L << 42) - 1}),
            Map.entry("COST", new long[] {1, 1000000L}),
            Map.entry("LABEL", new long[] {1, 256}));

    Integer priority;
    Duration ttr;
    Integer attempts;
    Duration ttl;
    String group;
    Duration keep;
    Integer cost;
    List<Duration> backoff;
    String label;

    abstract T self();

    /** The job's priority: smaller is delivered first. */
    public T priority(int priority) {
        this.priority = priority;
        return self();
    }

    /** The length of the job's leases. */
    public T ttr(Duration ttr) {
        this.ttr = ttr;
        return self();
    }

    /** How often the job may be delivered; 0: without limit, whatever the queue's settings say. */
    public T attempts(int attempts) {
        this.attempts = attempts;
        return self();
    }

    /** The job expires this long after it was added. */
    public T ttl(Duration ttl) {
        this.ttl = ttl;
        return self();
    }

    /** The group that the job belongs to, such as a tenant or a user. Groups take turns. */
    public T group(String group) {
        this.group = group;
        return self();
    }

    /** How long the job is kept with its result once it is done, whatever the queue keeps; 0: not at all. */
    public T keep(Duration keep) {
        this.keep = keep;
        return self();
    }

    /** What a delivery counts towards the rates of the queue and of its group; 1 by default. */
    public T cost(int cost) {
        this.cost = cost;
        return self();
    }

    /** The waits after the 1st, 2nd, ... failure; the last one repeats. Empty: no waits. */
    public T backoff(Duration... backoff) {
        this.backoff = List.of(backoff);
        return self();
    }

    /** What kind of job it is, for those who look; it changes nothing of how the job is served. */
    public T label(String label) {
        this.label = label;
        return self();
    }

    void say(BiConsumer<String, Object> words) {
        words.accept("PRIORITY", priority);
        words.accept("TTR", ttr);
        words.accept("ATTEMPTS", attempts);
        words.accept("TTL", ttl);
        words.accept("GROUP", group);
        words.accept("KEEP", keep);
        words.accept("COST", cost);
        words.accept("BACKOFF", backoff);
        words.accept("LABEL", label);
    }
}

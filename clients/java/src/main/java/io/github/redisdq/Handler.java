package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.List;
import java.util.Objects;

/**
 * A function, and how its jobs are treated.
 *
 * <pre>{@code
 * Handler.of(Order.class, (job, order) -> close(order)).attempts(5).backoff(Duration.ofMinutes(1)).lease(Duration.ofSeconds(30))
 * }</pre>
 *
 * What it throws says how the job goes on: see {@link ControlException}; after anything else the job's own ladder decides,
 * else the handler's, else 1 s doubling to 1 hour.
 */
public final class Handler<T> {
    private static final Duration FIRST_DELAY = Duration.ofSeconds(1);
    private static final Duration LONGEST_DELAY = Duration.ofHours(1);

    private final Batch function;
    private String kind;
    private int attempts;
    private List<Duration> backoff = List.of();
    private Duration lease;
    private final int size;

    private Handler(Batch function, int size) {
        this.function = function;
        this.size = size;
    }

    /** Works on one job and its data, as the queue's codec reads it. */
    @FunctionalInterface
    public interface Typed<T> {
        void handle(Job job, T data) throws Exception;
    }

    /** Works on one job. */
    @FunctionalInterface
    public interface Plain {
        void handle(Job job) throws Exception;
    }

    /** Works on several jobs; {@link Job#fail} fails one of them and not the others. */
    @FunctionalInterface
    public interface Batch {
        void handle(List<Job> jobs) throws Exception;
    }

    public static <T> Handler<T> of(Class<T> type, Typed<T> function) {
        return of((Type) type, function);
    }

    /** As {@link #of(Class, Typed)}, for a type with parameters. */
    public static <T> Handler<T> of(Type type, Typed<T> function) {
        Objects.requireNonNull(function, "a handler needs a function");
        return new Handler<>(jobs -> function.handle(jobs.get(0), jobs.get(0).<T>data(type)), 1);
    }

    public static Handler<Void> of(Plain function) {
        Objects.requireNonNull(function, "a handler needs a function");
        return new Handler<>(jobs -> function.handle(jobs.get(0)), 1);
    }

    /** Gets up to {@code most} jobs at a time. */
    public static Handler<Void> ofBatch(int most, Batch function) {
        if (most < 1) {
            throw new IllegalArgumentException("a batch must have at least one job");
        }
        return new Handler<>(Objects.requireNonNull(function, "a handler needs a function"), most);
    }

    /** The kind of jobs that it takes; without one, all that no other handler of the worker takes. */
    public Handler<T> kind(String kind) {
        this.kind = kind;
        return this;
    }

    /** After so many failed deliveries the job is dead (0: no limit). The job's own limit goes first. */
    public Handler<T> attempts(int attempts) {
        if (attempts < 0) {
            throw new IllegalArgumentException("attempts are 0 or more");
        }
        this.attempts = attempts;
        return this;
    }

    /** The waits after the 1st, 2nd, ... failure; the last one repeats. A ladder that the job has goes first. */
    public Handler<T> backoff(Duration... steps) {
        new Words().ladder(List.of(steps)); // which checks them
        this.backoff = List.of(steps);
        return this;
    }

    /**
     * How long a job stays with a worker that crashed, whatever the job or its queue says; without it the TTR of the job or
     * of its queue, else {@link Worker.Builder#lease}, else a minute. Slow handlers need no longer one: the worker renews it.
     */
    public Handler<T> lease(Duration lease) {
        this.lease = Times.lease(lease);
        return this;
    }

    String kind() {
        return kind;
    }

    int attempts() {
        return attempts;
    }

    boolean hasLadder() {
        return !backoff.isEmpty();
    }

    int size() {
        return size;
    }

    /** Null where none was said. */
    Duration lease() {
        return lease;
    }

    /** The wait after a failed attempt. */
    Duration delay(int attempt) {
        if (hasLadder()) {
            return backoff.get(Math.max(0, Math.min(attempt, backoff.size()) - 1));
        }
        return defaultDelay(attempt);
    }

    static Duration defaultDelay(int attempt) {
        return Times.exponential(attempt, FIRST_DELAY, LONGEST_DELAY);
    }

    void run(List<Job> jobs) throws Exception {
        function.handle(jobs);
    }
}

package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.List;
import java.util.Objects;

/**
 * A function with the settings for its jobs.
 *
 * <pre>{@code
 * Handler.of(Order.class, (job, order) -> close(order)).attempts(5).backoff(Duration.ofMinutes(1)).lease(Duration.ofSeconds(30))
 * }</pre>
 *
 * A {@link ControlException} that it throws decides how the job goes on. After any other exception the job is tried
 * again: by its own backoff, else the handler's, else the server's {@code default-backoff}.
 */
public final class Handler<T> extends Job.HandlerTerms {
    private static final String NO_FUNCTION = "a handler needs a function";

    private final Function function;
    private String kind;
    private int attempts;
    private List<Duration> backoff = List.of();
    private Duration lease;
    private Duration timeout;
    private List<Class<? extends Throwable>> retried = List.of(); // none: all except the final ones
    private List<Class<? extends Throwable>> finals = List.of();
    private final int size;
    private Fill fill;
    private NewRule rule; // null: none

    private Handler(Function function, int size) {
        this.function = function;
        this.size = size;
    }

    /** How many jobs a fetch waits for, and how long. */
    record Fill(int jobs, Duration atMost) {
        static Fill least(Fill one, Fill other) {
            if (one == null || other == null) {
                return one == null ? other : one;
            }
            return new Fill(Math.min(one.jobs, other.jobs), Times.min(one.atMost, other.atMost));
        }
    }

    /** Handles one job and its data, decoded by the queue's codec. */
    @FunctionalInterface
    public interface Typed<T> {
        void handle(Job job, T data) throws Exception;
    }

    /** Handles one job. */
    @FunctionalInterface
    public interface Plain {
        void handle(Job job) throws Exception;
    }

    /** Handles one job and its data, and returns the job's result; null for none. */
    @FunctionalInterface
    public interface Returning<T> {
        Object handle(Job job, T data) throws Exception;
    }

    /** Handles one job, and returns its result; null for none. */
    @FunctionalInterface
    public interface PlainReturning {
        Object handle(Job job) throws Exception;
    }

    /**
     * Handles several jobs; {@link Job#fail} fails one of them and not the others, {@link Job#succeed} gives one a
     * result.
     */
    @FunctionalInterface
    public interface Batch {
        void handle(List<Job> jobs) throws Exception;
    }

    private interface Function {
        Object handle(List<Job> jobs) throws Exception;
    }

    public static <T> Handler<T> of(Class<T> type, Typed<T> function) {
        return of((Type) type, function);
    }

    /** As {@link #of(Class, Typed)}, for a type with parameters. */
    public static <T> Handler<T> of(Type type, Typed<T> function) {
        Objects.requireNonNull(function, NO_FUNCTION);
        return returning(type, (Job job, T data) -> {
            function.handle(job, data);
            return null;
        });
    }

    public static Handler<Void> of(Plain function) {
        Objects.requireNonNull(function, NO_FUNCTION);
        return returning(job -> {
            function.handle(job);
            return null;
        });
    }

    /** What the function returns is the job's result, for {@link DqQueue#wait} and for the jobs after it. */
    public static <T> Handler<T> returning(Class<T> type, Returning<T> function) {
        return returning((Type) type, function);
    }

    /** As {@link #returning(Class, Returning)}, for a type with parameters. */
    public static <T> Handler<T> returning(Type type, Returning<T> function) {
        Objects.requireNonNull(function, NO_FUNCTION);
        return new Handler<>(jobs -> function.handle(jobs.get(0), jobs.get(0).<T>data(type)), 1);
    }

    /** As {@link #returning(Class, Returning)}, for a handler that reads the data itself. */
    public static Handler<Void> returning(PlainReturning function) {
        Objects.requireNonNull(function, NO_FUNCTION);
        return new Handler<>(jobs -> function.handle(jobs.get(0)), 1);
    }

    /** Handles up to {@code most} jobs at a time. */
    public static Handler<Void> ofBatch(int most, Batch function) {
        if (most < 1) {
            throw new IllegalArgumentException("a batch must have at least one job");
        }
        Objects.requireNonNull(function, NO_FUNCTION);
        Function batch = jobs -> {
            function.handle(jobs);
            return null;
        };
        return new Handler<>(batch, most);
    }

    /**
     * The kind of jobs that the handler takes; without one, it takes all jobs that no other handler of the worker
     * takes.
     */
    public Handler<T> kind(String kind) {
        this.kind = kind;
        return this;
    }

    /** After how many deliveries a job is dead (0: no limit). The least of this, the job's own limit and its queue's counts. */
    public Handler<T> attempts(int attempts) {
        if (attempts < 0) {
            throw new IllegalArgumentException("attempts are 0 or more");
        }
        this.attempts = attempts;
        return this;
    }

    /** The waits after the 1st, 2nd, ... failure; the last one repeats. The job's own backoff goes first. */
    public Handler<T> backoff(Duration... steps) {
        new Words().value("BACKOFF", List.of(steps)); // checks them
        this.backoff = List.of(steps);
        return this;
    }

    /**
     * How long a job stays with a worker that crashed, whatever the job or its queue says. Slow handlers need no longer
     * lease: the worker renews it. Default: the TTR of the job or of its queue, else {@link WorkerBuilder#lease}, else
     * one minute.
     */
    public Handler<T> lease(Duration lease) {
        this.lease = Times.lease(lease);
        return this;
    }

    /**
     * Waits for a batch: until so many jobs are ready, or for so long since the first was. All handlers of the worker must
     * take batches; of several the least number and the shortest wait hold.
     */
    public Handler<T> fill(int jobs, Duration wait) {
        if (size < 2) {
            throw new IllegalArgumentException("fill needs a batch of 2 or more: Handler.ofBatch");
        }
        Words.check("fill", jobs, " jobs", 2, size);
        fill = new Fill(jobs, Times.length("the wait of fill", wait));
        return this;
    }

    /**
     * How long the handler may run (default: without limit). Then the job fails with the reason
     * {@code timeout after 30 s}, and the handler is told, as by {@link Job#check}. Its thread stays taken until it
     * ends.
     */
    public Handler<T> timeout(Duration timeout) {
        this.timeout = Times.length("a timeout", timeout);
        return this;
    }

    /** Which errors are tried again; all others are final: the job is dead. */
    @SafeVarargs
    @SuppressWarnings("varargs")
    public final Handler<T> retryOn(Class<? extends Throwable>... types) {
        retried = List.of(types);
        return this;
    }

    /** Which errors are final: the job is dead. */
    @SafeVarargs
    @SuppressWarnings("varargs")
    public final Handler<T> giveUpOn(Class<? extends Throwable>... types) {
        finals = List.of(types);
        return this;
    }

    /**
     * Has the handler's job come again at an interval: a worker adds it to its first queue when it starts, as
     * {@link DqQueue#every} does. Its id is the handler's kind, unless the options have one. Another worker may have the
     * same rule; when it has left all of them, delete the job.
     */
    public Handler<T> every(Duration interval, Object data, JobOptions options) {
        rule = NewRule.every(interval, data, options);
        return this;
    }

    /** Has the handler's job come again by a cron expression, in the options' time zone. See {@link #every}. */
    public Handler<T> cron(String expression, Object data, JobOptions options) {
        rule = NewRule.cron(expression, data, options);
        return this;
    }

    NewRule rule() {
        return rule;
    }

    @Override
    boolean isFinal(Throwable error) {
        boolean isRetried = retried.isEmpty() || retried.stream().anyMatch(each -> each.isInstance(error));
        return !isRetried || finals.stream().anyMatch(each -> each.isInstance(error));
    }

    @Override
    Duration timeout() {
        return timeout;
    }

    Fill fill() {
        return fill;
    }

    String kind() {
        return kind;
    }

    @Override
    int attempts() {
        return attempts;
    }

    @Override
    int size() {
        return size;
    }

    @Override
    Duration lease() {
        return lease;
    }

    @Override
    Duration delay(int attempt) {
        return backoff.isEmpty() ? null : backoff.get(Math.max(0, Math.min(attempt, backoff.size()) - 1));
    }

    @Override
    Object run(List<Job> jobs) throws Exception {
        return function.handle(jobs);
    }
}

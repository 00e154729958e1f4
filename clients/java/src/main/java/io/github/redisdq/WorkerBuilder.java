package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/** The settings of a worker. */
public final class WorkerBuilder {
    private static final Duration LONGEST = Duration.ofDays(365);

    final List<DqQueue> queues;
    final List<Handler<?>> handlers = new ArrayList<>();
    final List<Hooks> hooks = new ArrayList<>();
    final List<Around> around = new ArrayList<>();
    double[] weights;
    int concurrency = 10;
    int prefetch;
    Duration lease;
    Executor executor;
    Duration drain = Duration.ofSeconds(25);
    Duration wait = Duration.ofSeconds(5);
    String health;
    boolean isWarmedUp = true;
    boolean isQuiet; // it is made up: its log is nobody's
    Supplier<Ends> ends = Ends::new; // replaced by a test

    WorkerBuilder(List<DqQueue> queues) {
        if (queues.isEmpty()) {
            throw new ConfigurationException("the worker has no queue");
        }
        this.queues = queues;
    }

    /** Adds a handler: at most one for each kind of jobs, and one without a kind. */
    public WorkerBuilder handler(Handler<?> handler) {
        handlers.add(Objects.requireNonNull(handler, "no handler"));
        return this;
    }

    /** How many handlers run at a time (default 10). */
    public WorkerBuilder concurrency(int concurrency) {
        check(concurrency > 0, "concurrency is 1 or more");
        this.concurrency = concurrency;
        return this;
    }

    /**
     * How many more jobs are fetched than can start, so that short handlers need not wait for the network (default 0).
     */
    public WorkerBuilder prefetch(int prefetch) {
        check(prefetch >= 0, "prefetch must be 0 or more");
        this.prefetch = prefetch;
        return this;
    }

    /**
     * The queues' weights, one for each: each queue comes first in its share of the fetches. Without them, strict
     * order.
     */
    public WorkerBuilder weights(double... weights) {
        check(weights.length == queues.size(), "weights: one for each queue");
        for (double each : weights) {
            check(each > 0, "weights must be greater than 0");
        }
        this.weights = weights;
        return this;
    }

    /**
     * The lease of jobs without a TTR of their own or of their queue, and whose handler has no {@link Handler#lease}
     * (default one minute).
     */
    public WorkerBuilder lease(Duration lease) {
        this.lease = Times.lease(lease);
        return this;
    }

    /**
     * Runs the worker's tasks instead of platform threads of its own. There are as many tasks as {@link #concurrency}
     * plus connections (one for each server of its queues, in a cluster one for each slot). Each runs until the worker
     * stops. An example is {@code Executors.newVirtualThreadPerTaskExecutor()}.
     */
    public WorkerBuilder executor(Executor executor) {
        this.executor = executor;
        return this;
    }

    /** How long handlers may go on when the worker stops (default 25 s). */
    public WorkerBuilder drain(Duration drain) {
        check(!drain.isNegative() && drain.compareTo(LONGEST) < 0, "drain must be 0 or more, and less than a year");
        this.drain = drain;
        return this;
    }

    /**
     * How long one fetch waits at the server (default 5 s). It is then sent again, so a connection that hangs is
     * noticed.
     */
    public WorkerBuilder wait(Duration wait) {
        check(wait.toMillis() > 0 && wait.compareTo(LONGEST) < 0, "wait must be more than 0, and less than a year");
        this.wait = wait;
        return this;
    }

    public WorkerBuilder hooks(Hooks hooks) {
        this.hooks.add(Objects.requireNonNull(hooks, "no hooks"));
        return this;
    }

    /** Adds a middleware around all handlers; the first one is outermost. */
    public WorkerBuilder around(Around around) {
        this.around.add(Objects.requireNonNull(around, "no middleware"));
        return this;
    }

    /**
     * Shows supervisors whether {@link Worker#isHealthy}. At an address such as {@code "127.0.0.1:8081"} HTTP requests
     * are answered by 200 {@code ok}, or by 503 and the reason. Any other text is the path of a file, whose time is set
     * each second while the worker is healthy.
     */
    public WorkerBuilder health(String place) {
        this.health = Objects.requireNonNull(place, "no place");
        return this;
    }

    /**
     * Whether the first worker of a process takes a made-up job along its whole path when it starts, on no server, so that
     * the first job does not wait for classes to load (default: true). Handlers, hooks, middleware, codecs and logs of the
     * program never see it.
     */
    public WorkerBuilder warmUp(boolean isWarmedUp) {
        this.isWarmedUp = isWarmedUp;
        return this;
    }

    /** Creates the worker, which connects when it starts. */
    public Worker build() {
        return new Worker(this);
    }

    private static void check(boolean isRight, String otherwise) {
        if (!isRight) {
            throw new IllegalArgumentException(otherwise);
        }
    }
}

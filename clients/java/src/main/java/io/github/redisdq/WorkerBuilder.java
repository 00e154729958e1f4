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
    Supplier<Ends> ends = Ends::new; // a test has others

    WorkerBuilder(List<DqQueue> queues) {
        if (queues.isEmpty()) {
            throw new ConfigurationException("the worker has no queue");
        }
        this.queues = queues;
    }

    /** One for each kind of jobs. */
    public WorkerBuilder handler(Handler<?> handler) {
        handlers.add(Objects.requireNonNull(handler, "no handler"));
        return this;
    }

    /** How many handlers run at a time (10). */
    public WorkerBuilder concurrency(int concurrency) {
        check(concurrency > 0, "concurrency is 1 or more");
        this.concurrency = concurrency;
        return this;
    }

    /** How many jobs more may be in hand, so that short handlers need not wait for the network (0). */
    public WorkerBuilder prefetch(int prefetch) {
        check(prefetch >= 0, "prefetch must be 0 or more");
        this.prefetch = prefetch;
        return this;
    }

    /** As many as queues: each comes first in its share of the fetches. */
    public WorkerBuilder weights(double... weights) {
        check(weights.length == queues.size(), "weights: one for each queue");
        for (double each : weights) {
            check(each > 0, "weights must be greater than 0");
        }
        this.weights = weights;
        return this;
    }

    /**
     * How long jobs stay with a worker that crashed (a minute), where neither they, nor their queue, nor their handler
     * says: see {@link Handler#lease}.
     */
    public WorkerBuilder lease(Duration lease) {
        this.lease = Times.lease(lease);
        return this;
    }

    /**
     * What runs the worker's threads, in place of platform threads of its own: as many tasks as {@link #concurrency} and
     * connections (one for each server of its queues, in a cluster one for each slot), each of which lasts until the
     * worker stops. {@code Executors.newVirtualThreadPerTaskExecutor()} is one.
     */
    public WorkerBuilder executor(Executor executor) {
        this.executor = executor;
        return this;
    }

    /** How long handlers may go on when the worker stops (25 s). */
    public WorkerBuilder drain(Duration drain) {
        check(!drain.isNegative() && drain.compareTo(LONGEST) < 0, "drain must be 0 or more, and less than a year");
        this.drain = drain;
        return this;
    }

    /** How long one fetch waits at the server (5 s); then it is sent again, so a connection that hangs is noticed. */
    public WorkerBuilder waitFor(Duration wait) {
        check(wait.toMillis() > 0 && wait.compareTo(LONGEST) < 0, "wait must be more than 0, and less than a year");
        this.wait = wait;
        return this;
    }

    public WorkerBuilder hooks(Hooks hooks) {
        this.hooks.add(Objects.requireNonNull(hooks, "no hooks"));
        return this;
    }

    /** Around each handler; the first one is outermost. */
    public WorkerBuilder around(Around around) {
        this.around.add(Objects.requireNonNull(around, "no middleware"));
        return this;
    }

    /**
     * Where a supervisor sees {@link Worker#isHealthy}: {@code "127.0.0.1:8081"} answers HTTP with 200 {@code ok}, or 503 and
     * why not; anything else is the path of a file that is touched each second while the worker is healthy.
     */
    public WorkerBuilder health(String place) {
        this.health = Objects.requireNonNull(place, "no place");
        return this;
    }

    /** Connects only when it starts. */
    public Worker build() {
        return new Worker(this);
    }

    private static void check(boolean isRight, String otherwise) {
        if (!isRight) {
            throw new IllegalArgumentException(otherwise);
        }
    }
}

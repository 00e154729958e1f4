package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs handlers on the jobs of one or several queues, each in one of {@code concurrency} threads.
 *
 * <pre>{@code
 * Worker worker = Worker.on(queue).handler(Handler.of(Order.class, (job, order) -> close(order))).concurrency(10).build();
 * worker.stopOnShutdown();
 * worker.run();
 * }</pre>
 *
 * With {@link #start} it works in the background; {@link #close} stops it and waits.
 */
public final class Worker implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Worker.class);
    private static final Duration LONGEST_ANSWER = Duration.ofSeconds(5);
    private static final Duration SHORTEST_ANSWER = Duration.ofMillis(200);
    private static final Duration TURN = Duration.ofMillis(250); // how long a fetch waits where connections take turns
    private static final Duration NO_WAIT = Duration.ofMillis(1);
    private static final long TELLING_NS = 1_000_000_000;
    private static final Object STOP = new Object();
    private static final Object NEWS = new Object();

    final Duration lease;
    final Duration wait;
    final Duration answer;
    private final List<Queue> queues;
    private final Duration drain;
    private final int concurrency;
    private final int capacity;
    private final Handlers handlers;
    private final List<Hooks> hooks;
    final List<Link> links = new ArrayList<>();
    private final LinkedBlockingQueue<Object> orders = new LinkedBlockingQueue<>();
    private final CountDownLatch draining = new CountDownLatch(1);
    private final CountDownLatch stopped = new CountDownLatch(1);
    private volatile String troubleSaid;
    private volatile ConfigurationException failure;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition news = lock.newCondition();
    private final Deque<Link> unattended = new ArrayDeque<>(); // nobody fetches by them; the next one first
    private Deque<Job> backlog = new ArrayDeque<>();
    private boolean hasStarted;
    private int running;
    private int inHand;
    private int claimed;
    private int idle;
    private boolean isWaking;

    private Worker(Builder from) {
        queues = from.queues;
        handlers = new Handlers(from.handlers);
        hooks = List.copyOf(from.hooks);
        concurrency = from.concurrency;
        capacity = concurrency * handlers.size() + from.prefetch;
        lease = from.lease == null ? handlers.lease() : from.lease;
        wait = from.wait;
        drain = from.drain;
        answer = Times.min(LONGEST_ANSWER, Times.max(lease.dividedBy(3), SHORTEST_ANSWER));
        makeLinks(from);
    }

    /** Those queues, in strict order unless {@link Builder#weights} says otherwise. */
    public static Builder on(Queue... queues) {
        return new Builder(List.of(queues));
    }

    /** The keys together that one BPOP can wait for: in a cluster, those of one slot. */
    private void makeLinks(Builder from) {
        Map<Object, List<Fetches.Member>> groups = new LinkedHashMap<>();
        boolean isWeighted = from.weights != null;
        for (int at = 0; at < from.queues.size(); at++) {
            Queue queue = from.queues.get(at);
            double weight = from.weights == null ? 1 : from.weights[at];
            for (byte[] key : queue.keys()) {
                Object place = queue.connector().place(key);
                groups.computeIfAbsent(place, it -> new ArrayList<>()).add(new Fetches.Member(queue, key, weight));
            }
            isWeighted |= queue.isSharded(); // the shards take turns: none comes first
        }
        for (List<Fetches.Member> members : groups.values()) {
            links.add(new Link(this, new Fetches(members, isWeighted, lease)));
        }
    }

    // --- Running and stopping

    /**
     * Asks for each queue once, for programs that would rather not start. A server that is away is only logged.
     *
     * @throws ConfigurationException where waiting would not help
     */
    public void check() {
        for (Queue queue : queues) {
            try {
                queue.size();
            } catch (DqException error) {
                ConfigurationException fatal = Trouble.fatal(error);
                if (fatal != null) {
                    throw fatal;
                }
                LOG.warn("{} cannot be reached yet: {}", queue, error.getMessage());
            }
        }
    }

    /**
     * Works until {@link #stop}, then fetches nothing more, gives handlers the time of {@code drain} to end, and gives back
     * what is left. Returns at most {@code drain} and two seconds after.
     *
     * @throws ConfigurationException where waiting would not help
     */
    public void run() {
        start();
        join();
    }

    /** Works in threads of its own, until {@link #stop}. A worker starts once. */
    public void start() {
        lock.lock();
        try {
            if (hasStarted) {
                throw new IllegalStateException("a worker runs once: make another one");
            }
            hasStarted = true;
            unattended.addAll(links);
        } finally {
            lock.unlock();
        }
        links.forEach(Link::start);
        for (int n = 0; n < concurrency + links.size(); n++) { // so that each link has one, whatever handlers do
            begin(this::work, "dq-worker-" + n);
        }
        begin(this::watch, "dq-watch");
    }

    private static void begin(Runnable task, String name) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true); // a handler that hangs must not keep the process
        thread.start();
    }

    /** Begins to stop, and returns at once; a second call ends the drain. */
    public void stop() {
        orders.add(STOP);
    }

    /** Waits until the worker has stopped. */
    public void join() {
        boolean wasInterrupted = false;
        while (true) {
            try {
                stopped.await();
                break;
            } catch (InterruptedException error) {
                wasInterrupted = true;
                stop();
            }
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
        if (failure != null) {
            throw new ConfigurationException(failure.getMessage(), failure);
        }
    }

    /** Stops, and waits until it has. */
    @Override
    public void close() {
        if (hasStarted) {
            stop();
            join();
        }
    }

    /** Has SIGTERM and SIGINT stop the worker, and the process wait for that: by a shutdown hook of the JVM. */
    public void stopOnShutdown() {
        Runtime.getRuntime().addShutdownHook(new Thread(this::close, "dq-shutdown"));
    }

    /** Stays in time whatever hangs. */
    private void watch() {
        try {
            Object order = orders.take();
            while (order == NEWS) {
                order = orders.take();
            }
            failure = order instanceof ConfigurationException error ? error : null;
            end();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt(); // nobody does that
        } finally {
            stopped.countDown();
        }
    }

    private void end() throws InterruptedException {
        List<Job> left;
        lock.lock();
        try {
            draining.countDown();
            left = new ArrayList<>(backlog);
            backlog.clear();
            inHand -= left.size();
            news.signalAll();
        } finally {
            lock.unlock();
        }
        left.forEach(job -> job.link.giveBack(job));
        links.forEach(Link::ring);
        long until = System.nanoTime() + drain.toNanos();
        if (!waitIdle(until)) {
            links.forEach(Link::tellAll);
            until = System.nanoTime();
            waitIdle(until + TELLING_NS / 2);
        }
        for (Link link : links) {
            link.finishAt(until + TELLING_NS);
        }
        for (Link link : links) {
            link.end();
        }
        LOG.info("stopped");
    }

    /** Whether all ended before that, and before a second stop. */
    private boolean waitIdle(long until) throws InterruptedException {
        while (true) {
            lock.lock();
            try {
                if (running == 0 && unattended.size() == links.size()) {
                    return true;
                }
            } finally {
                lock.unlock();
            }
            long left = until - System.nanoTime();
            if (left <= 0 || orders.poll(left, TimeUnit.NANOSECONDS) == STOP) {
                return false;
            }
        }
    }

    boolean isDraining() {
        return draining.getCount() == 0;
    }

    // --- The threads: each handles or fetches, whatever is to be done next

    /** What a thread does next: it handles that batch, or fetches so many jobs by that link. */
    private record Turn(List<Job> batch, Link link, int claim) {}

    private void work() {
        List<Job> batch = List.of();
        for (Turn turn = next(batch); turn != null; turn = next(batch)) {
            if (turn.link != null) {
                batch = List.of();
                fetch(turn);
                continue;
            }
            batch = turn.batch;
            Throwable error = handle(batch);
            batch.forEach(job -> handled(job, error));
        }
    }

    /**
     * Waits until there is something to do; null to end. Who has fetched jobs handles one of them, and wakes another thread
     * to fetch: no job waits for a thread to wake.
     */
    private Turn next(List<Job> ended) {
        lock.lock();
        try {
            if (!ended.isEmpty()) {
                inHand -= ended.size();
                running--;
                boolean fetchFollows = links.size() == 1 && !unattended.isEmpty() && !isDraining();
                if (!fetchFollows) {
                    ended.forEach(job -> job.link.ring());
                }
            }
            while (!mayHandle() && !mayFetch() && !isDraining()) {
                idle++;
                news.awaitUninterruptibly();
                idle--;
                isWaking = false;
            }
            if (isDraining()) {
                orders.add(NEWS);
                return null;
            }
            Turn turn = mayHandle() ? new Turn(take(), null, 0) : claim();
            running += turn.link == null ? 1 : 0;
            wakeAnother();
            return turn;
        } finally {
            lock.unlock();
        }
    }

    private boolean mayHandle() {
        return !backlog.isEmpty() && running < concurrency;
    }

    private boolean mayFetch() {
        return !unattended.isEmpty() && free() > 0;
    }

    private int free() {
        return capacity - inHand - claimed;
    }

    /** Links take turns. */
    private Turn claim() {
        int claim = Math.max(1, free() / links.size());
        claimed += claim;
        return new Turn(List.of(), unattended.removeFirst(), claim);
    }

    /** One at a time: who is woken wakes the next, where there is more to do. */
    private void wakeAnother() {
        if (idle > 0 && !isWaking && (mayHandle() || mayFetch())) {
            isWaking = true;
            news.signal();
        }
    }

    private void fetch(Turn turn) {
        Thread.interrupted(); // a hook's, of no concern to the connection
        List<Job> found = List.of();
        try {
            found = turn.link.fetch(turn.claim, capacity < links.size() ? Times.min(wait, TURN) : wait);
        } catch (RuntimeException error) {
            // it was waited out
        } finally {
            accept(found, turn);
        }
    }

    /** Into the backlog, or back to the server; then the link is free for the next fetch. */
    private void accept(List<Job> found, Turn turn) {
        found.forEach(job -> job.handler = handlers.choose(job));
        found.stream().filter(job -> job.handler == null).forEach(this::refuse);
        lock.lock();
        try {
            claimed -= turn.claim;
            for (Job job : found) {
                if (isDraining()) {
                    job.link.giveBack(job);
                } else if (job.handler != null) {
                    backlog.addLast(job);
                    inHand++;
                }
            }
            unattended.addLast(turn.link);
        } finally {
            lock.unlock();
        }
    }

    private void refuse(Job job) {
        LOG.warn("no handler for kind {}: gave back {}", job.kind(), job);
        job.link.settle(job, Outcome::unknown);
        job.link.ring();
    }

    /** One job of the backlog, or as many as its handler takes at a time. */
    private List<Job> take() {
        Job first = backlog.peekFirst();
        int size = first.handler.size();
        if (size == 1) {
            return List.of(backlog.removeFirst());
        }
        List<Job> batch = new ArrayList<>();
        Deque<Job> rest = new ArrayDeque<>();
        for (Job job : backlog) {
            if (job.handler == first.handler && batch.size() < size) {
                batch.add(job);
            } else {
                rest.addLast(job);
            }
        }
        backlog = rest;
        return batch;
    }

    /** Calls the handler with those jobs that were not lost meanwhile. */
    Throwable handle(List<Job> batch) {
        List<Job> left = batch.stream().filter(job -> !job.isCancelled()).toList();
        if (left.isEmpty()) {
            return null;
        }
        left.forEach(job -> job.hasBegun = true);
        Job.Run run = new Job.Run(left);
        try {
            hook("before", left, Hooks::before);
            left.get(0).handler.run(left);
            return null;
        } catch (Throwable error) { // a handler must not end its thread
            return error;
        } finally {
            run.end();
        }
    }

    void handled(Job job, Throwable error) {
        if (!job.hasBegun) { // it was told before its handler began
            job.link.settle(job, Outcome::returned);
            return;
        }
        Throwable failed = job.failure == null ? error : job.failure;
        if (failed == null) {
            hook("after", List.of(job), Hooks::after);
        } else {
            if (!(failed instanceof Say) && !job.isCancelled()) {
                LOG.warn("{} failed", job, failed);
            }
            hook("failed", List.of(job), (each, it) -> each.failed(it, failed));
        }
        job.link.settle(job, it -> Outcome.ended(it, failed));
    }

    void lost(Job job) {
        LOG.warn("lost {}: its lease ended before it was acknowledged", job);
        job.tell(Told.LOST);
        hook("lost", List.of(job), Hooks::lost);
    }

    private interface Call {
        void on(Hooks hooks, Job job);
    }

    private void hook(String name, List<Job> batch, Call call) {
        for (Hooks each : hooks) {
            for (Job job : batch) {
                try {
                    call.on(each, job);
                } catch (RuntimeException error) {
                    LOG.error("the hook {} of {} failed", name, each, error);
                }
            }
        }
    }

    void trouble(RuntimeException error) {
        if (isDraining()) {
            return;
        }
        ConfigurationException fatal = Trouble.fatal(error);
        if (fatal != null) {
            orders.add(fatal);
        }
        String text = String.valueOf(error);
        if (!text.equals(troubleSaid)) {
            troubleSaid = text;
            LOG.warn("trouble with the server, trying again: {}", text);
        }
    }

    /** Until then, or until the worker stops. */
    void rest(Duration duration) {
        try {
            draining.await(duration.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** For tests: handles in this thread all jobs that are ready or become so meanwhile. Returns how many. */
    public int drain() {
        int handled = 0;
        for (Link link : links) {
            List<Job> found = link.fetch(capacity, NO_WAIT);
            while (!found.isEmpty()) {
                handled += handleAll(link, found);
                link.tellOutcomes();
                found = link.fetch(capacity, NO_WAIT);
            }
        }
        return handled;
    }

    private int handleAll(Link link, List<Job> found) {
        int handled = 0;
        for (Job job : found) {
            job.handler = handlers.choose(job);
            if (job.handler == null) {
                link.settle(job, Outcome::unknown);
            } else {
                backlog.addLast(job);
            }
        }
        while (!backlog.isEmpty()) {
            List<Job> batch = take();
            Throwable error = handle(batch);
            batch.forEach(job -> handled(job, error));
            handled += batch.size();
        }
        return handled;
    }

    /** The settings of a worker. */
    public static final class Builder {
        private final List<Queue> queues;
        private final List<Handler<?>> handlers = new ArrayList<>();
        private final List<Hooks> hooks = new ArrayList<>();
        private double[] weights;
        private int concurrency = 10;
        private int prefetch;
        private Duration lease;
        private Duration drain = Duration.ofSeconds(25);
        private Duration wait = Duration.ofSeconds(5);

        private Builder(List<Queue> queues) {
            if (queues.isEmpty()) {
                throw new ConfigurationException("the worker has no queue");
            }
            this.queues = queues;
        }

        /** One for each kind of jobs. */
        public Builder handler(Handler<?> handler) {
            handlers.add(handler);
            return this;
        }

        /** How many handlers run at a time (10). */
        public Builder concurrency(int concurrency) {
            check(concurrency > 0, "concurrency is 1 or more");
            this.concurrency = concurrency;
            return this;
        }

        /** How many jobs more may be in hand, so that short handlers need not wait for the network (0). */
        public Builder prefetch(int prefetch) {
            check(prefetch >= 0, "prefetch is 0 or more");
            this.prefetch = prefetch;
            return this;
        }

        /** As many as queues: each comes first in its share of the fetches. */
        public Builder weights(double... weights) {
            check(weights.length == queues.size(), "as many weights as queues, please");
            for (double each : weights) {
                check(each > 0, "weights are more than 0");
            }
            this.weights = weights;
            return this;
        }

        /** In place of the longest of the handlers'. */
        public Builder lease(Duration lease) {
            check(lease.toMillis() > 0, "a lease is longer than 0");
            this.lease = lease;
            return this;
        }

        /** How long handlers may go on when the worker stops (25 s). */
        public Builder drain(Duration drain) {
            check(!drain.isNegative(), "drain is 0 or more");
            this.drain = drain;
            return this;
        }

        /** How long one fetch waits at the server (5 s); then it is sent again, so a connection that hangs is noticed. */
        public Builder waitFor(Duration wait) {
            check(wait.toMillis() > 0, "wait is longer than 0");
            this.wait = wait;
            return this;
        }

        public Builder hooks(Hooks hooks) {
            this.hooks.add(hooks);
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
}

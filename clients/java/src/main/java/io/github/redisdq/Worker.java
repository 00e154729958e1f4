package io.github.redisdq;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/**
 * Runs handlers on the jobs of one or several queues, each in one of {@code concurrency} threads.
 *
 * <pre>{@code
 * Worker worker = Worker.on(queue).handler(Handler.of(Order.class, (job, order) -> close(order))).concurrency(10).build();
 * worker.stopOnShutdown();
 * worker.run();
 * }</pre>
 *
 * With {@link #start} it runs in the background; {@link #close} stops it and waits.
 */
public final class Worker implements AutoCloseable {
    private static final Duration NO_WAIT = Duration.ofMillis(1);
    private static final long TELLING_NS = 1_000_000_000;
    private static final long FOR_EVER_NS = Long.MAX_VALUE / 4;

    private final List<DqQueue> queues;
    private static final AtomicBoolean IS_WARM = new AtomicBoolean();
    private static final long LONGEST_WARM_UP_MS = 100; // all in all less than 150, on a busy machine, too

    private final boolean isWarmedUp;
    private final boolean isQuiet;
    private final int concurrency;
    private final Duration drain;
    private final Executor executor;
    private final Handling handling;
    final List<Link> links = new ArrayList<>();
    private final WorkerPool pool;
    private final Health health; // null: no supervisor asks
    private final Watch watch;
    private final Ruled ruled;
    private final Deaths deaths;
    private final CountDownLatch stopped = new CountDownLatch(1);
    private boolean hasStarted;
    private volatile ConfigurationException failure;

    Worker(WorkerBuilder from) {
        queues = from.queues;
        Handlers handlers = new Handlers(from.handlers);
        Leases leases = Leases.of(from.handlers, from.lease);
        concurrency = from.concurrency;
        isWarmedUp = from.isWarmedUp;
        isQuiet = from.isQuiet;
        drain = from.drain;
        executor = from.executor == null ? threads() : from.executor;
        watch = new Watch(links, leases);
        ruled = new Ruled(queues.get(0), from.handlers, watch);
        deaths = new Deaths(from.hooks, queues, leases.shortest(), watch);
        handling = new Handling(from.hooks, from.around);
        makeLinks(from, leases, handlers.fill());
        health = from.health == null ? null : new Health(this::trouble, from.health);
        pool = new WorkerPool(watch, handlers, handling, links, from.concurrency, from.prefetch, new Isolation(drain));
    }

    /** A worker of these queues, in strict order unless {@link WorkerBuilder#weights} says otherwise. */
    public static WorkerBuilder on(DqQueue... queues) {
        return new WorkerBuilder(List.of(queues));
    }

    /** Groups the keys that one BPOP can wait for: in a cluster, those of one slot. */
    private void makeLinks(WorkerBuilder from, Leases leases, Handler.Fill fill) {
        Map<Object, List<Fetches.Member>> groups = new LinkedHashMap<>();
        boolean isWeighted = from.weights != null;
        for (int at = 0; at < from.queues.size(); at++) {
            DqQueue queue = from.queues.get(at);
            double weight = from.weights == null ? 1 : from.weights[at];
            for (byte[] key : queue.keys()) {
                Object place = queue.connector().place(key);
                groups.computeIfAbsent(place, it -> new ArrayList<>()).add(new Fetches.Member(queue, key, weight));
            }
            isWeighted |= queue.isSharded(); // the shards take turns: none is always first
        }
        for (List<Fetches.Member> members : groups.values()) {
            Fetches fetches = new Fetches(members, isWeighted, leases, from.wait, fill);
            links.add(new Link(watch, fetches, from.ends.get(), groups.size() > 1, handling::lost, deaths::answered));
        }
    }

    private static Executor threads() {
        AtomicInteger count = new AtomicInteger();
        return task -> begin(task, "dq-worker-" + count.getAndIncrement());
    }

    private static void begin(Runnable task, String name) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true); // a handler that hangs must not keep the process alive
        thread.start();
    }

    // --- Running and stopping

    /**
     * Sends a command on each queue, for programs that rather fail at their start. If a server cannot be reached, that
     * is only logged.
     *
     * @throws ConfigurationException if waiting would not help
     */
    public void check() {
        for (DqQueue queue : queues) {
            try {
                queue.len();
            } catch (DqException error) {
                ConfigurationException fatal = Trouble.fatal(error);
                if (fatal != null) {
                    throw fatal;
                }
                Guard.warn(queue + " cannot be reached yet: " + error.getMessage());
            }
        }
    }

    /**
     * Runs the worker until {@link #stop}. It then stops fetching, gives handlers up to {@code drain} to end, and gives
     * back the rest. Returns at most two seconds after the drain.
     *
     * @throws ConfigurationException if waiting would not help
     */
    public void run() {
        start();
        join();
    }

    /** Runs the worker in threads of its own, until {@link #stop}. A worker starts once. */
    public synchronized void start() {
        if (hasStarted) {
            throw new IllegalStateException("a worker runs only once: create another one");
        }
        if (isWarmedUp && IS_WARM.compareAndSet(false, true)) {
            warmUp();
        }
        if (health != null) {
            health.start();
        }
        hasStarted = true;
        watch.begin();
        links.forEach(link -> link.batcher().start());
        for (int n = 0; n < pool.size(); n++) {
            Throwable error = Guard.call(() -> executor.execute(pool::work));
            if (error != null) {
                String text = "the executor does not take " + pool.size() + " tasks that last, concurrency and connections together: ";
                watch.tell(new ConfigurationException(text + Guard.text(error), error));
                break;
            }
        }
        begin(this::attend, "dq-watch");
        if (!ruled.isSaid()) {
            begin(ruled::sayInTime, "dq-rules");
        }
        if (deaths.areHeard()) {
            begin(deaths::work, "dq-dead");
        }
        say("started: " + this + ", concurrency " + concurrency);
    }

    private void say(String text) {
        if (!isQuiet) {
            Guard.info(text);
        }
    }

    /**
     * Has a made-up job take the whole path, on no server, so that its classes are there when the first one comes. Waits for
     * it a while; false: it goes on beside.
     */
    static boolean warmUp() {
        CountDownLatch handled = new CountDownLatch(1);
        begin(() -> Guard.call(() -> handleOne(handled)), "dq-warm-up"); // which loads classes from the first on
        try {
            return handled.await(LONGEST_WARM_UP_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt(); // it is meant for the caller
            return false;
        }
    }

    private static void handleOne(CountDownLatch handled) throws InterruptedException {
        WorkerBuilder builder = on(DqQueue.on(new MadeUp(), "dq")).concurrency(1).drain(Duration.ZERO).warmUp(false);
        builder.isQuiet = true;
        builder.handler(Handler.returning(Map.class, (job, data) -> {
            handled.countDown();
            return data;
        }));
        try (Worker made = builder.build()) {
            made.start();
            handled.await();
        }
    }

    /** Makes the worker stop, and returns at once. A second call ends the drain. */
    public void stop() {
        watch.tell(Watch.STOP);
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

    /** Stops the worker, and waits until it has stopped. */
    @Override
    public void close() {
        boolean isRunning;
        synchronized (this) {
            isRunning = hasStarted;
        }
        if (isRunning) {
            stop();
            join();
        }
    }

    /**
     * Makes SIGTERM and SIGINT stop the worker, and the process wait until it has stopped: by a shutdown hook of the
     * JVM. A second one ends the drain.
     */
    public void stopOnShutdown() {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            List.of("TERM", "INT").forEach(each -> Guard.call(() -> onSignal(each, this::stop)));
            close();
        }, "dq-shutdown"));
    }

    /** By sun.misc.Signal, whose name is a warning of the compiler. */
    private static void onSignal(String name, Runnable then) throws ReflectiveOperationException {
        Class<?> signal = Class.forName("sun.misc.Signal");
        Class<?> handler = Class.forName("sun.misc.SignalHandler");
        Object handling = Proxy.newProxyInstance(Worker.class.getClassLoader(), new Class<?>[] {handler}, (self, method, args) -> {
            then.run();
            return null;
        });
        signal.getMethod("handle", signal, handler).invoke(null, signal.getConstructor(String.class).newInstance(name), handling);
    }

    // --- The watch, which keeps time whatever hangs

    private void attend() {
        try {
            Object order;
            do {
                order = watch.order(System.nanoTime() + FOR_EVER_NS);
            } while (order == Watch.NEWS);
            failure = order instanceof ConfigurationException error ? error : null;
            end();
        } finally {
            if (health != null) {
                health.stop();
            }
            stopped.countDown();
        }
    }

    private void end() {
        List<Job> left = pool.end(watch::drain);
        left.forEach(job -> Link.of(job).giveBack(job, Outcome::returned));
        links.forEach(Link::ring);
        long until = System.nanoTime() + (failure == null ? drain.toNanos() : 0);
        int running = pool.running();
        if (running > 0 && failure == null) {
            String handlers = running == 1 ? "one handler" : running + " handlers";
            say("stopping: " + this + ", waits up to " + drain.toSeconds() + " s for " + handlers + "; gave back " + jobs(left.size()));
        }
        long drained = until;
        int told = 0;
        if (!waitIdle(until)) {
            told = links.stream().mapToInt(Link::size).sum();
            links.forEach(Link::tellAll);
            until = System.nanoTime();
            drained = until;
            waitIdle(until + TELLING_NS / 2);
        }
        finish(until + TELLING_NS);
        deaths.end(Math.max(drained, System.nanoTime() + TELLING_NS / 2));
        int back = told + left.size();
        say("stopped: " + this + ", " + (back == 0 ? "no job was given back" : "gave back " + jobs(back)));
    }

    private static String jobs(int count) {
        return count == 1 ? "one job" : count + " jobs";
    }

    @Override
    public String toString() {
        return (queues.size() == 1 ? "queue " : "queues ") + queues.stream().map(DqQueue::name).collect(Collectors.joining(", "));
    }

    /** Closes the links by that time, and soon after a second stop. */
    private void finish(long by) {
        links.forEach(link -> link.batcher().finishAt(by));
        while (!links.stream().allMatch(link -> link.batcher().hasFinished())) {
            Object order = watch.order(by);
            if (order == Watch.STOP) {
                long soon = System.nanoTime() + TELLING_NS / 2;
                finish(by - soon < 0 ? by : soon);
                return;
            }
            if (order == null) {
                break;
            }
        }
        links.forEach(Link::end);
    }

    /** Whether everything ended before that time, and before a second stop. */
    private boolean waitIdle(long until) {
        while (!pool.isIdle()) {
            Object order = watch.order(until);
            if (order == null || order == Watch.STOP) {
                return false;
            }
        }
        return true;
    }

    /**
     * Whether the worker is healthy: the last fetch or heartbeat on each connection was answered in time. False before
     * the first answer, while the server cannot be reached, and after the worker has stopped.
     */
    public boolean isHealthy() {
        return trouble() == null;
    }

    /** Why the worker is not healthy, or null. */
    String trouble() {
        if (stopped.getCount() == 0) {
            return "the worker has stopped";
        }
        return links.stream().map(Link::trouble).filter(Objects::nonNull).findFirst().orElse(null);
    }

    /** For tests. */
    List<Link> links() {
        return links;
    }

    /** For tests: handles, in this thread, all jobs that are ready or become ready meanwhile. Returns how many. */
    public int drain() {
        Thread watching = new Thread(this::watchDraining, "dq-watch");
        watching.setDaemon(true);
        watching.start();
        try {
            ruled.say();
            deaths.drain();
            int handled = links.stream().mapToInt(this::drain).sum();
            deaths.drain();
            return handled;
        } finally {
            watch.tell(Watch.STOP);
        }
    }

    private int drain(Link link) {
        int handled = 0;
        List<Job> found = link.fetch(pool.capacity(), NO_WAIT);
        while (!found.isEmpty()) {
            handled += pool.handleAll(found);
            link.batcher().tellOutcomes();
            found = link.fetch(pool.capacity(), NO_WAIT);
        }
        return handled;
    }

    /** Ends handlers whose timeout is over. */
    private void watchDraining() {
        while (watch.order(System.nanoTime() + FOR_EVER_NS) != Watch.STOP) {}
    }
}

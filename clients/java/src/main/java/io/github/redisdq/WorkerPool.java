package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The threads of a worker, and the jobs that wait for one. Each thread handles or fetches, whatever is to be done next.
 */
final class WorkerPool {
    private static final long FOR_EVER_NS = Long.MAX_VALUE / 4;
    private static final long AGAIN_NS = 50_000_000;

    private final Watch watch;
    private final Handlers handlers;
    private final Handling handling;
    private final List<Link> links;
    private final int concurrency;
    private final int prefetch;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition news = lock.newCondition();
    private final LinkScheduler<Link> scheduler;
    private final Deque<Link> unconnected = new ArrayDeque<>(); // links that are not connected, and that no thread connects
    private Deque<Job> backlog = new ArrayDeque<>();
    private int suspects; // fetches with jobs at their last attempt, of which the server is asked how the one before ended
    private Job alone; // it waits until all ends are told, or runs: nothing is fetched; or null
    private boolean isAloneRunning;
    private final List<Job> returning = new ArrayList<>(); // such jobs that were given back, until the server has confirmed it
    private final Isolation isolation;
    private int running;
    private int inHand;
    private int claimed;
    private int idle;
    private boolean isWaking;
    private Thread lookout; // the resting thread that wakes by itself, for all of them; or null
    private long looksAt;

    WorkerPool(Watch watch, Handlers handlers, Handling handling, List<Link> links, int concurrency, int prefetch, Isolation isolation) {
        this.watch = watch;
        this.handlers = handlers;
        this.handling = handling;
        this.links = links;
        this.concurrency = concurrency;
        this.prefetch = prefetch;
        this.isolation = isolation;
        scheduler = new LinkScheduler<>(links.size());
        unconnected.addAll(links);
    }

    /** How many threads the worker has, so that each link has one, whatever handlers do. */
    int size() {
        return concurrency + links.size();
    }

    /** How many jobs may at least be in hand. */
    int capacity() {
        return concurrency * handlers.size() + prefetch;
    }

    /**
     * What a thread does next: it handles the batch, or fetches up to {@code claim} jobs by the link; 0: it connects
     * the link.
     */
    private record Turn(List<Job> batch, Link link, int claim) {}

    void work() {
        List<Job> batch = List.of();
        for (Turn turn = next(batch); turn != null; turn = next(batch)) {
            Thread.interrupted(); // left behind by a handler or a hook; it must not reach the next one, or the connection
            if (turn.link != null) {
                batch = List.of();
                attend(turn);
            } else {
                batch = turn.batch;
                handling.handle(batch);
            }
        }
    }

    /**
     * Waits until there is something to do; returns null to end. The thread that has fetched jobs handles one of them
     * itself, and wakes another thread to fetch: no job waits for a thread to wake.
     */
    private Turn next(List<Job> ended) {
        lock.lock();
        try {
            long now = System.nanoTime();
            if (!ended.isEmpty()) {
                inHand -= ended.size();
                running--;
                if (ended.get(0) == alone) {
                    alone = null;
                    isAloneRunning = false;
                }
                boolean fetchFollows = links.size() == 1 && free(now) > 0 && scheduler.first(now) != null && !watch.isDraining();
                if (!fetchFollows) {
                    ended.forEach(job -> Link.of(job).ring());
                }
            }
            while (!mayHandle() && !mayFetch(now) && !watch.isDraining()) {
                rest(now);
                now = System.nanoTime();
            }
            if (watch.isDraining()) {
                watch.tell(Watch.NEWS);
                return null;
            }
            Turn turn = mayHandle() ? new Turn(take(), null, 0) : claim(now);
            running += turn.link == null ? 1 : 0;
            wakeAnother(now);
            return turn;
        } finally {
            lock.unlock();
        }
    }

    /** Waits until there may be something to do. For what comes with time, it is enough that one thread looks out. */
    private void rest(long now) {
        if (alone != null && !isAloneRunning || isHeld() && suspects == 0) {
            restFor(AGAIN_NS);
            return;
        }
        Link late = scheduler.recall(now);
        if (late != null) {
            late.recall();
        }
        boolean looksOut = lacksLookout(now);
        idle++;
        if (looksOut) {
            lookOut(now);
        } else {
            news.awaitUninterruptibly();
        }
        idle--;
        isWaking = false;
    }

    private void restFor(long ns) {
        idle++;
        Guard.call(() -> news.awaitNanos(ns));
        idle--;
        isWaking = false;
    }

    private void lookOut(long now) {
        lookout = Thread.currentThread();
        looksAt = lookAt(now, now + FOR_EVER_NS);
        try {
            news.awaitNanos(looksAt - now);
        } catch (InterruptedException error) {
            // left behind by a handler
        }
        if (lookout == Thread.currentThread()) { // else another thread waits for an earlier time
            lookout = null;
        }
    }

    /** Whether no resting thread wakes in time. Never true with one link, unless a job is to run alone. */
    private boolean lacksLookout(long now) {
        long covered = lookout == null ? now + FOR_EVER_NS : looksAt;
        return lookAt(now, covered) != covered;
    }

    private long lookAt(long now, long otherwise) {
        return scheduler.lookAt(now, isolation.lookAt(now, otherwise));
    }

    private boolean mayHandle() {
        return !isHeld() && (!backlog.isEmpty() && running < concurrency || mayHandleAlone());
    }

    /** Whether no job may begin, as it could take along one that is to run alone. */
    private boolean isHeld() {
        if (!returning.isEmpty()) {
            returning.removeIf(job -> !Link.of(job).isTellingOf(job));
        }
        return suspects > 0 || !returning.isEmpty();
    }

    /** Whether the server knows the ends of all jobs but the one that runs alone. */
    private boolean mayHandleAlone() {
        return alone != null && running == 0 && links.stream().allMatch(Link::hasToldAll);
    }

    private boolean mayFetch(long now) {
        return !unconnected.isEmpty() || free(now) > 0 && scheduler.first(now) != null;
    }

    /**
     * How many jobs may be fetched. If some kind is handled one job at a time, each job may need a handler of its own,
     * so running handlers are counted. Else each handler takes a batch, and jobs in hand are counted.
     */
    private int free(long now) {
        if (alone != null || suspects > 0) {
            return 0;
        }
        if (isolation.isOn(now)) {
            return inHand == 0 && claimed == 0 ? 1 : 0;
        }
        int there = handlers.size() == 1 ? running + backlog.size() : inHand;
        return capacity() - there - claimed;
    }

    /**
     * Claims places for the link whose turn it is. Connecting claims none, so a server that is away does not hold up
     * others.
     */
    private Turn claim(long now) {
        if (!unconnected.isEmpty()) {
            return new Turn(List.of(), unconnected.removeFirst(), 0);
        }
        int claim = Math.max(1, free(now) / links.size());
        claimed += claim;
        Link link = scheduler.first(now);
        scheduler.begin(link, now);
        return new Turn(List.of(), link, claim);
    }

    /** Wakes one thread if there is more to do; that one wakes the next. */
    private void wakeAnother(long now) {
        if (idle > 0 && !isWaking && (mayHandle() || mayFetch(now) || lacksLookout(now))) {
            isWaking = true;
            news.signal();
        }
    }

    private void attend(Turn turn) {
        List<Job> found = new ArrayList<>();
        boolean areSuspect = false;
        try {
            Guard.call(turn.claim == 0 ? turn.link::connect : () -> fetch(turn, found)); // errors have been logged
            for (Job job : found) {
                areSuspect |= 1 < job.attempt() && job.attempt() == job.maxAttempts();
            }
            if (areSuspect) {
                lookUp(turn.link, found);
            }
            Guard.call(() -> turn.link.correct(found));
        } finally {
            accept(found, turn, areSuspect);
        }
    }

    private void fetch(Turn turn, List<Job> found) {
        for (Job job : turn.link.fetch(turn.claim)) {
            if (isToBeHandled(job)) {
                found.add(job);
            }
        }
    }

    /** Asks which of the jobs may have killed their workers. Until they are accepted, no job begins. */
    private void lookUp(Link link, List<Job> found) {
        lock.lock();
        suspects++;
        lock.unlock();
        found.forEach(job -> job.mayKill = link.mayKill(job));
    }

    /** Whether the job has a handler, and does not run in this process. */
    private boolean isToBeHandled(Job job) {
        if (Guard.call(() -> job.handler = handlers.choose(job)) != null || job.handler == null) {
            Guard.warn("no handler for kind " + Nearest.cut(job.kind()) + ": gave back " + job + handlers.hint(job));
            Link.of(job).giveBack(job, Outcome::unknown);
            return false;
        }
        if (0 < job.maxAttempts() && job.maxAttempts() < job.attempt()) {
            Guard.warn("the attempts of " + job + " are used up, and its workers were lost: it is dead");
            Link.of(job).giveBack(job, Outcome::usedUp);
            return false;
        }
        return !handling.isAtItAlready(job);
    }

    /** Puts jobs into the backlog, or gives them back; then the link may fetch again. */
    private void accept(List<Job> found, Turn turn, boolean areSuspect) {
        lock.lock();
        try {
            long now = System.nanoTime();
            claimed -= turn.claim;
            suspects -= areSuspect ? 1 : 0;
            if (!found.isEmpty() && inHand == 0) {
                isolation.end();
            }
            inHand += found.size();
            for (Job job : found) {
                if (watch.isDraining()) {
                    inHand--;
                    Link.of(job).giveBack(job, Outcome::returned);
                } else if (!job.mayKill) {
                    backlog.addLast(job);
                } else if (inHand == 1 && claimed == 0) {
                    alone = job;
                } else {
                    isolate(job, now);
                }
            }
            scheduler.end(turn.link, now, found.isEmpty());
            if (turn.link.isConnected()) {
                scheduler.want(turn.link, now);
            } else {
                unconnected.addLast(turn.link);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Gives back a job that is to run alone, until nothing else is in hand. */
    private void isolate(Job job, long now) {
        Duration wait = isolation.want(now);
        inHand--;
        Link.of(job).giveBack(job, each -> Outcome.returned(each, wait));
        returning.add(job);
    }

    /** Takes one job off the backlog, or as many as its handler takes at a time. */
    private List<Job> take() {
        if (backlog.isEmpty()) {
            isAloneRunning = true;
            return List.of(alone);
        }
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

    // --- Orders of the worker

    /** Ends the threads, each when its handler has ended. Returns the jobs that no thread has begun. */
    List<Job> end(Runnable drain) {
        lock.lock();
        try {
            drain.run();
            List<Job> left = new ArrayList<>(backlog);
            if (alone != null && !isAloneRunning) {
                left.add(alone);
                alone = null;
            }
            backlog.clear();
            inHand -= left.size();
            news.signalAll();
            return left;
        } finally {
            lock.unlock();
        }
    }

    /** How many handlers run. */
    int running() {
        lock.lock();
        try {
            return running;
        } finally {
            lock.unlock();
        }
    }

    boolean isIdle() {
        lock.lock();
        try {
            return running == 0 && claimed == 0;
        } finally {
            lock.unlock();
        }
    }

    /** For tests: handles, in the caller's thread, all jobs that a link has found. Returns how many. */
    int handleAll(List<Job> found) {
        List<Job> known = found.stream().filter(this::isToBeHandled).toList();
        backlog.addAll(known);
        while (!backlog.isEmpty()) {
            handling.handle(take());
        }
        return known.size();
    }
}

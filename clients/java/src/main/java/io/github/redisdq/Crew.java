package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** The threads of a worker, and the jobs that wait for one: each handles or fetches, whatever is to be done next. */
final class Crew {
    private static final Duration TURN = Duration.ofMillis(250); // how long a fetch waits where connections take turns

    private final Worker worker;
    private final Handlers handlers;
    private final Handling handling;
    private final List<Link> links;
    private final int concurrency;
    private final int prefetch;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition news = lock.newCondition();
    private final Deque<Link> unattended = new ArrayDeque<>(); // nobody fetches by them; the next one first
    private Deque<Job> backlog = new ArrayDeque<>();
    private int running;
    private int inHand;
    private int claimed;
    private int idle;
    private boolean isWaking;

    Crew(Worker worker, Handlers handlers, Handling handling, List<Link> links, int concurrency, int prefetch) {
        this.worker = worker;
        this.handlers = handlers;
        this.handling = handling;
        this.links = links;
        this.concurrency = concurrency;
        this.prefetch = prefetch;
        unattended.addAll(links);
    }

    /** How many threads there are to be, so that each link has one, whatever handlers do. */
    int size() {
        return concurrency + links.size();
    }

    /** How many jobs may be in hand, at least. */
    int capacity() {
        return concurrency * handlers.size() + prefetch;
    }

    /** What a thread does next: it handles that batch, or fetches so many jobs by that link. */
    private record Turn(List<Job> batch, Link link, int claim) {}

    void work() {
        List<Job> batch = List.of();
        for (Turn turn = next(batch); turn != null; turn = next(batch)) {
            Thread.interrupted(); // left behind by a handler or a hook, of no concern to the next, nor to the connection
            if (turn.link != null) {
                batch = List.of();
                fetch(turn);
            } else {
                batch = turn.batch;
                handling.handle(batch);
            }
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
                boolean fetchFollows = links.size() == 1 && !unattended.isEmpty() && !worker.isDraining();
                if (!fetchFollows) {
                    ended.forEach(job -> job.link.ring());
                }
            }
            while (!mayHandle() && !mayFetch() && !worker.isDraining()) {
                idle++;
                news.awaitUninterruptibly();
                idle--;
                isWaking = false;
            }
            if (worker.isDraining()) {
                worker.watch.tell(Watch.NEWS);
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

    /** Where any kind is handled one by one, each job needs a handler of its own; else each handler takes a batch. */
    private int free() {
        int there = handlers.size() == 1 ? running + backlog.size() : inHand;
        return capacity() - there - claimed;
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
        List<Job> found = new ArrayList<>();
        try {
            Guard.call(() -> { // what went wrong was said, and waited out
                Duration wait = capacity() < links.size() ? Times.min(worker.wait, TURN) : worker.wait;
                turn.link.fetch(turn.claim, wait).stream().filter(this::isToBeHandled).forEach(found::add);
                turn.link.correct(found);
            });
        } finally {
            accept(found, turn);
        }
    }

    /** Whether it has a handler, and nobody here is at it. */
    private boolean isToBeHandled(Job job) {
        if (Guard.call(() -> job.handler = handlers.choose(job)) != null || job.handler == null) {
            Guard.warn("no handler for kind " + job.kind() + ": gave back " + job);
            job.link.giveBack(job, Outcome::unknown);
            return false;
        }
        return !handling.isAtItAlready(job);
    }

    /** Into the backlog, or back to the server; then the link is free for the next fetch. */
    private void accept(List<Job> found, Turn turn) {
        lock.lock();
        try {
            claimed -= turn.claim;
            for (Job job : found) {
                if (worker.isDraining()) {
                    job.link.giveBack(job, Outcome::returned);
                } else {
                    backlog.addLast(job);
                    inHand++;
                }
            }
            unattended.addLast(turn.link);
        } finally {
            lock.unlock();
        }
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

    // --- Orders of the worker

    /** Ends the threads, each when its handler has. Returns the jobs that none of them has begun. */
    List<Job> end(Runnable drain) {
        lock.lock();
        try {
            drain.run();
            List<Job> left = new ArrayList<>(backlog);
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
            return running == 0 && unattended.size() == links.size();
        } finally {
            lock.unlock();
        }
    }

    /** For tests, in the caller's thread: all that a link has found. Returns how many. */
    int handleAll(List<Job> found) {
        List<Job> known = found.stream().filter(this::isToBeHandled).toList();
        backlog.addAll(known);
        while (!backlog.isEmpty()) {
            handling.handle(take());
        }
        return known.size();
    }
}

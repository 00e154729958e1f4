package io.github.redisdq;

import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Waits for the worker's orders, and meanwhile for leases that expire, also while the server cannot be reached. */
final class Watch {
    static final Object STOP = new Object();
    static final Object NEWS = new Object();

    private static final long SHORTEST_LOOK_NS = 100_000_000;
    private static final long LATE_NS = 500_000_000; // even a busy machine rarely lets a thread wait that long

    private final List<Link> links;
    private final long lookEveryNs;
    private final LinkedBlockingQueue<Object> orders = new LinkedBlockingQueue<>();
    private volatile boolean hasBegun; // not if a test drains the worker
    private volatile long watchedUntil;
    private volatile long lookedAt;
    private volatile long stoodStillAt;

    Watch(List<Link> links, Leases leases) {
        this.links = links;
        lookEveryNs = Math.max(SHORTEST_LOOK_NS, Times.ms(leases.shortest()) * 1_000_000 / 4);
    }

    void begin() {
        lookedAt = System.nanoTime();
        stoodStillAt = lookedAt;
        hasBegun = true;
    }

    void tell(Object order) {
        orders.add(order);
    }

    /** The next order before that time, or null. */
    Object order(long until) {
        while (true) {
            watchedUntil = until;
            long now = look();
            long next = until - now < lookEveryNs ? until : now + lookEveryNs;
            for (Link link : links) {
                next = link.look(now, next);
            }
            watchedUntil = next;
            try {
                Object order = orders.poll(next - now, TimeUnit.NANOSECONDS);
                if (order != null || until - System.nanoTime() <= 0) {
                    return order;
                }
            } catch (InterruptedException error) {
                // left behind by a hook
            }
        }
    }

    private long look() {
        long now = System.nanoTime();
        if (now - lookedAt > lookEveryNs + LATE_NS) {
            stoodStillAt = now;
        }
        lookedAt = now;
        return now;
    }

    /** Whether this process, or its machine, was stopped since then. */
    boolean stoodStillSince(long then) {
        return hasBegun && (stoodStillAt - then > 0 || System.nanoTime() - lookedAt > lookEveryNs + LATE_NS);
    }

    /** Records that a lease expires, or a timeout is over, at that time. */
    void endsAt(long end) {
        if (end - watchedUntil < 0) {
            tell(NEWS);
        }
    }
}

package io.github.redisdq;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Waits for the worker's orders, and meanwhile for leases that expire, also while the server cannot be reached. Its
 * links tell it of trouble.
 */
final class Watch {
    static final Object STOP = new Object();
    static final Object NEWS = new Object();

    private static final long SHORTEST_LOOK_NS = 100_000_000;
    private static final long LATE_NS = 500_000_000; // even a busy machine rarely lets a thread wait that long

    /** What comes with time. */
    interface Timed {
        /** Does what is due; returns when to look again, at most {@code otherwise}. */
        long look(long now, long otherwise);
    }

    private final List<? extends Timed> links;
    private final long lookEveryNs;
    private final LinkedBlockingQueue<Object> orders = new LinkedBlockingQueue<>();
    private volatile boolean hasBegun; // not if a test drains the worker
    private volatile long watchedUntil;
    private volatile long lookedAt;
    private volatile long stoodStillAt;
    private final CountDownLatch draining = new CountDownLatch(1);
    private volatile String troubleSaid;
    private final Set<String> forbidden = ConcurrentHashMap.newKeySet(); // commands of which that was said

    Watch(List<? extends Timed> links, Leases leases) {
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
            for (Timed link : links) {
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

    void drain() {
        draining.countDown();
    }

    boolean isDraining() {
        return draining.getCount() == 0;
    }

    /** Waits for that time, or until the worker stops. */
    void rest(Duration duration) {
        Guard.call(() -> draining.await(duration.toNanos(), TimeUnit.NANOSECONDS));
    }

    // --- Trouble

    /** Says what is wrong, once; the worker ends if waiting does not fix it. */
    void failed(Throwable error) {
        ConfigurationException fatal = Trouble.fatal(error);
        if (isDraining()) {
            return;
        }
        if (fatal != null) {
            tell(fatal);
        }
        String text = fatal == null ? Guard.text(error) : fatal.getMessage();
        if (!text.equals(troubleSaid)) {
            troubleSaid = text;
            Guard.warn((fatal == null ? "trouble with the server, trying again: " : "the worker ends: ") + text);
        }
    }

    /** Whether the server forbids a command that only one feature needs: that is then off, and said once. */
    boolean isForbidden(RefusedException said, String command, String then) {
        boolean isForbidden = said.begins("NOPERM");
        if (isForbidden && forbidden.add(command)) {
            Guard.warn(command + " is refused (" + said.getMessage() + "): " + then);
        }
        return isForbidden;
    }

    void uncounted(RefusedException said) {
        isForbidden(said, "DQ.STEP", "jobs of unknown kinds use up attempts of handlers");
    }

    // --- Time

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

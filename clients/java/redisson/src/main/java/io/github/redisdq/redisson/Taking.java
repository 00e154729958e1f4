package io.github.redisdq.redisson;

import io.github.redisdq.ConfigurationException;
import io.github.redisdq.DqException;
import io.github.redisdq.DqQueue;
import io.github.redisdq.Internals;
import io.github.redisdq.Reserved;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * How Redisson's blocking queue takes elements. An element is reserved, read, and acknowledged before the caller gets
 * it. So an element that the network loses comes back when its lease expires.
 */
final class Taking {
    static final Duration LEASE = Duration.ofSeconds(30);
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(5); // then it asks again: a connection may hang
    private static final Duration FOR_EVER = Duration.ofNanos(Long.MAX_VALUE);

    private final DqQueue queue;
    private final BooleanSupplier isOver;

    Taking(DqQueue queue, BooleanSupplier isOver) {
        this.queue = queue;
        this.isOver = isOver;
    }

    /**
     * Reserves elements; it keeps waiting while the server cannot be reached. {@code timeout}: null for no limit.
     * {@code lease}: null for the jobs' own.
     */
    List<Reserved> reserve(List<byte[]> keys, Duration timeout, int count, Duration lease) throws InterruptedException {
        long start = System.nanoTime();
        long limit = timeout == null ? FOR_EVER.toNanos() : timeout.toNanos();
        for (int troubles = 1; ; troubles++) {
            long left = limit - (System.nanoTime() - start);
            try {
                Duration wait = Duration.ofNanos(Math.min(Math.max(left, 1), LONGEST_WAIT.toNanos()));
                List<Reserved> found = Internals.bpop(queue, keys, wait, count, lease);
                if (!found.isEmpty() || left <= 0) {
                    return found;
                }
                troubles = 0;
            } catch (DqException error) {
                rest(error, troubles, limit - (System.nanoTime() - start));
            }
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
        }
    }

    private void rest(DqException error, int troubles, long left) throws InterruptedException {
        if (isInterrupt(error)) {
            throw new InterruptedException();
        }
        ConfigurationException fatal = Internals.fatal(error);
        if (fatal != null) {
            throw fatal;
        }
        if (left <= 0 || isOver.getAsBoolean()) {
            throw error;
        }
        Thread.sleep(Math.min(Internals.pause(troubles).toMillis(), Duration.ofNanos(left).toMillis() + 1));
    }

    /** Whether the error is an interrupt; then it clears the thread's interrupt status. */
    private static boolean isInterrupt(DqException error) {
        return error.getCause() instanceof InterruptedException && Thread.interrupted();
    }

    /** Acknowledges the jobs, and returns those that are now the caller's alone. */
    List<Reserved> own(List<Reserved> jobs) {
        List<Reserved> left = new ArrayList<>(jobs);
        Set<Reserved> unsure = new HashSet<>(); // a reply was lost: a job that is gone is ours, as nobody else has its token
        boolean wasInterrupted = false;
        long end = System.nanoTime() + LEASE.toNanos();
        try {
            for (int tries = 1; ; tries++) {
                try {
                    List<Boolean> gone = Internals.ackEach(queue, left);
                    List<Reserved> ours = new ArrayList<>();
                    for (int at = 0; at < left.size(); at++) {
                        if (gone.get(at) || unsure.contains(left.get(at))) {
                            ours.add(left.get(at));
                        }
                    }
                    return ours;
                } catch (DqException error) {
                    wasInterrupted |= isInterrupt(error);
                    unsure.addAll(left);
                    wasInterrupted |= pause(error, tries, end);
                }
            }
        } finally {
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private boolean pause(DqException error, int tries, long end) {
        if (Internals.fatal(error) != null || isOver.getAsBoolean() || System.nanoTime() - end > 0) {
            throw error;
        }
        try {
            Thread.sleep(Internals.pause(tries).toMillis());
            return false;
        } catch (InterruptedException again) {
            return true;
        }
    }
}

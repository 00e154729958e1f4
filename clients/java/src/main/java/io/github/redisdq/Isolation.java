package io.github.redisdq;

import java.time.Duration;

/**
 * When nothing is fetched until nothing is in hand, and then one job, as one may have ended its workers.
 *
 * <p>In hand, that job would lose its last attempt with the next one that ends the worker. So it waits in the server, where
 * an idle worker finds it at once. No worker holds it, so no two can wait for each other.
 *
 * <p>It lasts for {@code patience} at most, for a handler that takes longer must not keep all the others idle. For as
 * long other jobs are fetched then, and that one is delayed: it has the next try. Instants are by System.nanoTime.
 */
final class Isolation {
    private static final Duration SHORTEST = Duration.ofSeconds(1);
    private static final Duration LONGEST = Duration.ofDays(1);

    private final long patienceNs;
    private boolean isWanted;
    private long until;

    Isolation(Duration patience) {
        Duration least = patience.compareTo(SHORTEST) < 0 ? SHORTEST : patience;
        patienceNs = (least.compareTo(LONGEST) > 0 ? LONGEST : least).toNanos();
    }

    /** A job that is to run alone is given back, as others are in hand. Returns by how much it is delayed; null: not. */
    Duration want(long now) {
        if (!isWanted || now - until >= patienceNs) {
            isWanted = true;
            until = now + patienceNs;
        }
        return isOn(now) ? null : Duration.ofNanos(until + patienceNs - now);
    }

    boolean isOn(long now) {
        return isWanted && now - until < 0;
    }

    /** When it ends, if it is on; {@code otherwise}, if that is earlier. */
    long lookAt(long now, long otherwise) {
        return isOn(now) && until - otherwise < 0 ? until : otherwise;
    }

    void end() {
        isWanted = false;
    }
}

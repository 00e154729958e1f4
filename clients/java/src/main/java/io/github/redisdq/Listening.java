package io.github.redisdq;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Which jobs of a queue the listener waits for, and when it is to ask again: for jobs that have been in hand for a while, so
 * that short ones cost nothing, and not too often. Instants are by System.nanoTime, and given as arguments.
 */
final class Listening {
    static final long YOUNG_NS = 20_000_000;

    private Set<Job> covered = Set.of();
    private boolean hasAsked;
    private long askedAt;
    private boolean isRefused;

    /** When to ask again because of one of the jobs; {@code otherwise}, if all are covered. */
    synchronized long dueAt(List<Job> inHand, long otherwise) {
        long due = otherwise;
        for (Job job : isRefused ? List.<Job>of() : inHand) {
            if (!covered.contains(job)) {
                long old = job.takenAt + YOUNG_NS;
                long next = hasAsked && askedAt + YOUNG_NS - old > 0 ? askedAt + YOUNG_NS : old;
                due = next - due < 0 ? next : due;
            }
        }
        return due;
    }

    /** The jobs to wait for now: all, as soon as one of them is old enough. */
    synchronized List<Job> ask(List<Job> inHand, long now) {
        boolean isWorth = !isRefused && inHand.stream().anyMatch(job -> job.takenAt + YOUNG_NS - now <= 0);
        covered = isWorth ? new HashSet<>(inHand) : Set.of();
        if (isWorth) {
            hasAsked = true;
            askedAt = now;
        }
        return isWorth ? inHand : List.of();
    }

    /** Records that the listener is about to ask, or rests until then. */
    synchronized void holdOff(long until) {
        hasAsked = true;
        askedAt = until;
    }

    /** Records that the wait has ended. */
    synchronized void answered() {
        covered = Set.of();
    }

    synchronized boolean isWaiting() {
        return !covered.isEmpty();
    }

    /** Records that the server refuses DQ.BTOUCH. True the first time. */
    synchronized boolean refused() {
        boolean isFirst = !isRefused;
        isRefused = true;
        covered = Set.of();
        return isFirst;
    }
}

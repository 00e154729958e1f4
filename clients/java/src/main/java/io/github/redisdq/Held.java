package io.github.redisdq;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** The jobs in hand of one link: when their leases are to be renewed, which have expired, and what a renewal answers. */
final class Held {
    private static final long SHORTEST_BEAT_NS = 5_000_000;

    /** Whether the server answers. */
    final Liveness liveness = new Liveness();
    /** Called with jobs that another worker may have. */
    final Consumer<Job> lost;
    /** Called with jobs that are dead, or may be, as an answer was lost. */
    final Consumer<Job> died;
    private final Leases leases;
    private final Set<Job> jobs = new HashSet<>();
    private long shortestMs;
    private long beatAt;

    Held(Leases leases, Consumer<Job> lost, Consumer<Job> died) {
        this.leases = leases;
        this.lost = lost;
        this.died = died;
        shortestMs = Times.ms(leases.shortest());
        beatAt = System.nanoTime() + beatNs();
    }

    /** Takes jobs in hand that were read at {@code since}. True if the next heartbeat is now due earlier. */
    synchronized boolean take(List<Job> found, long since) {
        long before = shortestMs;
        for (Job job : found) {
            job.leased(since, leases.ms(job.terms));
            job.takenAt = since;
            shortestMs = Math.min(shortestMs, job.leaseMs);
            jobs.add(job);
        }
        boolean isEarlier = shortestMs < before;
        if (isEarlier) {
            beatAt = Math.min(beatAt, since + beatNs());
        }
        return isEarlier;
    }

    /**
     * Takes a job out. Only the first caller decides how it ends: its handler, a heartbeat, the expiry of its lease or
     * the stop.
     */
    synchronized boolean release(Job job) {
        return jobs.remove(job);
    }

    void lose(Job job) {
        if (release(job)) {
            lost.accept(job);
        }
    }

    synchronized boolean has(Job job) {
        return jobs.contains(job);
    }

    synchronized List<Job> all() {
        return new ArrayList<>(jobs);
    }

    private long beatNs() {
        return Math.max(shortestMs * 1_000_000 / 3, SHORTEST_BEAT_NS);
    }

    synchronized long beatAt() {
        return beatAt;
    }

    synchronized long longestPauseNs() {
        return beatNs();
    }

    /** Records a heartbeat. The next one is due after a third of the shortest lease in hand. */
    synchronized void beaten(long at) {
        shortestMs = Times.ms(leases.shortest());
        jobs.forEach(job -> shortestMs = Math.min(shortestMs, job.leaseMs));
        beatAt = at + beatNs();
    }

    synchronized List<Job> over(long now) {
        return jobs.stream().filter(job -> job.isOver(now)).toList();
    }

    /** The jobs whose handlers' timeouts are over. */
    synchronized List<Job> outOfTime(long now) {
        return jobs.stream().filter(job -> job.timesOutAt != 0 && job.timesOutAt - now <= 0).toList();
    }

    /** When the first lease expires or the first timeout is over, or {@code otherwise}, if that is earlier. */
    synchronized long firstEnd(long otherwise) {
        long first = otherwise;
        for (Job job : jobs) {
            first = job.leaseEnd - first < 0 ? job.leaseEnd : first;
            first = job.timesOutAt != 0 && job.timesOutAt - first < 0 ? job.timesOutAt : first;
        }
        return first;
    }

    synchronized List<Job> ofQueue(byte[] key) {
        return jobs.stream().filter(job -> Arrays.equals(job.rawKey, key)).toList();
    }

    /** Records renewed leases. {@code deadlines}: the reply; null in it for a job that is not ours. */
    void renewed(List<Job> jobs, Object deadlines, long sent) {
        renewed(jobs, deadlines, sent, 0);
    }

    /** {@code asked}: the lease that the jobs are to have; 0: the one that they have. */
    void renewed(List<Job> jobs, Object deadlines, long sent, long asked) {
        liveness.heard(System.nanoTime());
        List<Object> all = Reply.list(deadlines);
        for (int at = 0; at < all.size(); at++) {
            Job job = jobs.get(at);
            if (all.get(at) == null) {
                lose(job);
            } else if (asked == 0) {
                job.leased(sent, job.leaseMs);
            } else {
                job.leased(sent, asked);
                job.askedMs = 0;
            }
        }
    }

    /** Groups jobs by their queue and the lease that they are to have. */
    static Iterable<List<Job>> groups(List<Job> jobs) {
        Map<List<Object>, List<Job>> groups = new LinkedHashMap<>();
        jobs.forEach(job -> groups.computeIfAbsent(List.of(job.queue(), job.askedMs), key -> new ArrayList<>()).add(job));
        return groups.values();
    }
}

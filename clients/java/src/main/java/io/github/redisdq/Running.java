package io.github.redisdq;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * The jobs whose handlers run in this process. After a failover a job may be delivered again while its handler still
 * runs.
 */
final class Running {
    private record Key(Object place, String queue, String id) {
        static Key of(Job job) {
            return new Key(Link.of(job).place(), job.queue(), job.id());
        }
    }

    private static final ConcurrentMap<Key, Job> JOBS = new ConcurrentHashMap<>();

    private Running() {}

    /** Records that a job runs. If another delivery of it runs already, returns that one instead; else null. */
    static Job begin(Job job) {
        return JOBS.putIfAbsent(Key.of(job), job);
    }

    static Job other(Job job) {
        return JOBS.get(Key.of(job));
    }

    static void end(Job job) {
        JOBS.remove(Key.of(job), job);
    }
}

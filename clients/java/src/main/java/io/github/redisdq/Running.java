package io.github.redisdq;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** The jobs whose handlers run in this process: after a failover one may be delivered while its handler still runs. */
final class Running {
    private record Key(Object place, String queue, String id) {
        static Key of(Job job) {
            return new Key(job.link.place(), job.queue(), job.id());
        }
    }

    private static final ConcurrentMap<Key, Job> JOBS = new ConcurrentHashMap<>();

    private Running() {}

    /** Another delivery of it whose handler runs, or null: then this one does. */
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

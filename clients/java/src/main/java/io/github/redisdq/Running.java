package io.github.redisdq;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * The jobs whose handlers run in this process. After a failover a job may be delivered again while its handler still
 * runs.
 */
final class Running {
    /** Equal for deliveries of one job. Its hash is kept, as that of the place takes long. */
    private static final class Key {
        private final Object place;
        private final String queue;
        private final String id;
        private final int hash;

        Key(Job job) {
            place = Link.of(job).place();
            queue = job.queue();
            id = job.id();
            hash = 31 * Link.of(job).placeHash() + id.hashCode();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key it && hash == it.hash && id.equals(it.id) && queue.equals(it.queue) && place.equals(it.place);
        }

        @Override
        public int hashCode() {
            return hash;
        }
    }

    private static final ConcurrentMap<Key, Job> JOBS = new ConcurrentHashMap<>();

    private Running() {}

    private static Key key(Job job) {
        if (job.name == null) {
            job.name = new Key(job);
        }
        return (Key) job.name;
    }

    /** Records that a job runs. If another delivery of it runs already, returns that one instead; else null. */
    static Job begin(Job job) {
        return JOBS.putIfAbsent(key(job), job);
    }

    static Job other(Job job) {
        return JOBS.get(key(job));
    }

    static void end(Job job) {
        JOBS.remove(key(job), job);
    }
}

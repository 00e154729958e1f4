package io.github.redisdq;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** Jobs to be added by as few commands as they allow: those of one key with equal options share one. */
final class Packed {
    private static final int MOST_JOBS = 1000;
    private static final int MOST_BYTES = 1_000_000;

    private final List<Adding> all;
    private final List<Chunk> chunks = new ArrayList<>();

    /** The order of each key's jobs is kept. */
    Packed(List<Adding> all) {
        this.all = all;
        Map<byte[], Chunk> open = new IdentityHashMap<>(); // a queue has one array for each key
        for (int at = 0; at < all.size(); at++) {
            Adding each = all.get(at);
            Chunk chunk = open.get(each.key());
            if (chunk == null || !chunk.takes(each)) {
                chunk = new Chunk();
                chunks.add(chunk);
                open.put(each.key(), chunk);
            }
            chunk.add(at, each);
        }
    }

    List<Words> calls() {
        return chunks.stream().map(Chunk::call).toList();
    }

    /** What the replies to the calls mean for each job: its id, or null if it was refused. */
    List<String> ids(List<Object> replies) {
        String[] ids = new String[all.size()];
        for (int n = 0; n < chunks.size(); n++) {
            Chunk chunk = chunks.get(n);
            List<Object> found = chunk.jobs.size() == 1 ? Arrays.asList(replies.get(n)) : Reply.list(replies.get(n));
            for (int at = 0; at < found.size(); at++) {
                int place = chunk.places.get(at);
                ids[place] = all.get(place).answered(found.get(at));
            }
        }
        return Arrays.asList(ids);
    }

    /** The jobs that one command adds. */
    private static final class Chunk {
        final List<Integer> places = new ArrayList<>();
        final List<Adding> jobs = new ArrayList<>();
        private int size;

        boolean takes(Adding next) {
            return jobs.get(0).isLike(next) && jobs.size() < MOST_JOBS && size + next.size() <= MOST_BYTES;
        }

        void add(int place, Adding next) {
            places.add(place);
            jobs.add(next);
            size += next.size();
        }

        Words call() {
            return jobs.size() == 1 ? jobs.get(0).words() : Adding.many(jobs);
        }
    }
}

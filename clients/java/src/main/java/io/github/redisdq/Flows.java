package io.github.redisdq;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** Adds several jobs at a time: in as few commands as they allow, and in one transaction if some are after others. */
final class Flows {
    private static final int MOST_JOBS = 1000;
    private static final int MOST_BYTES = 1_000_000;

    private final Adding.To queue;
    private final Shards shards;

    Flows(Adding.To queue) {
        this.queue = queue;
        this.shards = queue.shards();
    }

    /** Adds each job after the one before. */
    List<String> chain(List<QueueCommands.NewJob> jobs) {
        List<Adding> all = new ArrayList<>();
        List<Words> calls = new ArrayList<>();
        for (QueueCommands.NewJob each : jobs) {
            if (!each.options().isPlain()) {
                throw new IllegalArgumentException("a job of a chain is after the one before, and nothing else");
            }
            Adding before = all.isEmpty() ? null : all.get(all.size() - 1);
            Adding adding = new Adding(queue, each.data(), each.options(), before == null ? null : before.key());
            all.add(adding);
            calls.add(before == null ? adding.words() : adding.words().add("AFTER").add(1).add(before.id()));
        }
        return answered(all, transaction(calls));
    }

    List<String> all(List<QueueCommands.NewJob> jobs) {
        List<Adding> all = jobs.stream().map(each -> new Adding(queue, each.data(), each.options())).toList();
        if (all.size() > 1 && all.stream().allMatch(each -> each.isLike(all.get(0)))) {
            return alike(all);
        }
        List<Words> calls = all.stream().map(Adding::words).toList();
        try {
            return answered(all, isFlow(all) ? transaction(calls) : shards.all(calls, null));
        } catch (RefusedException said) {
            throw Unheld.explained(said, shards, all.stream().flatMap(each -> each.after().stream()).toList());
        }
    }

    /** Whether some jobs are after others of the list, or after a group, which may be theirs. */
    private static boolean isFlow(List<Adding> all) {
        if (all.size() > 1 && all.stream().anyMatch(Adding::isAfterGroup)) {
            return true;
        }
        if (all.stream().allMatch(each -> each.after().isEmpty())) {
            return false;
        }
        Set<String> ids = all.stream().map(Adding::id).collect(Collectors.toSet());
        return all.stream().anyMatch(each -> each.after().stream().anyMatch(ids::contains));
    }

    private static List<String> answered(List<Adding> all, List<Object> replies) {
        List<String> ids = new ArrayList<>();
        for (int at = 0; at < replies.size(); at++) {
            ids.add(all.get(at).answered(replies.get(at)));
        }
        return ids;
    }

    private List<Object> transaction(List<Words> calls) {
        if (calls.isEmpty()) {
            return List.of();
        }
        if (!calls.stream().allMatch(each -> Arrays.equals(each.key(), calls.get(0).key()))) {
            throw new IllegalArgumentException("jobs that are after one another must be of one shard: give them no ids");
        }
        return shards.transaction(calls);
    }

    private List<String> alike(List<Adding> all) {
        Map<byte[], Chunk> open = new IdentityHashMap<>(); // a queue has one array for each key
        List<Chunk> chunks = new ArrayList<>();
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
        List<Object> replies = shards.all(chunks.stream().map(chunk -> Adding.many(chunk.jobs)).toList(), null);
        String[] ids = new String[all.size()];
        for (int n = 0; n < chunks.size(); n++) {
            List<Object> found = Reply.list(replies.get(n));
            for (int at = 0; at < found.size(); at++) {
                int place = chunks.get(n).places.get(at);
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
            return jobs.size() < MOST_JOBS && size + next.size() <= MOST_BYTES;
        }

        void add(int place, Adding next) {
            places.add(place);
            jobs.add(next);
            size += next.size();
        }
    }
}

package io.github.redisdq;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** Adds several jobs at a time: in as few commands as they allow, and in one transaction if some are after others. */
final class Flows {
    private final Adding.To queue;
    private final Shards shards;

    Flows(Adding.To queue) {
        this.queue = queue;
        this.shards = queue.shards();
    }

    /** Adds each job after the one before. */
    List<String> chain(List<QueueCommands.NewJob> jobs) {
        List<Adding> all = new ArrayList<>();
        for (QueueCommands.NewJob each : jobs) {
            if (!each.options().isPlain()) {
                throw new IllegalArgumentException("a job of a chain is after the one before, and nothing else");
            }
            Adding before = all.isEmpty() ? null : all.get(all.size() - 1);
            Adding adding = new Adding(queue, each.data(), each.options(), before == null ? null : before.key());
            all.add(before == null ? adding : adding.behind(List.of(before.id())));
        }
        return together(all, jobs);
    }

    /** Encodes jobs, to be sent now or later. */
    PreparedMany prepared(List<QueueCommands.NewJob> jobs) {
        List<Adding> all = jobs.stream().map(each -> new Adding(queue, each.data(), each.options())).toList();
        return new PreparedMany(all, () -> send(all, jobs));
    }

    private List<String> send(List<Adding> all, List<QueueCommands.NewJob> jobs) {
        Packed packed = new Packed(all);
        try {
            return isFlow(all) ? together(all, jobs) : packed.ids(shards.all(packed.calls(), null));
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

    private List<String> together(List<Adding> all, List<QueueCommands.NewJob> jobs) {
        if (all.isEmpty()) {
            return List.of();
        }
        if (!all.stream().allMatch(each -> Arrays.equals(each.key(), all.get(0).key()))) {
            throw new IllegalArgumentException("jobs that are after one another must be of one shard: give them no ids");
        }
        return new SentOnce(shards, all, jobs.get(jobs.size() - 1).options()).add();
    }
}

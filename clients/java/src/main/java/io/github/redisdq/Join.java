package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** Jobs, and one that is after all of them. */
final class Join {
    static final Duration KEEP = Duration.ofMinutes(1); // for who may have to look the last job up, or waits for it
    private static final int MOST_AFTER = 1000;

    private final Shards shards;
    private final List<Adding> all = new ArrayList<>();
    private final JobOptions last;

    Join(Adding.To queue, List<QueueCommands.NewJob> jobs, QueueCommands.NewJob then) {
        shards = queue.shards();
        last = then.options().isKept() ? then.options() : then.options().copy().keep(KEEP);
        if (jobs.isEmpty()) {
            throw new IllegalArgumentException("join needs jobs that come before the last one");
        }
        if (!last.after().isEmpty() || last.isAfterGroup()) {
            throw new IllegalArgumentException("then takes neither after nor afterGroup: it is after the jobs of the join");
        }
        boolean isGrouped = jobs.size() > MOST_AFTER;
        if (isGrouped && last.hasOnDead()) {
            throw new IllegalArgumentException("onDead is for at most " + MOST_AFTER + " jobs: more are joined by their group");
        }
        String group = Objects.requireNonNullElseGet(jobs.get(0).options().group, () -> "join:" + Ids.next());
        byte[] key = key(jobs);
        for (QueueCommands.NewJob each : jobs) {
            JobOptions options = each.options();
            if (isGrouped && options.group != null && !options.group.equals(group)) {
                throw new IllegalArgumentException(
                        "more than " + MOST_AFTER + " jobs are joined by their group: give them one, or none");
            }
            all.add(new Adding(queue, each.data(), isGrouped ? options.copy().group(group) : options, key));
        }
        Adding adding = new Adding(queue, then.data(), last, key);
        all.add(isGrouped ? adding.behind(group) : adding.behind(all.stream().map(Adding::id).toList()));
    }

    /** The shard of the jobs, which is that of their given ids. */
    private byte[] key(List<QueueCommands.NewJob> jobs) {
        List<String> given = new ArrayList<>();
        jobs.forEach(each -> given.add(each.options().id()));
        given.add(last.id());
        given.removeIf(Objects::isNull);
        byte[] key = shards.key(given.isEmpty() ? Ids.next() : given.get(0));
        if (!given.stream().allMatch(id -> Arrays.equals(shards.key(id), key))) {
            throw new IllegalArgumentException("the jobs of a join must be in one shard: leave their ids out");
        }
        return key;
    }

    /** Returns the last job's id, or null if it was refused. */
    String add() {
        return new SentOnce(shards, all, last).add().get(all.size() - 1);
    }
}

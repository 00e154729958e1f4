package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * Adds jobs, and one that is after all of them, in one transaction. If its answer is lost, the last job is asked for: all
 * are sent again only if it is not there, and none of the others ran.
 */
final class Join {
    static final Duration KEEP = Duration.ofMinutes(1); // for who may have to look the last job up, or waits for it
    private static final int MOST_AFTER = 1000;
    private static final int TRIES = 5;
    private static final Set<String> ENDED = Set.of("done", "dead");
    /** The server cannot answer yet, or has passed the key on: it did not carry out the command. */
    private static final Set<String> PASSING =
            Set.of("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING", "MASTERDOWN");

    private final Shards shards;
    private final List<Adding> all = new ArrayList<>();
    private final boolean isGiven; // the last job's id is the program's, so a job of that id may be there already
    private final long keptNs; // later on, that the last job is not there says nothing
    private Map<String, Object> before; // a job that had the id of the last one; or null
    private long begun;
    private boolean isOut; // sent, without an answer yet

    Join(Adding.To queue, List<QueueCommands.NewJob> jobs, QueueCommands.NewJob then) {
        shards = queue.shards();
        JobOptions last = then.options().isKept() ? then.options() : then.options().copy().keep(KEEP);
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
        byte[] key = key(jobs, last);
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
        isGiven = last.id() != null;
        keptNs = (last.ttl == null ? last.keep : Times.min(last.keep, last.ttl)).toNanos();
    }

    /** The shard of the jobs, which is that of their given ids. */
    private byte[] key(List<QueueCommands.NewJob> jobs, JobOptions last) {
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
        Adding last = all.get(all.size() - 1);
        Packed packed = new Packed(all);
        before = isGiven ? looked(List.of(last)).get(0) : null;
        begun = System.nanoTime();
        for (int tries = 1; ; tries++) {
            isOut = false;
            try {
                return packed.ids(shards.transaction(packed.calls(), () -> isOut = true)).get(all.size() - 1);
            } catch (RefusedException said) {
                if (!PASSING.contains(said.code()) || tries >= TRIES) {
                    throw said;
                }
                rest(tries);
            } catch (DqException lost) {
                if (!isOut) {
                    throw lost; // nothing was sent
                }
                if (areThere(tries, lost)) {
                    return last.id();
                }
            }
        }
    }

    /** Whether the server has the jobs, although the answer was lost. Throws if nobody knows. */
    private boolean areThere(int tries, DqException lost) {
        List<Map<String, Object>> found = List.of();
        for (int times = tries; times <= TRIES && found.isEmpty(); times++) {
            rest(times);
            try {
                found = looked(all);
            } catch (DqException error) {
                if (error instanceof RefusedException said && !PASSING.contains(said.code())) {
                    break;
                }
            }
        }
        // A job that is still to run is not replaced: what becomes of it tells nothing of this join.
        boolean isHidden = before != null && !hasEnded(before);
        Map<String, Object> last = found.isEmpty() ? null : found.get(found.size() - 1);
        if (last != null && !last.equals(before) && !isHidden) {
            return true;
        }
        boolean isLate = last == null && System.nanoTime() - begun >= keptNs;
        if (found.isEmpty() || isHidden || isLate || found.subList(0, found.size() - 1).stream().anyMatch(Join::hasRun)) {
            throw new DqException(lost.getMessage() + ": it is not known whether the jobs of the join were added", lost);
        }
        return false;
    }

    /** The jobs as they are now; null for those that are not there. The last one is asked for first. */
    private List<Map<String, Object>> looked(List<Adding> jobs) {
        List<Adding> backwards = new ArrayList<>(jobs);
        Collections.reverse(backwards);
        List<Words> calls = backwards.stream()
                .map(each -> new Words("DQ.GET").add(each.key()).add(each.id()).add("PREFIX").add(0))
                .toList();
        List<Map<String, Object>> found = new ArrayList<>();
        for (Object reply : shards.all(calls, null)) {
            Map<String, Object> job = Reply.map(reply);
            if (job != null) {
                job.replaceAll((name, value) -> comparable(value));
            }
            found.add(0, job);
        }
        return found;
    }

    private static Object comparable(Object value) {
        if (value instanceof List<?> list) {
            return list.stream().map(Join::comparable).toList();
        }
        return value instanceof byte[] raw ? Bytes.text(raw) : value;
    }

    private static boolean hasEnded(Map<String, Object> job) {
        return ENDED.contains(job.get("state"));
    }

    private static boolean hasRun(Map<String, Object> job) {
        return job != null && (Reply.number(job.get("attempts")) > 0 || hasEnded(job));
    }

    private static void rest(int tries) {
        try {
            Thread.sleep(Trouble.pause(tries).toMillis());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}

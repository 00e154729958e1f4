package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Adds jobs in one transaction. If its answer is lost, the last job is asked for: all are sent again only if it is not
 * there, and none of the others ran.
 */
final class SentOnce {
    private static final int TRIES = 5;
    private static final Set<String> ENDED = Set.of("done", "dead");
    private static final Set<String> LIMITS = Set.of("donelen", "donebytes", "deadlen");
    /** The server cannot answer yet, or has passed the key on: it did not carry out the command. */
    private static final Set<String> PASSING =
            Set.of("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING", "MASTERDOWN");

    private final Shards shards;
    private final List<Adding> all;
    private final Adding last;
    private final boolean isGiven; // the last job's id is the program's, so a job of that id may be there already
    private final long keptNs; // later on, that the last job is not there says nothing
    private Map<String, Object> before; // a job that had the id of the last one; or null
    private long begun;
    private boolean isOut; // sent, without an answer yet

    /** {@code options}: of the last job. */
    SentOnce(Shards shards, List<Adding> all, JobOptions options) {
        this.shards = shards;
        this.all = all;
        last = all.get(all.size() - 1);
        isGiven = options.id() != null;
        Duration kept = options.isKept() ? options.keep : Duration.ZERO;
        keptNs = (options.ttl == null ? kept : Times.min(kept, options.ttl)).toNanos();
    }

    /** Returns the ids, with null for a job that was refused. */
    List<String> add() {
        Packed packed = new Packed(all);
        before = isGiven ? looked(List.of(last)).get(0) : null;
        begun = System.nanoTime();
        DqException unanswered = null;
        for (int tries = 1; ; tries++) {
            isOut = false;
            List<String> ids;
            try {
                ids = packed.ids(shards.transaction(packed.calls(), () -> isOut = true));
            } catch (RefusedException said) {
                if (!PASSING.contains(said.code()) || tries >= TRIES) {
                    throw said;
                }
                rest(tries);
                continue;
            } catch (DqException lost) {
                if (!isOut) {
                    throw lost; // nothing was sent
                }
                if (areThere(tries, lost)) {
                    return all.stream().map(Adding::id).toList();
                }
                unanswered = lost;
                continue;
            }
            if (unanswered != null && ids.get(ids.size() - 1) == null) {
                throw unknown(unanswered); // the earlier sending came late, or another program has added such a job
            }
            return ids;
        }
    }

    private static DqException unknown(DqException lost) {
        return new DqException(lost.getMessage() + ": it is not known whether the jobs were added", lost);
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
        Map<String, Object> there = found.isEmpty() ? null : found.get(found.size() - 1);
        if (there != null && !there.equals(before) && !isHidden) {
            return true;
        }
        boolean isUnknown = found.isEmpty() || isHidden || found.subList(0, found.size() - 1).stream().anyMatch(SentOnce::hasRun);
        if (isUnknown || there == null && (System.nanoTime() - begun >= keptNs || isBounded())) {
            throw unknown(lost);
        }
        return false;
    }

    /** Whether a job that has ended may go before its {@code keep} is over, as others end. */
    private boolean isBounded() {
        try {
            Map<String, Object> settings = Reply.map(shards.one(new Words("DQ.CFGGET").add(last.key())));
            return settings != null && LIMITS.stream().anyMatch(each -> Reply.number(settings.get(each)) > 0);
        } catch (DqException error) {
            return true;
        }
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
            return list.stream().map(SentOnce::comparable).toList();
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

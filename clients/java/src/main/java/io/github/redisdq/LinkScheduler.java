package io.github.redisdq;

import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * Which link fetches next, if several share a worker's places. A fetch that waits holds places that ready jobs of
 * another link may need, so it can be recalled. Without I/O, threads or a clock: instants are by System.nanoTime, and
 * given as arguments.
 */
final class LinkScheduler<L> {
    /** How long after a recall a link has its next turn; also the longest wait of a fetch that cannot be recalled. */
    static final Duration TURN = Duration.ofMillis(250);

    private static final Duration HOLD = Duration.ofMillis(25);

    private final long holdNs;

    private final Map<L, Long> due = new LinkedHashMap<>(); // when the turn comes, of links that want to fetch
    private final Map<L, Long> out = new LinkedHashMap<>(); // since when links fetch, or were last recalled; in that order
    private final Set<L> recalled = new HashSet<>();
    private final Map<L, Long> later = new HashMap<>(); // the earliest next turn of links whose fetch was recalled
    private L leaving; // the last link that was recalled; null if it has returned

    LinkScheduler(int links) {
        holdNs = hold(links);
    }

    /**
     * How long a fetch may wait before it is recalled. With many links it is shorter, so that a link with jobs fetches
     * at least half of the time.
     */
    static long hold(int links) {
        return Times.min(HOLD, TURN.dividedBy(2L * links)).toNanos();
    }

    void want(L link, long now) {
        Long at = later.remove(link);
        due.put(link, at == null || at - now < 0 ? now : at);
    }

    /** The link whose turn it is, or null. */
    L first(long now) {
        L first = soonest();
        return first != null && due.get(first) - now <= 0 ? first : null;
    }

    private L soonest() {
        L soonest = null;
        for (L link : due.keySet()) {
            if (soonest == null || due.get(link) - due.get(soonest) < 0) {
                soonest = link;
            }
        }
        return soonest;
    }

    void begin(L link, long now) {
        due.remove(link);
        out.put(link, now);
    }

    void end(L link, long now, boolean isEmpty) {
        out.remove(link);
        leaving = link == leaving ? null : leaving;
        if (recalled.remove(link) && isEmpty) {
            later.put(link, now + TURN.toNanos());
        }
    }

    /**
     * Recalls the fetch of a link, if there is no place for the link whose turn it is. Returns the link; null: none
     * yet.
     */
    L recall(long now) {
        if (first(now) == null || out.isEmpty() || recallsAt() - now > 0) {
            return null;
        }
        leaving = oldest();
        out.remove(leaving);
        out.put(leaving, now);
        recalled.add(leaving);
        return leaving;
    }

    private L oldest() {
        return out.keySet().iterator().next();
    }

    /** When the next fetch may be recalled: one at a time, as each makes room. */
    private long recallsAt() {
        return out.get(leaving == null ? oldest() : leaving) + holdNs;
    }

    /** When a turn comes or, if there is no place, a fetch is to be recalled; {@code otherwise}, if that is earlier. */
    long lookAt(long now, long otherwise) {
        L soonest = soonest();
        if (soonest == null) {
            return otherwise;
        }
        long at = due.get(soonest);
        if (at - now <= 0) {
            at = out.isEmpty() ? otherwise : recallsAt();
        }
        return at - otherwise < 0 ? at : otherwise;
    }
}

package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * How long a link's fetches have waited in vain. After a minute the next one takes DQ.EXPLAIN along, and delays nothing.
 * It belongs to the supplier.
 */
final class Idle {
    /** Tests change it. */
    static volatile Duration after = Duration.ofMinutes(1);

    private static final int MOST_KEYS = 100;
    private static final Set<String> NONE_READY = Set.of("delayed", "blocked", "reserved", "empty");

    private final Watch watch;
    private List<byte[]> keys;
    private long waitedNs;
    private boolean isSaid; // in this time without jobs

    Idle(Watch watch, List<byte[]> keys) {
        this.watch = watch;
        this.keys = keys.subList(0, Math.min(keys.size(), MOST_KEYS));
    }

    void fetched(boolean isAny, long waitedNs) {
        this.waitedNs = isAny ? 0 : this.waitedNs + waitedNs;
        isSaid = isSaid && !isAny;
    }

    /** The keys that the next fetch asks about. */
    List<byte[]> asks() {
        if (waitedNs < after.toNanos() || isSaid) {
            return List.of();
        }
        waitedNs = 0;
        return keys;
    }

    static byte[][] command(byte[] key) {
        return new Words("DQ.EXPLAIN").add(key).all();
    }

    void heard(byte[] key, Object reply) {
        if (reply instanceof RefusedException said) {
            if (watch.isForbidden(said, "DQ.EXPLAIN", "an idle worker cannot say why it gets no jobs")) {
                keys = List.of();
            }
            return;
        }
        String why = heldBack(Explanation.all(reply));
        if (!why.isEmpty()) {
            isSaid = true;
            Guard.warn("queue " + Bytes.text(key) + ": no job for a minute, although some are ready: " + why);
        }
    }

    /** Why jobs that are ready are not delivered; empty if none is, or nothing holds them: this fetch gets them. */
    private static String heldBack(List<Explanation> all) {
        if (all.stream().anyMatch(each -> NONE_READY.contains(each.code()))) {
            return "";
        }
        return all.stream().filter(each -> !each.code().equals("idle")).map(Idle::shown).collect(Collectors.joining(", "));
    }

    private static String shown(Explanation each) {
        List<String> parts = new ArrayList<>(List.of(each.code()));
        if (each.number() != null) {
            parts.add(each.number().toString());
        }
        if (each.until() != null) {
            long ms = Math.max(0, Duration.between(Instant.now(), each.until()).toMillis());
            parts.add("for " + (ms + 999) / 1000 + " s");
        }
        return String.join(" ", parts);
    }
}

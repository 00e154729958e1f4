package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * Settings and figures of a group. A setting is null where the queue's holds. {@code pausedUntil} is as in {@link Stats}.
 * {@code waiting} are delayed and ready jobs. {@code rateUsed} is the cost of the deliveries in the current window of its
 * rate.
 */
public record GroupStats(
        Long weight, Long max, Rate rate, Long maxLen, Instant pausedUntil, long waiting, long reserved, long rateUsed) {
    /** So many jobs in a window; 0 of both: no limit. */
    public record Rate(long jobs, Duration window) {}

    /** Whether the group is passed over. */
    public boolean isPaused() {
        return pausedUntil != null;
    }

    /** The settings of the first shard, and the figures of all. */
    static GroupStats of(List<Map<String, Object>> shards) {
        if (shards.isEmpty()) {
            return null;
        }
        Map<String, Object> first = shards.get(0);
        List<Object> rate = Reply.list(first.get("rate"));
        return new GroupStats(
                (Long) first.get("weight"),
                (Long) first.get("max"),
                rate.size() < 2 ? null : new Rate(Reply.number(rate.get(0)), Reply.duration(rate.get(1))),
                (Long) first.get("maxlen"),
                Stats.paused(Stats.all(shards, "paused")),
                Stats.total(shards, "waiting"),
                Stats.total(shards, "reserved"),
                Stats.total(shards, "rate-used"));
    }
}

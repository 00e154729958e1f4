package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * A queue's figures; of a sharded queue, those of its shards added up. {@code totals} are added, delivered, acked, nacked,
 * timed-out, died, deleted, expired and missed; lateness is delivery minus due.
 */
public record Stats(
        long delayed,
        long ready,
        long reserved,
        long dead,
        Instant nextDue,
        Duration oldestReady,
        long waitingClients,
        Map<String, Long> totals,
        long latenessCount,
        Duration latenessMean,
        Duration latenessMax,
        List<Bucket> latenessBuckets) {
    /** How many deliveries were at most so late; null: without a bound. */
    public record Bucket(Duration upTo, long count) {}

    private static final Set<String> NOT_TOTALS = Set.of(
            "delayed", "ready", "reserved", "dead", "next-due", "oldest-ready-ms", "waiting-clients", "paused", "bytes",
            "recurring", "groups");

    static Stats addUp(List<Map<String, Object>> shards) {
        List<Map<String, Object>> found = shards.stream().filter(Objects::nonNull).toList();
        if (found.isEmpty()) {
            return null;
        }
        Map<String, Long> totals = new LinkedHashMap<>();
        for (String name : found.get(0).keySet()) {
            if (!NOT_TOTALS.contains(name) && !name.startsWith("lateness-")) {
                totals.put(name, total(found, name));
            }
        }
        long count = total(found, "lateness-count");
        return new Stats(
                total(found, "delayed"),
                total(found, "ready"),
                total(found, "reserved"),
                total(found, "dead"),
                all(found, "next-due").stream().min(Long::compare).map(Instant::ofEpochMilli).orElse(null),
                all(found, "oldest-ready-ms").stream().max(Long::compare).map(Duration::ofMillis).orElse(null),
                total(found, "waiting-clients"),
                totals,
                count,
                micros(count == 0 ? 0 : total(found, "lateness-sum") / count),
                micros(all(found, "lateness-max").stream().max(Long::compare).orElse(0L)),
                buckets(found));
    }

    private static List<Long> all(List<Map<String, Object>> found, String name) {
        return found.stream().map(each -> (Long) each.get(name)).filter(Objects::nonNull).toList();
    }

    private static long total(List<Map<String, Object>> found, String name) {
        return found.stream().mapToLong(each -> Reply.number(each.get(name))).sum();
    }

    private static Duration micros(long count) {
        return Duration.of(count, ChronoUnit.MICROS);
    }

    private static List<Bucket> buckets(List<Map<String, Object>> found) {
        Map<Long, Long> counts = new LinkedHashMap<>();
        for (Map<String, Object> each : found) {
            for (Object bucket : Reply.list(each.get("lateness-buckets"))) {
                List<Object> pair = Reply.list(bucket);
                Long bound = (Long) pair.get(0); // null: none
                counts.put(bound, counts.getOrDefault(bound, 0L) + Reply.number(pair.get(1)));
            }
        }
        List<Bucket> buckets = new ArrayList<>();
        counts.forEach((bound, count) -> buckets.add(new Bucket(bound == null ? null : micros(bound), count)));
        return buckets;
    }
}

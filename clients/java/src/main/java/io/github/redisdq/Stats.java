package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A queue's figures; of a sharded queue, the sums of its shards. {@code pausedUntil} is null if the queue is not
 * paused, and {@link Instant#MAX} if it is paused until it is resumed. {@code bytes} are as MAXBYTES counts them.
 * {@code rateUsed} is the cost of the deliveries in the current window of RATE. {@code totals} has added, delivered,
 * acked, nacked, timed-out, died, deleted, expired and missed. Lateness is how long after its due time a job was
 * delivered. Figures that the server does not have are 0.
 */
public record Stats(
        long blocked,
        long delayed,
        long ready,
        long reserved,
        long dead,
        long done,
        long doneBytes,
        Instant nextDue,
        Duration oldestReady,
        long waitingClients,
        Instant pausedUntil,
        long bytes,
        long recurring,
        long groups,
        long rateUsed,
        Map<String, Long> totals,
        long latenessCount,
        Duration latenessMean,
        Duration latenessMax,
        List<Bucket> latenessBuckets) {
    /** How many deliveries were at most {@code upTo} late; null: no bound. */
    public record Bucket(Duration upTo, long count) {}

    private static final List<String> TOTALS =
            List.of("added", "delivered", "acked", "nacked", "timed-out", "died", "deleted", "expired", "missed");
    private static final long UNTIL_RESUMED = -1;

    /** Whether the queue, or one of its shards, delivers nothing. */
    public boolean isPaused() {
        return pausedUntil != null;
    }

    static Stats addUp(List<Map<String, Object>> shards) {
        List<Map<String, Object>> found = shards.stream().filter(Objects::nonNull).toList();
        if (found.isEmpty()) {
            return null;
        }
        Map<String, Long> totals = new LinkedHashMap<>();
        TOTALS.forEach(name -> totals.put(name, total(found, name)));
        long count = total(found, "lateness-count");
        return new Stats(
                total(found, "blocked"),
                total(found, "delayed"),
                total(found, "ready"),
                total(found, "reserved"),
                total(found, "dead"),
                total(found, "done"),
                total(found, "done-bytes"),
                all(found, "next-due").stream().min(Long::compare).map(Instant::ofEpochMilli).orElse(null),
                all(found, "oldest-ready-ms").stream().max(Long::compare).map(Duration::ofMillis).orElse(null),
                total(found, "waiting-clients"),
                paused(all(found, "paused")),
                total(found, "bytes"),
                total(found, "recurring"),
                total(found, "groups"),
                total(found, "rate-used"),
                totals,
                count,
                micros(count == 0 ? 0 : total(found, "lateness-sum") / count),
                micros(all(found, "lateness-max").stream().max(Long::compare).orElse(0L)),
                buckets(found));
    }

    static Instant paused(List<Long> shards) {
        if (shards.contains(UNTIL_RESUMED)) {
            return Instant.MAX;
        }
        return shards.stream().filter(until -> until > 0).max(Long::compare).map(Instant::ofEpochMilli).orElse(null);
    }

    static List<Long> all(List<Map<String, Object>> found, String name) {
        return found.stream().map(each -> each.get(name)).filter(Long.class::isInstance).map(Long.class::cast).toList();
    }

    static long total(List<Map<String, Object>> found, String name) {
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
                Long bound = (Long) pair.get(0); // null: no bound
                counts.put(bound, counts.getOrDefault(bound, 0L) + Reply.number(pair.get(1)));
            }
        }
        List<Bucket> buckets = new ArrayList<>();
        counts.forEach((bound, count) -> buckets.add(new Bucket(bound == null ? null : micros(bound), count)));
        return buckets;
    }
}

package io.github.redisdq;

import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * A reason why a queue or a job is not delivered.
 *
 * @param code As in the command reference: {@code paused}, {@code rate}, {@code behind}, ...
 * @param number How many, where the code counts something; else null.
 * @param until When time alone ends it; else null.
 */
public record Explanation(String code, Long number, Instant until) {
    /** In the server's order. */
    private static final List<String> OF_QUEUE = List.of(
            "paused", "maxreserved", "delayed", "blocked", "reserved", "empty", "groups", "rate", "fill", "idle");

    private static final Set<String> SAY_NO_JOBS = Set.of("paused", "maxreserved", "empty");

    static List<Explanation> all(Object reply) {
        return Reply.list(reply).stream().map(row -> of(Reply.list(row))).toList();
    }

    private static Explanation of(List<Object> row) {
        return new Explanation(Reply.text(row.get(0)), row.get(1) instanceof Long number ? number : null, Reply.instant(row.get(2)));
    }

    /** The reasons of all shards, each code once; null if no shard is there. */
    static List<Explanation> ofShards(List<Object> replies) {
        List<List<Explanation>> found = replies.stream().filter(Objects::nonNull).map(Explanation::all).toList();
        if (found.size() < 2) {
            return found.isEmpty() ? null : found.get(0);
        }
        List<Explanation> rows = found.stream().flatMap(List::stream).toList();
        boolean isEmpty = rows.stream().allMatch(row -> SAY_NO_JOBS.contains(row.code));
        return OF_QUEUE.stream()
                .filter(code -> isEmpty || !code.equals("empty"))
                .map(code -> rows.stream().filter(row -> row.code.equals(code)).reduce(Explanation::plus).orElse(null))
                .filter(Objects::nonNull)
                .toList();
    }

    /** With what another shard says of the same code. */
    private Explanation plus(Explanation other) {
        Long sum = number == null ? other.number : other.number == null ? number : Long.valueOf(number + other.number);
        boolean isSooner = until != null && (other.until == null || until.isBefore(other.until));
        return new Explanation(code, sum, isSooner ? until : other.until);
    }
}

package io.github.redisdq;

import java.time.Duration;
import java.util.Objects;
import java.util.List;

/**
 * How long deliveries are leased. {@code ttr}: the handlers' lease, if all have the same; it goes before a job's own
 * TTR. {@code own}: the worker's, for jobs without a TTR of their own. {@code shortest}: the shortest of all that are
 * set.
 */
record Leases(Duration ttr, Duration own, Duration shortest) {
    private static final Duration LONGEST_ANSWER = Duration.ofSeconds(5);
    private static final Duration SHORTEST_ANSWER = Duration.ofMillis(200);

    static Leases of(List<Handler<?>> handlers, Duration own) {
        Duration first = handlers.get(0).lease();
        boolean areAlike = handlers.stream().allMatch(each -> Objects.equals(each.lease(), first));
        Duration ttr = areAlike ? first : null;
        Duration shortest = ttr == null && own != null ? own : Duration.ofMillis(Terms.USUAL_TTR_MS);
        for (Handler<?> each : handlers) {
            shortest = each.lease() == null ? shortest : Times.min(shortest, each.lease());
        }
        return new Leases(ttr, ttr == null ? own : null, ttr == null ? shortest : ttr);
    }

    /** How long a reply may take that renews leases. */
    Duration answer() {
        return Times.min(LONGEST_ANSWER, Times.max(shortest.dividedBy(3), SHORTEST_ANSWER));
    }

    /** The options for DQ.BPOP. */
    Words words() {
        return new Words().value("TTR", ttr).value("LEASE", own);
    }

    /** The lease of a delivery with these terms. */
    long ms(Terms terms) {
        if (ttr != null) {
            return Times.ms(ttr);
        }
        return own != null && terms.ttrMs() == Terms.USUAL_TTR_MS ? Times.ms(own) : terms.ttrMs();
    }
}

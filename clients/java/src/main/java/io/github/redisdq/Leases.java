package io.github.redisdq;

import java.time.Duration;
import java.util.Objects;
import java.util.List;

/**
 * How long deliveries are leased. {@code ttr}: what each handler says, where they say the same; it goes before a job's own.
 * {@code own}: what the worker says, for jobs without one of their own. {@code shortest}: of all that is said.
 */
record Leases(Duration ttr, Duration own, Duration shortest) {
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

    /** For DQ.BPOP. */
    Words words() {
        return new Words().value("TTR", ttr).value("LEASE", own);
    }

    /** Of a delivery that came with these words. */
    long ms(Terms terms) {
        if (ttr != null) {
            return Times.ms(ttr);
        }
        return own != null && terms.ttrMs() == Terms.USUAL_TTR_MS ? Times.ms(own) : terms.ttrMs();
    }
}

package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;

/** When a job recurs, for {@link DqQueue#recur}. */
public final class Rule {
    private final Words rule;
    private Instant first;
    private Instant until;
    private Integer times;
    private Duration grace;
    private Duration jitter;

    private Rule(Words rule) {
        this.rule = rule;
    }

    /** At an interval; first, one interval from now. */
    public static Rule every(Duration interval) {
        return new Rule(new Words().value("EVERY", interval));
    }

    /** By a cron expression, in UTC. */
    public static Rule cron(String expression) {
        return new Rule(new Words().value("CRON", expression));
    }

    /** By a cron expression, in a zone: an IANA name. */
    public static Rule cron(String expression, String zone) {
        return new Rule(new Words().value("CRON", expression).value("TZ", zone));
    }

    /** The first occurrence. Each call of {@link DqQueue#recur} with it begins the rule anew. */
    public Rule first(Instant first) {
        this.first = first;
        return this;
    }

    /** No occurrence comes after this instant. */
    public Rule until(Instant until) {
        this.until = until;
        return this;
    }

    /** The number of occurrences in all. */
    public Rule times(int times) {
        this.times = times;
        return this;
    }

    /** An occurrence that is not delivered within this time of its due time is skipped. */
    public Rule grace(Duration grace) {
        this.grace = grace;
        return this;
    }

    /** Each occurrence is delayed by up to this time. */
    public Rule jitter(Duration jitter) {
        this.jitter = jitter;
        return this;
    }

    boolean hasFirst() {
        return first != null;
    }

    Words words() {
        Words words = new Words().add(rule).value("UNTIL", until).value("TIMES", times);
        return words.value("GRACE", grace).value("JITTER", jitter).value("AT", first);
    }
}

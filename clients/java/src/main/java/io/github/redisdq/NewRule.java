package io.github.redisdq;

import java.time.Duration;

/** A rule of {@link DqQueue#rules}: its name there makes the id, which the options do not have. */
public final class NewRule {
    final Object data;
    final JobOptions options;

    private NewRule(Object data, JobOptions options) {
        this.data = data;
        this.options = options;
    }

    /** As {@link DqQueue#every}. */
    public static NewRule every(Duration interval, Object data, JobOptions options) {
        return new NewRule(data, options.every(interval));
    }

    /** As {@link DqQueue#cron}. */
    public static NewRule cron(String expression, Object data, JobOptions options) {
        return new NewRule(data, options.cron(expression));
    }
}

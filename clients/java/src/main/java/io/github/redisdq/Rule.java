package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/**
 * The rule of a recurring job, as DQ.GET shows it, and how far it is. Of {@code every} and {@code cron} one is null; so
 * is what was not given. {@code runs} is how many occurrences have ended.
 */
public record Rule(
        Duration every,
        String cron,
        String tz,
        Instant until,
        Long times,
        Duration grace,
        Duration jitter,
        Instant occurrence,
        long runs) {
    /** Null if the job does not recur. */
    static Rule of(Map<String, Object> fields) {
        Duration every = Reply.duration(fields.get("every"));
        String cron = Reply.text(fields.get("cron"));
        if (every == null && cron == null) {
            return null;
        }
        return new Rule(
                every,
                cron,
                Reply.text(fields.get("tz")),
                Reply.instant(fields.get("until")),
                fields.get("times") instanceof Long times ? times : null,
                Reply.duration(fields.get("grace")),
                Reply.duration(fields.get("jitter")),
                Reply.instant(fields.get("occurrence")),
                Reply.number(fields.get("runs")));
    }
}

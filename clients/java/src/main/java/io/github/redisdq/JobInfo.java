package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A job as DQ.GET shows it. What it does not have is null; {@code maxAttempts} is 0 without a limit, {@code next} is the payload
 * of its successor, {@code after} and {@code afterGroup} are what a blocked job still waits for. {@code fields} has all
 * as the server gave them, also those that this library does not know.
 */
public record JobInfo(
        String id,
        byte[] payload,
        State state,
        int priority,
        Instant due,
        Instant deadline,
        Duration ttr,
        int attempts,
        int maxAttempts,
        List<Duration> backoff,
        Instant expires,
        String token,
        String reason,
        Instant failed,
        String group,
        byte[] next,
        Recurrence recurrence,
        byte[] result,
        Instant started,
        Instant finished,
        String progress,
        Duration keep,
        int cost,
        String awaits,
        Map<String, byte[]> steps,
        List<String> after,
        String afterGroup,
        String onDead,
        Map<String, Object> fields) {
    static JobInfo of(Map<String, Object> fields) {
        if (fields == null) {
            return null;
        }
        return new JobInfo(
                Reply.text(fields.get("id")),
                (byte[]) fields.get("payload"),
                State.of(fields.get("state")),
                (int) Reply.number(fields.get("priority")),
                Reply.instant(fields.get("due")),
                Reply.instant(fields.get("deadline")),
                Reply.duration(fields.get("ttr")),
                (int) Reply.number(fields.get("attempts")),
                (int) Reply.number(fields.get("max-attempts")),
                Reply.ladder(fields.get("backoff")),
                Reply.instant(fields.get("expires")),
                Reply.text(fields.get("token")),
                Reply.prose(fields.get("reason")),
                Reply.instant(fields.get("failed")),
                Reply.text(fields.get("group")),
                (byte[]) fields.get("next"),
                Recurrence.of(fields),
                (byte[]) fields.get("result"),
                Reply.instant(fields.get("started")),
                Reply.instant(fields.get("finished")),
                Reply.prose(fields.get("progress")),
                Reply.duration(fields.get("keep")),
                (int) Reply.number(fields.get("cost")),
                Reply.text(fields.get("awaits")),
                steps(fields.get("steps")),
                Reply.list(fields.get("after")).stream().map(Reply::text).toList(),
                Reply.text(fields.get("after-group")),
                Reply.text(fields.get("on-dead")),
                fields);
    }

    private static Map<String, byte[]> steps(Object reply) {
        Map<String, byte[]> steps = new LinkedHashMap<>();
        Map<String, Object> found = Reply.map(reply);
        if (found != null) {
            found.forEach((name, value) -> steps.put(name, (byte[]) value));
        }
        return steps;
    }
}

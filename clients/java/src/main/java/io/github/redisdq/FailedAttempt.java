package io.github.redisdq;

import java.time.Instant;
import java.util.List;

/**
 * An attempt of a job that failed.
 *
 * @param attempts Deliveries by then, with this one.
 * @param started When its delivery began.
 * @param ended When it was given back, or its lease ended.
 * @param how {@code nacked}, {@code fatal} or {@code timeout}.
 * @param reason Why; null without a reason.
 */
public record FailedAttempt(int attempts, Instant started, Instant ended, String how, String reason) {
    static List<FailedAttempt> all(Object reply) {
        return Reply.list(reply).stream().map(row -> of(Reply.list(row))).toList();
    }

    private static FailedAttempt of(List<Object> row) {
        return new FailedAttempt(
                (int) Reply.number(row.get(0)),
                Reply.instant(row.get(1)),
                Reply.instant(row.get(2)),
                Reply.text(row.get(3)),
                Reply.prose(row.get(4)));
    }
}

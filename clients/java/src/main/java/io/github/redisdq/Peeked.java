package io.github.redisdq;

import java.time.Instant;
import java.util.List;

/**
 * A job as DQ.PEEK shows it. {@code at} depends on the state that was asked for: when the job is due, when its lease
 * expires, when it died or was done. {@code payloadBytes} is the payload's whole length, where it is cut too.
 */
public record Peeked(String id, byte[] payload, Instant at, int attempts, int priority, long payloadBytes) {
    static Peeked of(List<Object> row) {
        byte[] payload = (byte[]) row.get(1);
        return new Peeked(
                Reply.text(row.get(0)),
                payload,
                Reply.instant(row.get(2)),
                (int) Reply.number(row.get(3)),
                (int) Reply.number(row.get(4)),
                row.size() > 5 ? Reply.number(row.get(5)) : payload.length);
    }
}

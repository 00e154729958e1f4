package io.github.redisdq;

import java.time.Instant;
import java.util.List;

/** A job that was popped by hand, without a worker. Token and deadline are null with NOACK. */
public record Reserved(
        String queue, String id, byte[] payload, String token, int attempt, Instant deadline, Instant due) {
    static Reserved of(byte[] key, List<Object> row) {
        return new Reserved(
                Bytes.text(key),
                Reply.text(row.get(0)),
                (byte[]) row.get(1),
                Reply.text(row.get(2)),
                (int) Reply.number(row.get(3)),
                Reply.instant(row.get(4)),
                Reply.instant(row.get(5)));
    }
}

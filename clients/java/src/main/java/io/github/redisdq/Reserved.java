package io.github.redisdq;

import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A job that was popped by hand, without a worker. Token and deadline are null with NOACK. {@code results} are how the
 * jobs ended that this job came after; {@code steps} are what earlier attempts kept, by name.
 */
public record Reserved(
        String queue,
        String id,
        byte[] payload,
        String token,
        int attempt,
        Instant deadline,
        Instant due,
        List<JobResult> results,
        Map<String, byte[]> steps) {
    static Reserved of(byte[] key, List<Object> row, Codec codec) {
        Map<String, byte[]> steps = new LinkedHashMap<>();
        Reply.map(row.get(7)).forEach((name, value) -> steps.put(name, (byte[]) value));
        return new Reserved(
                Bytes.text(key),
                Reply.text(row.get(0)),
                (byte[]) row.get(1),
                Reply.text(row.get(2)),
                (int) Reply.number(row.get(3)),
                Reply.instant(row.get(4)),
                Reply.instant(row.get(5)),
                JobResult.all(row.get(6), codec),
                Collections.unmodifiableMap(steps));
    }
}

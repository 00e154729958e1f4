package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Jobs as they are delivered, without a server. */
final class Deliveries {
    static final byte[] TOKEN = Bytes.of("1882361448423751680");

    private Deliveries() {}

    static List<Object> row(byte[] payload, int attempt, Object results, Object steps, Object terms) {
        return Arrays.asList(Bytes.of("id"), payload, TOKEN, (long) attempt, 2000L, 1000L, results, steps, terms);
    }

    static Job job(byte[] payload, Codec codec) {
        return new Job(Bytes.of("q"), row(payload, 1, List.of(), List.of(), terms(0, null)), codec, null);
    }

    static Job job(Handler<?> handler, int attempt, String payload, Object terms) {
        List<Object> row = row(Bytes.of(payload), attempt, List.of(), List.of(), terms);
        Job job = new Job(Bytes.of("q"), row, Codec.json(), null);
        job.handler = handler;
        return job;
    }

    /** {@code wait}: what its own ladder would wait; null: it has none. */
    static List<Object> terms(long maxAttempts, Long wait) {
        return Arrays.asList(60_000L, maxAttempts, wait);
    }

    static Job job(Handler<?> handler, int attempt, String payload) {
        return job(handler, attempt, payload, terms(0, null));
    }

    static Job job(String payload) {
        return job(plain(), 1, payload);
    }

    static Handler<Void> plain() {
        return Handler.of(job -> {});
    }

    static String text(byte[][] words, int from) {
        return Stream.of(words).skip(from).map(Bytes::text).collect(Collectors.joining(" "));
    }

    static List<byte[][]> commands(Outcome outcome) {
        List<byte[][]> all = new ArrayList<>();
        outcome.addTo(all);
        assertEquals(all.size(), outcome.size());
        return all;
    }

    static List<String> texts(Outcome outcome) {
        return commands(outcome).stream().map(words -> text(words, 0)).toList();
    }
}

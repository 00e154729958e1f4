package io.github.redisdq;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads replies: null, Long, byte[], List, or a map of RESP3. */
final class Reply {
    private Reply() {}

    static String text(Object reply) {
        return reply instanceof byte[] raw ? Bytes.text(raw) : null;
    }

    /** A text for people: bytes that are not UTF-8 are replaced. */
    static String prose(Object reply) {
        return reply instanceof byte[] raw ? new String(raw, StandardCharsets.UTF_8) : null;
    }

    static long number(Object reply) {
        return reply instanceof Long number ? number : 0;
    }

    /** The number in a word of a command. */
    static int count(byte[] word) {
        return Integer.parseInt(text(word));
    }

    static Instant instant(Object reply) {
        return reply instanceof Long number ? Instant.ofEpochMilli(number) : null;
    }

    static Duration duration(Object reply) {
        return reply instanceof Long number ? Duration.ofMillis(number) : null;
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object reply) {
        return reply instanceof List<?> list ? (List<Object>) list : List.of();
    }

    static List<Duration> ladder(Object reply) {
        List<Duration> steps = new ArrayList<>();
        list(reply).forEach(each -> steps.add(duration(each)));
        return steps;
    }

    static Map<String, byte[]> steps(Object reply) {
        Map<String, byte[]> steps = new LinkedHashMap<>();
        if (reply != null) {
            map(reply).forEach((name, value) -> steps.put(name, (byte[]) value));
        }
        return steps;
    }

    /** Null if the reply is null. */
    static Map<String, Object> map(Object reply) {
        if (reply == null) {
            return null;
        }
        Map<String, Object> fields = new LinkedHashMap<>();
        if (reply instanceof Map<?, ?> map) {
            map.forEach((name, value) -> fields.put(text(name), value));
            return fields;
        }
        List<Object> flat = list(reply);
        for (int at = 0; at + 1 < flat.size(); at += 2) {
            fields.put(text(flat.get(at)), flat.get(at + 1));
        }
        return fields;
    }
}

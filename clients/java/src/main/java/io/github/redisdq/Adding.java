package io.github.redisdq;

import java.util.LinkedHashMap;
import java.util.Map;

/** One DQ.ADD, and what its answer means. */
final class Adding {
    private final String id;
    private final boolean isOurId;
    private final Words words;

    Adding(DqQueue queue, Object data, JobOptions options) {
        isOurId = options.id() == null;
        if (isOurId && options.ifExists() == JobOptions.IfExists.ONLY_REPLACE) {
            throw new IllegalArgumentException("what replaces a job needs that job's id: JobOptions.withId(\"close:17\")");
        }
        id = isOurId ? Ids.next() : options.id();
        words = new Words("DQ.ADD").add(queue.key(id)).add(id).add(payload(queue, data, options)).add(options.words());
    }

    String id() {
        return id;
    }

    Words words() {
        return words;
    }

    /** An id of ours that is there already was added by this command, which the client library sent twice. */
    String answered(Object reply) {
        return isOurId ? id : Reply.text(reply);
    }

    private static byte[] payload(DqQueue queue, Object data, JobOptions options) {
        Map<String, String> headers = new LinkedHashMap<>(options.headers());
        for (Hooks each : queue.hooks()) {
            headers = hooked(each, queue.name(), headers);
        }
        boolean isPlain = options.kind() == null && headers.isEmpty();
        return isPlain ? queue.codec().encode(data) : Envelope.write(queue.codec(), data, options.kind(), headers);
    }

    /** The headers with what the hook sets; as they were where it throws. */
    private static Map<String, String> hooked(Hooks hooks, String queue, Map<String, String> headers) {
        Map<String, String> given = new LinkedHashMap<>(headers);
        Map<String, String> set = new LinkedHashMap<>();
        Throwable error = Guard.call(() -> {
            hooks.adding(queue, given);
            given.forEach((Object name, Object value) -> {
                if (name instanceof String key && value instanceof String text) {
                    set.put(key, text);
                }
            });
        });
        if (error == null) {
            return set;
        }
        Guard.warn("the hook adding of " + hooks.getClass().getName() + " failed: the job of queue " + queue + " goes out without it", error);
        return headers;
    }
}

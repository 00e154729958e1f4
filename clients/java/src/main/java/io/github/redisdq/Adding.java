package io.github.redisdq;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A job to be added, and what the reply means. */
final class Adding {
    private final String id;
    private final boolean isOurId;
    private final byte[] key;
    private final byte[] payload;
    private final Words options;
    private final List<String> after;
    private final boolean isAfterGroup;
    private boolean isPlain;

    /** The queue that a job is added to. */
    record To(Shards shards, Codec codec, List<Hooks> hooks) {}

    Adding(To queue, Object data, JobOptions options) {
        this(queue, data, options, null);
    }

    /** {@code key}: the shard that the job must be in; null: any. */
    Adding(To queue, Object data, JobOptions options, byte[] key) {
        isOurId = options.id() == null;
        if (isOurId && options.ifExists() == JobOptions.IfExists.ONLY_REPLACE) {
            throw new IllegalArgumentException("what replaces a job needs that job's id: JobOptions.withId(\"close:17\")");
        }
        after = options.after();
        isAfterGroup = options.isAfterGroup();
        Shards shards = queue.shards;
        shards.checkFlow(after, isAfterGroup);
        byte[] shard = key == null && !after.isEmpty() ? shards.key(after.get(0)) : key;
        id = isOurId ? Ids.next(it -> shard == null || Arrays.equals(shards.key(it), shard)) : Ids.checked(options.id());
        this.key = shards.key(id);
        if (shard != null && !Arrays.equals(this.key, shard)) {
            throw new IllegalArgumentException("job " + id + " and those that it is after are in different shards");
        }
        payload = payload(shards.name, queue.codec, queue.hooks, data, options);
        isPlain = options.isPlain();
        this.options = options.words();
    }

    /** A job that is added by its parent, on the parent's key. */
    static Words child(byte[] key, String id, QueueCommands.NewJob child, To queue) {
        JobOptions options = child.options();
        byte[] payload = payload(queue.shards.name, queue.codec, queue.hooks, child.data(), options);
        return new Words("DQ.ADD").add(key).add(id).add(payload).add(options.words());
    }

    /** Has the job wait for others of its key. */
    Adding behind(List<String> ids) {
        options.option("AFTER").add(ids.size()).ids(ids);
        isPlain = false;
        return this;
    }

    /** Has the job wait for a group of its key. */
    Adding behind(String group) {
        options.option("AFTER").value("GROUP", group);
        isPlain = false;
        return this;
    }

    String id() {
        return id;
    }

    byte[] key() {
        return key;
    }

    byte[] payload() {
        return payload;
    }

    boolean isAfterGroup() {
        return isAfterGroup;
    }

    List<String> after() {
        return after;
    }

    int size() {
        return id.length() + payload.length;
    }

    Words words() {
        return new Words("DQ.ADD").add(key).add(id).add(payload).add(options);
    }

    /** Whether one command can add both. */
    boolean isLike(Adding other) {
        return isPlain && options.equals(other.options);
    }

    /** One command for jobs that are alike, and of one key. */
    static Words many(List<Adding> all) {
        Words words = new Words("DQ.MADD", 2 * all.size()).add(all.get(0).key).add(all.size());
        all.forEach(each -> words.add(each.id).add(each.payload));
        return words.add(all.get(0).options);
    }

    /**
     * The id that was added, or null if the job was refused. If a job has an id of ours already, an earlier sending of
     * this command by the client library added it.
     */
    String answered(Object reply) {
        return isOurId ? id : Reply.text(reply);
    }

    private static byte[] payload(String queue, Codec codec, List<Hooks> hooks, Object data, JobOptions options) {
        if (hooks.isEmpty() && options.kind() == null && options.headers().isEmpty()) {
            return codec.encode(data);
        }
        Map<String, String> headers = new LinkedHashMap<>(options.headers());
        for (Hooks each : hooks) {
            headers = hooked(each, queue, headers);
        }
        boolean isPlain = options.kind() == null && headers.isEmpty();
        return isPlain ? codec.encode(data) : Envelope.write(codec, data, options.kind(), headers);
    }

    /** The headers that the hook has set; unchanged if it throws. */
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

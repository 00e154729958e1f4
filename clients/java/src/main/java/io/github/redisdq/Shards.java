package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.zip.CRC32;

/** The keys of a queue, and commands on them. */
final class Shards {
    private static final Duration ANSWER = Duration.ofSeconds(5);

    final Connector connector;
    final String name;
    final int count; // 0: one key, with the queue's own name
    final List<byte[]> keys;
    /** What the server denies this user, once that was logged. */
    final Set<String> denied = ConcurrentHashMap.newKeySet();

    Shards(Connector connector, String name, int count) {
        this.connector = connector;
        this.name = name;
        this.count = count;
        List<byte[]> all = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            all.add(Bytes.of(name + ":{" + n + "}"));
        }
        keys = count == 0 ? List.of(Bytes.of(name)) : List.copyOf(all);
    }

    /** The shard of an id: by its CRC-32, the same in all languages. */
    byte[] key(String id) {
        if (count == 0) {
            return keys.get(0);
        }
        CRC32 crc = new CRC32();
        crc.update(Bytes.of(id));
        return keys.get((int) (crc.getValue() % count));
    }

    /** Refuses what a sharded queue cannot do: a job waits in one shard. */
    void checkFlow(List<String> after, boolean isAfterGroup) {
        if (isAfterGroup && keys.size() > 1) {
            throw new IllegalArgumentException(
                    "afterGroup does not work in a sharded queue: each shard has a group of that name");
        }
        if (after.stream().map(this::key).distinct().count() > 1) {
            throw new IllegalArgumentException("a job cannot be after jobs of different shards");
        }
    }

    /** An id of that key: the given one; without one {@code like}, or the first of {@code like~1}, ... that belongs there. */
    String idLike(byte[] key, String given, String like) {
        if (given != null && !Arrays.equals(key(given), key)) {
            throw new IllegalArgumentException(
                    "job " + given + " must be in the shard of the job that spawns it: leave its id out");
        }
        String id = given == null ? like : Ids.checked(given);
        for (int n = 1; !Arrays.equals(key(id), key); n++) {
            id = like + "~" + n;
        }
        return id;
    }

    List<Object> all(List<Words> calls, Duration patience) {
        if (calls.isEmpty()) {
            return List.of();
        }
        return Refusal.checked(connector.call(calls.stream().map(Words::all).toList(), patience), calls);
    }

    /** Sends the calls in one transaction, on a connection of its own. {@code sending}: called just before. */
    List<Object> transaction(List<Words> calls, Runnable sending) {
        List<Words> all = new ArrayList<>(List.of(new Words("MULTI")));
        all.addAll(calls);
        all.add(new Words("EXEC"));
        Wire wire = new Wire(connector, calls.get(0).key(), ANSWER, () -> {});
        try {
            wire.open();
            sending.run();
            List<Object> replies = wire.ask(all.stream().map(Words::all).toList());
            Refusal.queued(replies, calls);
            return Refusal.checked(Reply.list(replies.get(all.size() - 1)), calls);
        } finally {
            wire.close();
        }
    }

    Object one(Words call) {
        return all(List.of(call), null).get(0);
    }

    List<Object> each(String command, Words rest) {
        return all(keys.stream().map(key -> new Words(command).add(key).add(rest)).toList(), null);
    }

    static int sum(List<Object> replies) {
        return (int) replies.stream().mapToLong(Reply::number).sum();
    }

    Map<String, List<String>> byKey(Collection<String> ids) {
        Map<String, List<String>> groups = new LinkedHashMap<>();
        ids.forEach(id -> groups.computeIfAbsent(Bytes.text(key(id)), key -> new ArrayList<>()).add(id));
        return groups;
    }

    /** Sends a command that takes many ids, and returns how many of them it found. */
    int count(String command, Words options, String... ids) {
        List<Words> calls = new ArrayList<>();
        byKey(List.of(ids)).forEach((key, group) -> calls.add(new Words(command).add(key).add(options).counted(group)));
        return sum(all(calls, null));
    }

    /** Makes the commands for many ids with their tokens, one for each key. */
    List<Words> withTokens(String command, Words first, Map<String, String> tokens, Words options) {
        List<Words> calls = new ArrayList<>();
        byKey(tokens.keySet()).forEach((key, ids) -> {
            Words words = new Words(command).add(key).add(first).add(Words.IDS).add(ids.size());
            ids.forEach(id -> words.add(id).add(tokens.get(id)));
            calls.add(words.add(options));
        });
        return calls;
    }

    /** The replies for many ids, by the ids. */
    <T> Map<String, T> many(String command, Map<String, String> tokens, Words options, Function<Object, T> read) {
        List<Words> calls = withTokens(command, new Words(), tokens, options);
        List<String> order = byKey(tokens.keySet()).values().stream().flatMap(List::stream).toList();
        Map<String, T> found = new LinkedHashMap<>();
        int at = 0;
        for (Object reply : all(calls, null)) {
            for (Object each : Reply.list(reply)) {
                found.put(order.get(at++), read.apply(each));
            }
        }
        return found;
    }
}

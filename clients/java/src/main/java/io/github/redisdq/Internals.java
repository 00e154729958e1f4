package io.github.redisdq;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** What dq-redisson shares with this library. Not for programs: it changes without notice. */
public final class Internals {
    private Internals() {}

    // --- Waiting for a client library

    /** How long to wait for a connection whose replies may take {@code patience}. */
    public static Duration connecting(Duration patience) {
        return Await.connecting(patience);
    }

    /** Waits for a reply. {@code failed} turns an error into the reply, or throws. A patience of 0 is without limit. */
    public static Object answer(CompletableFuture<?> next, Duration patience, Function<Throwable, Object> failed) {
        return Await.answer(next, patience, failed);
    }

    /** Waits for a connection. {@code otherwise} disposes of one that comes too late. */
    public static <T> T connection(
            CompletableFuture<T> next, Duration limit, Function<Throwable, DqException> failed, Runnable otherwise) {
        return Await.connection(next, limit, failed, otherwise);
    }

    // --- Trouble

    /** The error that waiting does not fix, with what to do; null for all other errors. */
    public static ConfigurationException fatal(DqException error) {
        return Trouble.fatal(error);
    }

    /** How long to wait after the first, second, ... failure to reach the server. */
    public static Duration pause(int times) {
        return Trouble.pause(times);
    }

    // --- Jobs

    /** The queue's key, or those of its shards. */
    public static List<byte[]> keys(DqQueue queue) {
        return queue.keys();
    }

    public static byte[] key(String name) {
        return Bytes.of(name);
    }

    public static Codec codec(DqQueue queue) {
        return queue.codec();
    }

    /** Whether the library made this id: it grows with the others. */
    public static boolean isOurs(String id) {
        return Ids.isOurs(id);
    }

    /** Waits for ready jobs of the first key that has any. */
    public static List<Reserved> bpop(DqQueue queue, List<byte[]> keys, Duration timeout, int count, Duration ttr) {
        return queue.bpop(keys, timeout, count, ttr);
    }

    /** Takes ready jobs of the first key that has any, without waiting. */
    public static List<Reserved> pop(DqQueue queue, List<byte[]> keys, int count, Duration ttr) {
        return queue.pop(keys, count, ttr);
    }

    /** {@link DqQueue#ack} for jobs of any queues: its result for each. */
    public static List<Boolean> ackEach(DqQueue queue, List<Reserved> jobs) {
        return queue.ackEach(jobs);
    }
}

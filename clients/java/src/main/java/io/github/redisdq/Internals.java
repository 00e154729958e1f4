package io.github.redisdq;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** What dq-redisson shares with this library. Not for programs: it changes without notice. */
public final class Internals {
    private Internals() {}

    // --- Waiting for a client library

    /** How long to wait for a connection whose answers may take that long. */
    public static Duration connecting(Duration patience) {
        return Await.connecting(patience);
    }

    /** {@code failed} makes of an error what the server answered, or throws. A patience of 0 is for ever. */
    public static Object answer(CompletableFuture<?> next, Duration patience, Function<Throwable, Object> failed) {
        return Await.answer(next, patience, failed);
    }

    /** {@code otherwise}: what becomes of one that is not waited for any longer. */
    public static <T> T connection(
            CompletableFuture<T> next, Duration limit, Function<Throwable, DqException> failed, Runnable otherwise) {
        return Await.connection(next, limit, failed, otherwise);
    }

    // --- Trouble

    /** What cannot become right by waiting, in words that say what to do; null for all else. */
    public static ConfigurationException fatal(DqException error) {
        return Trouble.fatal(error);
    }

    /** How long to wait the first, second, ... time. */
    public static Duration pause(int times) {
        return Trouble.pause(times);
    }

    // --- Jobs

    /** Its key, or those of its shards. */
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

    /** Of the first of the keys that has any. */
    public static List<Reserved> bpop(DqQueue queue, List<byte[]> keys, Duration timeout, int count, Duration ttr) {
        return queue.bpop(keys, timeout, count, ttr);
    }

    /** The same without waiting. */
    public static List<Reserved> pop(DqQueue queue, List<byte[]> keys, int count, Duration ttr) {
        return queue.pop(keys, count, ttr);
    }

    /** Of whichever queues they are: what {@link DqQueue#ack} says of each. */
    public static List<Boolean> ackEach(DqQueue queue, List<Reserved> jobs) {
        return queue.ackEach(jobs);
    }
}

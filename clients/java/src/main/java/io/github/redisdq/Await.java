package io.github.redisdq;

import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;

/** Waits for the futures of client libraries, with the same exceptions for all of them. */
final class Await {
    private static final Duration LONGEST_CONNECT = Duration.ofSeconds(5);
    private static final long LATE_MS = 20; // for replies that had arrived in time while this program was stopped

    private Await() {}

    private interface Wait<T> {
        T end() throws InterruptedException, ExecutionException, TimeoutException;
    }

    /** How long to wait for a connection whose replies may take {@code patience}. */
    static Duration connecting(Duration patience) {
        return patience.isZero() ? LONGEST_CONNECT : Times.min(patience, LONGEST_CONNECT);
    }

    /** Waits for a reply. {@code failed} turns an error into the reply, or throws. A patience of 0 is without limit. */
    static Object answer(CompletableFuture<?> next, Duration patience, Function<Throwable, Object> failed) {
        Supplier<String> late = () -> "no answer within " + patience.toMillis() + " ms";
        return by(() -> patience.isZero() ? next.get() : inTime(next, patience), late, failed);
    }

    private static Object inTime(CompletableFuture<?> next, Duration patience)
            throws InterruptedException, ExecutionException, TimeoutException {
        try {
            return next.get(patience.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException error) {
            return next.get(LATE_MS, TimeUnit.MILLISECONDS);
        }
    }

    /** Waits for a connection. {@code otherwise} disposes of one that comes too late. */
    static <T> T connection(
            CompletableFuture<T> next, Duration limit, Function<Throwable, DqException> failed, Runnable otherwise) {
        Supplier<String> late = () -> "no connection within " + limit.toMillis() + " ms";
        boolean isThere = false;
        try {
            T connection = by(() -> next.get(limit.toMillis(), TimeUnit.MILLISECONDS), late, error -> {
                throw failed.apply(error);
            });
            isThere = true;
            return connection;
        } finally {
            if (!isThere) {
                otherwise.run();
            }
        }
    }

    private static <T> T by(Wait<T> wait, Supplier<String> late, Function<Throwable, T> failed) {
        try {
            return wait.end();
        } catch (ExecutionException error) {
            return failed.apply(error.getCause());
        } catch (TimeoutException error) {
            throw new DqException(late.get(), error);
        } catch (CancellationException error) {
            throw new DqException("the connection was lost", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new DqException("interrupted", error);
        }
    }
}

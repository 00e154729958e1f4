package io.github.redisdq.redisson;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.redisson.api.RFuture;
import org.redisson.misc.CompletableFutureWrapper;

/** Redisson's asynchronous methods: the synchronous ones, in threads that exist as long as they are needed. */
final class Later {
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "dq-redisson");
        thread.setDaemon(true);
        return thread;
    });

    private Later() {}

    static <T> RFuture<T> call(Callable<T> call) {
        return call(call, result -> {});
    }

    static RFuture<Void> run(Runnable task) {
        return call(() -> {
            task.run();
            return null;
        });
    }

    /**
     * Calls it in another thread; cancelling the future ends its wait. {@code unwanted} gets a result that comes at the
     * same moment.
     */
    static <T> RFuture<T> call(Callable<T> call, Consumer<T> unwanted) {
        CompletableFuture<T> future = new CompletableFuture<>();
        Future<?> task = THREADS.submit(() -> {
            try {
                T result = call.call();
                if (!future.complete(result)) {
                    Thread.interrupted(); // clears the cancelling's interrupt, which must not reach this, too
                    unwanted.accept(result);
                }
            } catch (Throwable error) {
                future.completeExceptionally(error);
            }
        });
        future.whenComplete((result, error) -> {
            if (future.isCancelled()) {
                task.cancel(true);
            }
        });
        return new CompletableFutureWrapper<>(future);
    }
}

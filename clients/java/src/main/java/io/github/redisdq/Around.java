package io.github.redisdq;

import java.util.List;

/**
 * Middleware around handlers, for {@link WorkerBuilder#around}: a transaction, a logging context, a timer. What it
 * returns is the job's result, and what it throws is the handler's error. If it does not call {@code next}, it decides
 * itself.
 */
@FunctionalInterface
public interface Around {
    /** What the middleware wraps: the other middleware and the handler. */
    @FunctionalInterface
    interface Next {
        /** Calls it, and returns what the handler returns; null for nothing, and for a batch. */
        Object call() throws Exception;
    }

    Object handle(Job job, Next next) throws Exception;

    /** As {@link #handle}, around a handler of batches. The default calls {@link #handle} with the first job. */
    default Object handleBatch(List<Job> jobs, Next next) throws Exception {
        return handle(jobs.get(0), next);
    }
}

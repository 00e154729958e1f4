package io.github.redisdq;

import java.util.List;

/**
 * Code around handlers, for {@link WorkerBuilder#around}: a transaction, a logging context, a time measured. What it returns
 * is the result, and what it throws is the handler's error. One that does not call {@code next} decides by itself.
 */
@FunctionalInterface
public interface Around {
    /** What is inside: the next of these, or the handler. */
    @FunctionalInterface
    interface Next {
        /** Returns what the handler returns; null for nothing, and for a batch. */
        Object call() throws Exception;
    }

    Object handle(Job job, Next next) throws Exception;

    /** Around a handler of batches; unless it is overridden, as for the first job. */
    default Object handleBatch(List<Job> jobs, Next next) throws Exception {
        return handle(jobs.get(0), next);
    }
}

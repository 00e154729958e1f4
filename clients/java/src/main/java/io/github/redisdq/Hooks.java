package io.github.redisdq;

import java.util.Map;

/**
 * Methods that are called around jobs, for logging, metrics and tracing. They must not block. An exception that they
 * throw is logged, and changes nothing.
 */
public interface Hooks {
    /** Called before a job is added; it may set headers. For a queue. */
    default void adding(String queue, Map<String, String> headers) {}

    /** Called before the job's handler, in the same thread. */
    default void before(Job job) {}

    /** Called when the job's handler has ended without an exception, in the same thread. */
    default void after(Job job) {}

    /**
     * Called when the job's handler has thrown, also a {@link ControlException}; after a timeout, with a
     * {@link TimedOutException}.
     */
    default void failed(Job job, Throwable error) {}

    /** Called when the job's handler has suspended the job, in the same thread: the job is neither done nor failed. */
    default void suspended(Job job) {}

    /**
     * Called when another worker may have the job: its lease expired before it was acknowledged, or it was deleted or
     * replaced.
     */
    default void lost(Job job) {}

    /**
     * Called when a job has died: its attempts are used up, its handler gave it up, or a job that it was after died. It is
     * the job as it is then.
     *
     * <p>In a thread of its own, by the worker that the server told. If a job died with its lease or with another job, each
     * worker that has this hook finds that, at the latest a lease later: a job may be told of more than once. Not found is
     * what died before the worker's start, and what the queue's DEADLEN took before.
     */
    default void dead(String queue, JobInfo job) {}
}

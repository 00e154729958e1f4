package io.github.redisdq;

import java.util.Map;

/** Where other code joins in: logging, metrics, tracing. They must not block. What they throw is logged, and changes nothing. */
public interface Hooks {
    /** A job is about to be added; headers may be set. For a queue. */
    default void adding(String queue, Map<String, String> headers) {}

    /** Its handler is about to run, in the same thread. */
    default void before(Job job) {}

    /** Its handler ended without an exception, in the same thread. */
    default void after(Job job) {}

    /** Its handler threw, an exception or what it may say. */
    default void failed(Job job, Throwable error) {}

    /** Its handler ended the attempt to sleep or to wait, in the same thread: it is neither done nor failed. */
    default void suspended(Job job) {}

    /** Another worker may have the job, as its lease expired before it was acknowledged. */
    default void lost(Job job) {}
}

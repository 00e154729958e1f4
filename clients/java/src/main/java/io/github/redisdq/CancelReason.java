package io.github.redisdq;

/** What a handler is told, and then has to end. */
public enum CancelReason {
    /** Another worker may have the job: the end of this handler will not count. */
    LOST,
    /** The worker stops, and the handler's time to finish is over: the job is given back. */
    STOPPING,
    /** The handler took longer than its time limit: the job has failed. */
    TIMEOUT
}

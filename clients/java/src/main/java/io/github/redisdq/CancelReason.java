package io.github.redisdq;

/** Why a handler is told to end. */
public enum CancelReason {
    /** Another worker may have the job: what the handler then does or throws does not count. */
    LOST,
    /** The worker stops, and its drain is over: the job is given back. */
    STOPPING,
    /** The handler took longer than its timeout: the job has failed. */
    TIMEOUT
}

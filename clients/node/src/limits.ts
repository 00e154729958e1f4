// How long, and how many. Milliseconds.

export const DRAIN_MS = 25_000;
/** How long one BPOP waits; then it is sent again. So a connection that hangs is noticed. */
export const WAIT_MS = 5000;
/** How much longer than its wait a BPOP may take, on a slow network. */
export const SLACK_MS = 5000;
/** How long other answers may take. */
export const ANSWER_MS = 5000;
export const SHORTEST_ANSWER_MS = 1000;
export const CONNECT_MS = 5000;
/** The server's own, of jobs that were given no TTR. */
export const DEFAULT_TTR_MS = 60_000;
export const SHORTEST_BEAT_MS = 5;
export const LONGEST_BEAT_MS = 3_600_000;
/** How often a worker looks whether the event loop stood still. */
export const TICK_MS = 500;
/** Shorter standstills are not noticed. */
export const STILL_MS = 500;
export const NO_WAIT_MS = 1;
export const FLUSH_AFTER_MS = 1;
export const FLUSH_COUNT = 100;
/** Then a heartbeat may be due. */
export const TELL_AT_ONCE = 500;
/** No handler can make its job come back faster than that. */
export const SHORTEST_DELAY_MS = 100;
export const UNKNOWN_KIND_DELAY_MS = 5000;
/** Of a job that is delivered while this process still runs it. */
export const STILL_RUNNING_DELAY_MS = 1000;
export const FIRST_TROUBLE_MS = 50;
export const LONGEST_TROUBLE_MS = 5000;
export const REASON_BYTES = 1024;
/** A hook that takes longer is not waited for. */
export const HOOK_MS = 5000;
/** From the end of drain on: for handlers that were told, then for the server. */
export const TOLD_MS = 500;
export const FINISH_MS = 1000;
/** A job that has been in hand for so long is worth a connection that hears of its cancellation. */
export const HEAR_AFTER_MS = 20;
/** For each queue of a link one such connection; for more, none. */
export const MOST_EARS = 8;
/** The jobs and bytes of one DQ.MADD. */
export const MADD_JOBS = 1000;
export const MADD_BYTES = 1_000_000;
/** The result of `addAndWait` is kept for so long. */
export const KEEP_MS = 60_000;

// Time limits, in milliseconds, and counts.

export const DRAIN_MS = 25_000;
/** How long one BPOP waits; then it is sent again, so a connection that hangs is noticed. */
export const WAIT_MS = 5000;
/** How much longer than its wait a BPOP may take on a slow network. */
export const SLACK_MS = 5000;
/** How long a link gets nothing before it asks why. Tests change it. */
export const IDLE = { afterMs: 60_000 };
/** How long all other replies may take. */
export const ANSWER_MS = 5000;
export const SHORTEST_ANSWER_MS = 1000;
export const CONNECT_MS = 5000;
/** The server's TTR for jobs that were given none. */
export const DEFAULT_TTR_MS = 60_000;
export const SHORTEST_BEAT_MS = 5;
export const LONGEST_BEAT_MS = 3_600_000;
/** How often a worker checks whether the event loop was blocked. */
export const TICK_MS = 500;
/** A shorter blocking of the event loop is not noticed. */
export const STILL_MS = 500;
export const NO_WAIT_MS = 1;
export const FLUSH_AFTER_MS = 1;
export const FLUSH_COUNT = 100;
/** How many outcomes the batcher sends at a time: a heartbeat may be due afterwards. */
export const TELL_AT_ONCE = 500;
/** The shortest delay after which a handler can have its job back. */
export const SHORTEST_DELAY_MS = 100;
/** How much longer each time a job waits whose kind is unknown, at most how long, and the attempt of which it dies. */
export const UNKNOWN_KIND_DELAY_MS = 60_000;
export const UNKNOWN_KIND_LONGEST_MS = 3_600_000;
export const UNKNOWN_KIND_ATTEMPTS = 14;
/** When to look again whether a job can run alone. */
export const ALONE_AGAIN_MS = 20;
/** How long nothing is fetched for that, whatever the drain: at least, and at most. */
export const SHORTEST_ISOLATION_MS = 1000;
export const LONGEST_ISOLATION_MS = 86_400_000;
/** The longest result that a server can take. */
export const RESULT_BYTES = 512 * 1024 * 1024;
/** A longer command may be why the server cut the connection. */
export const CUTTING_BYTES = 1024 * 1024;
export const MOST_CUTS = 2;
/** The delay of a job that is delivered while this process still runs it. */
export const STILL_RUNNING_DELAY_MS = 1000;
export const FIRST_TROUBLE_MS = 50;
export const LONGEST_TROUBLE_MS = 5000;
export const JITTER = 0.25;
/** When the end of a wait is asked for again that has not begun yet. */
export const UNBLOCK_AGAIN_MS = 50;
export const REASON_BYTES = 1024;
/** A hook that takes longer is not waited for. */
export const HOOK_MS = 5000;
/** How long a worker that has stopped waits for its hook of dead jobs, at least. */
export const HOOK_LEAST_MS = 250;
/** The times after the drain: for handlers that were told to stop, then for the server. */
export const TOLD_MS = 500;
export const FINISH_MS = 1000;
/** How much a worker that stops writes at last to a server that does not answer. */
export const LAST_BYTES = 1024 * 1024;
/** How long a job must have been in hand before a connection waits to hear of its cancellation. */
export const HEAR_AFTER_MS = 20;
/** The most connections of a link that hear of cancellations, one for each queue. With more queues there are none. */
export const MOST_LISTENERS = 8;
/** How many jobs one may be after. */
export const MOST_AFTER = 1000;
/** The most jobs and bytes in one DQ.MADD. */
export const MADD_JOBS = 1000;
export const MADD_BYTES = 1_000_000;
/** How long the result of `addAndWait` is kept. */
export const KEEP_MS = 60_000;
/** For how many kinds without a handler a worker remembers which known one is like it. */
export const MOST_HINTS = 100;

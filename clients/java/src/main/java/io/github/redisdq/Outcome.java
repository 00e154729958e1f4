package io.github.redisdq;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** What the server is still to be told of a delivery that ended, and what its answer means. */
final class Outcome {
    private static final Duration SHORTEST_DELAY = Duration.ofMillis(100); // no handler can come back faster than that
    private static final Duration UNKNOWN_KIND_DELAY = Duration.ofSeconds(5);
    private static final Duration RUNNING_DELAY = Duration.ofSeconds(1);
    private static final int REASON_BYTES = 1024;

    enum Answer {
        SETTLED,
        LOST
    }

    private enum Mode {
        ACK,
        FAIL,
        SNOOZE,
        SILENT,
        FATAL
    }

    /** Where the delay is from, in the order in which the next one is tried. */
    private enum Wait {
        SAID,
        LADDER,
        DEFAULT
    }

    final Job job;
    private Mode mode;
    private Duration delay;
    private Wait wait = Wait.SAID;
    private byte[] reason;
    private int unanswered; // how often it was sent, and the connection lost the answer

    private Outcome(Job job, Mode mode, Duration delay, String reason) {
        this.job = job;
        this.mode = mode;
        this.delay = delay;
        this.reason = reason == null ? null : cut(reason);
    }

    /** Given back, as if it had not been delivered. */
    static Outcome returned(Job job) {
        return new Outcome(job, Mode.SILENT, null, null);
    }

    /** Given back for a worker that knows its kind, a little later. */
    static Outcome unknown(Job job) {
        long delay = (long) (UNKNOWN_KIND_DELAY.toMillis() * (1 + ThreadLocalRandom.current().nextDouble()));
        return new Outcome(job, Mode.SILENT, Duration.ofMillis(delay), null);
    }

    /** Given back, as an older delivery of it still runs in this process. */
    static Outcome running(Job job) {
        return new Outcome(job, Mode.SILENT, RUNNING_DELAY, null);
    }

    /** What follows from how its handler ended. */
    static Outcome ended(Job job, Throwable error) {
        Guard.Verdict verdict = Guard.verdict(job, error);
        return switch (verdict.end()) {
            case DONE -> new Outcome(job, Mode.ACK, null, null);
            case GIVEN_UP -> new Outcome(job, Mode.FATAL, null, verdict.reason());
            case SNOOZED -> new Outcome(job, Mode.SNOOZE, atLeast(verdict.delay()), verdict.reason());
            case RETURNED -> job.cancelReason() == null ? running(job) : returned(job);
            case FAILED -> failed(job, verdict);
        };
    }

    private static Outcome failed(Job job, Guard.Verdict verdict) {
        if (isLast(job)) {
            return new Outcome(job, Mode.FATAL, null, verdict.reason());
        }
        if (verdict.delay() != null) {
            return new Outcome(job, Mode.FAIL, atLeast(verdict.delay()), verdict.reason());
        }
        Outcome failed = new Outcome(job, Mode.FAIL, null, verdict.reason());
        failed.waitOtherwise();
        return failed;
    }

    /** As long as the job's ladder says, else the handler's, else the library's own. */
    private void waitOtherwise() {
        boolean hasLadder = wait == Wait.SAID && job.handler.hasLadder();
        wait = hasLadder ? Wait.LADDER : Wait.DEFAULT;
        Duration ours = hasLadder ? job.handler.delay(job.attempt()) : Handler.defaultDelay(job.attempt());
        delay = job.terms.hasLadder() ? null : atLeast(ours);
    }

    private static boolean isLast(Job job) {
        int attempts = job.handler.attempts();
        return job.terms.maxAttempts() == 0 && 0 < attempts && attempts <= job.attempt(); // else the server counts
    }

    private static Duration atLeast(Duration delay) {
        return Times.max(delay, SHORTEST_DELAY);
    }

    private static byte[] cut(String reason) {
        byte[] raw = reason.getBytes(StandardCharsets.UTF_8);
        int size = Math.min(raw.length, REASON_BYTES);
        while (size < raw.length && size > 0 && (raw[size] & 0xC0) == 0x80) {
            size--; // not within a character
        }
        return Arrays.copyOf(raw, size);
    }

    byte[][] command() {
        if (mode == Mode.ACK) {
            return new Words("DQ.ACK").add(job.rawKey).add("WITHTOKENS").add(job.rawId).add(job.rawToken).all();
        }
        Words nack = new Words("DQ.NACK").add(job.rawKey).add(job.rawId).add("TOKEN").add(job.rawToken);
        nack.flag("SILENT", mode == Mode.SILENT || mode == Mode.SNOOZE).flag("FATAL", mode == Mode.FATAL).value("DELAY", delay);
        return (reason == null ? nack : nack.add("REASON").add(reason)).all();
    }

    void sending() {
        unanswered++;
    }

    void heard() {
        unanswered--;
    }

    /** Of one that was sent twice, the first one may have done it. */
    Answer answered(Object reply) {
        boolean isThere = mode == Mode.ACK ? Reply.number(reply) != 0 : reply != null;
        return isThere || unanswered > 0 ? Answer.SETTLED : Answer.LOST;
    }

    /** Leaves out what the server may have refused: the delay, then the reason. Returns what; null: nothing is left. */
    String weaken() {
        if (delay != null && wait != Wait.DEFAULT) {
            if (mode == Mode.SNOOZE) { // one that cannot be is a failure
                mode = isLast(job) ? Mode.FATAL : Mode.FAIL;
            }
            delay = null;
            if (mode == Mode.FAIL) {
                waitOtherwise();
            }
            return "the delay";
        }
        if (reason != null) {
            reason = null;
            return "the reason";
        }
        return null;
    }

    // --- Heartbeats, and what is given back in the end: one command for each queue

    static byte[][] forAll(String command, List<Job> jobs, Words options) {
        Words words = new Words(command).add(jobs.get(0).rawKey).add("IDS").add(jobs.size());
        jobs.forEach(job -> words.add(job.rawId).add(job.rawToken));
        return words.add(options).all();
    }
}

package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What the server is to be told of a delivery that ended, and what its reply means. */
final class Outcome {
    private static final Duration SHORTEST_DELAY = Duration.ofMillis(100); // handlers cannot make their jobs come back faster
    private static final Duration UNKNOWN_KIND_DELAY = Duration.ofMinutes(1);
    private static final Duration LONGEST_UNKNOWN_KIND_DELAY = Duration.ofHours(1);
    private static final int UNKNOWN_KIND_ATTEMPTS = 14;
    static final Duration SHORT_WAIT = Duration.ofSeconds(1); // of what is given back, and must not come at once
    private static final Duration LONGEST_DELAY = Duration.ofMillis(Words.LATEST);
    private static final int REASON_BYTES = 1024;
    private static final int MOST_CUTS = 2;
    private static final int LARGE = 1 << 20; // proto-max-bulk-len is at least that
    private static final int LARGEST = 512 << 20; // what no server takes as one word by default

    /** Returned by {@link #weaken} for a suspension that the server refused: the attempt has failed instead. */
    static final String WAIT = "the wait";

    enum Answer {
        SETTLED,
        LOST
    }

    private enum Mode {
        ACK,
        FAIL,
        SNOOZE,
        SILENT,
        FATAL,
        SUSPEND
    }

    final Job job;
    private Mode mode;
    private Duration delay;
    private boolean isSaid = true; // user code named the delay for this failure: the handler's backoff comes after it
    private byte[] reason;
    private byte[] result;
    private Steps.End suspended;
    private byte[][] ahead; // a command that is sent before it, and whose reply does not count; null: none
    private int unanswered; // how often it was sent, and the connection was lost before the reply
    private boolean isOut; // sent, without a reply yet
    private int cuts; // how often the other end closed the connection instead of a reply

    private Outcome(Job job, Mode mode, Duration delay, String reason) {
        this.job = job;
        this.mode = mode;
        this.delay = delay;
        this.reason = reason == null ? null : Bytes.cut(reason, REASON_BYTES);
        byte[] progress = job.progress.takeLast();
        this.ahead = progress == null ? null : job.about("DQ.TOUCH").add("TOKEN").add(job.rawToken).add("PROGRESS").add(progress).all();
    }

    /** Gives the job back, as if it had not been delivered. */
    static Outcome returned(Job job) {
        return returned(job, null);
    }

    /** Fails the job, for a worker that has a handler for its kind: one may come with the next deploy. */
    static Outcome unknown(Job job) {
        String reason = "unknown kind \"" + (job.kind() == null ? "" : Nearest.cut(job.kind())) + "\"";
        if (job.attempt() >= UNKNOWN_KIND_ATTEMPTS) {
            return new Outcome(job, Mode.FATAL, null, reason);
        }
        Duration delay = Times.min(UNKNOWN_KIND_DELAY.multipliedBy(job.attempt()), LONGEST_UNKNOWN_KIND_DELAY);
        Outcome unknown = new Outcome(job, Mode.FAIL, delay, reason);
        unknown.isSaid = false;
        unknown.ahead = Steps.countUnknown(job.rawKey, job.rawId, job.rawToken, job.unknown).all();
        return unknown;
    }

    /** Ends a job whose attempts were used up by workers that were lost. */
    static Outcome usedUp(Job job) {
        return new Outcome(job, Mode.FATAL, null, "attempts used up; its workers were lost");
    }

    /** Gives the job back, as an older delivery of it still runs in this process. */
    static Outcome running(Job job) {
        return returned(job, SHORT_WAIT);
    }

    /** Gives the job back, to be delivered after a wait; null: it keeps its place. */
    static Outcome returned(Job job, Duration wait) {
        return new Outcome(job, Mode.SILENT, wait, null);
    }

    void waitIfGivenBack() {
        delay = mode == Mode.SILENT && delay == null ? SHORT_WAIT : delay;
    }

    /** Suspends the job, as its own handler asked. */
    static Outcome suspended(Job job) {
        Outcome outcome = new Outcome(job, Mode.SUSPEND, null, null);
        outcome.suspended = job.suspension;
        return outcome;
    }

    /** Fails the job while its handler still runs. */
    static Outcome timedOut(Job job) {
        return failed(job, null, TimedOutException.text(job.handler.timeout()));
    }

    /** The outcome of an attempt whose handler has ended. */
    static Outcome ended(Job job, Throwable error) {
        if (error == null) {
            return done(job);
        }
        if (error instanceof GiveUpException || error instanceof UnencodableException) { // the work of the latter is done
            return new Outcome(job, Mode.FATAL, null, Guard.text(error));
        }
        if (error instanceof PayloadException) {
            return new Outcome(job, Mode.FATAL, null, PayloadException.SAID + Guard.message(error));
        }
        if (!(error instanceof ControlException) && job.handler.isFinal(error)) {
            return new Outcome(job, Mode.FATAL, null, Guard.text(error));
        }
        if (error instanceof SnoozeException snooze) {
            return snoozed(job, usable(job, snooze.delay), snooze.getMessage());
        }
        if (error instanceof RetryException retry) {
            return failed(job, usable(job, retry.delay), Guard.text(error));
        }
        if (error instanceof CancelledException && job.batchWasTold() || job.cancelReason() == CancelReason.STOPPING) {
            return job.cancelReason() == null ? running(job) : returned(job); // whatever it threw: it was told to end
        }
        return failed(job, null, Guard.text(error));
    }

    /** {@code delay}: null if the handler gave none that can be used. */
    private static Outcome snoozed(Job job, Duration delay, String reason) {
        return delay == null
                ? failed(job, null, reason == null ? "snooze without a delay" : reason)
                : new Outcome(job, Mode.SNOOZE, atLeast(delay), reason);
    }

    private static Duration usable(Job job, Duration delay) {
        if (delay != null && !delay.isNegative() && delay.compareTo(LONGEST_DELAY) <= 0) {
            return delay;
        }
        Guard.warn(job + ": its handler asked for an invalid delay, " + delay + ": ignored");
        return null;
    }

    private static Outcome done(Job job) {
        Outcome done = new Outcome(job, Mode.ACK, null, null);
        done.result = job.result;
        if (job.result != null && job.result.length > LARGEST) {
            done.dieOfResult();
        }
        return done;
    }

    private void dieOfResult() {
        mode = Mode.FATAL;
        reason = Bytes.of("result cannot be stored: " + result.length + " bytes");
        result = null;
    }

    private static Outcome failed(Job job, Duration delay, String reason) {
        if (isLast(job)) {
            return new Outcome(job, Mode.FATAL, null, reason);
        }
        if (delay != null) {
            return new Outcome(job, Mode.FAIL, atLeast(delay), reason);
        }
        Outcome failed = new Outcome(job, Mode.FAIL, null, reason);
        failed.waitOtherwise();
        return failed;
    }

    /** Chooses the next wait: the handler's backoff, where the job has none; else the server knows it. */
    private void waitOtherwise() {
        Duration step = isSaid && !job.terms.hasLadder() ? job.handler.delay(job.attempt()) : null;
        isSaid = false;
        delay = step == null ? null : atLeast(step);
    }

    private static boolean isLast(Job job) {
        return job.isLastAttempt(); // the server does not know the handler's limit
    }

    private static Duration atLeast(Duration delay) {
        return Times.max(delay, SHORTEST_DELAY);
    }

    boolean isDone() {
        return mode == Mode.ACK;
    }

    boolean isDead() {
        return mode == Mode.FATAL;
    }

    boolean isSnooze() {
        return mode == Mode.SNOOZE;
    }

    Duration delay() {
        return delay;
    }

    String reason() {
        return Reply.prose(reason);
    }

    /** Appends the commands for one write: the last progress or the like, and the end. */
    void addTo(List<byte[][]> all) {
        addTo(all, List.of(this));
    }

    /** As {@link #addTo(List)}, with the end of all that are like this one. */
    void addTo(List<byte[][]> all, List<Outcome> alike) {
        if (ahead != null) {
            all.add(ahead);
        }
        all.add(alike.size() == 1 ? command() : acknowledging(alike));
    }

    /** Whether one command can end both jobs: its reply has an answer for each. */
    boolean isLike(Outcome other) {
        return isPlain() && other.isPlain() && Arrays.equals(job.rawKey, other.job.rawKey);
    }

    private boolean isPlain() {
        return mode == Mode.ACK && result == null && ahead == null;
    }

    private static byte[][] acknowledging(List<Outcome> all) {
        List<Job> jobs = new ArrayList<>(all.size());
        for (Outcome each : all) {
            jobs.add(each.job);
        }
        return new Words("DQ.ACK").add(jobs.get(0).rawKey).add("WITHTOKENS").add(Job.all(jobs)).all();
    }

    /** How many commands these are. */
    int size() {
        return ahead == null ? 1 : 2;
    }

    /**
     * Executes commands up to the first that is refused, whose error is the reply. A MULTI would go on, and give a job
     * back although there was no room for its step.
     */
    static final String ALL_OR_REFUSED = """
            local at, reply = 1, nil
            while at <= #ARGV do
              local last = at + tonumber(ARGV[at])
              reply = redis.pcall(unpack(ARGV, at + 1, last))
              if type(reply) == 'table' and reply.err then return reply end
              at = last + 1
            end
            return reply
            """;

    private Words suspending() {
        Words nack = job.about("DQ.NACK").add("TOKEN").add(job.rawToken).add(suspended.nack());
        if (suspended.before().isEmpty()) {
            return nack;
        }
        Words script = new Words("EVAL").add(ALL_OR_REFUSED).add(1).add(job.rawKey);
        suspended.before().forEach(each -> script.add(each.all().length).add(each));
        return script.add(nack.all().length).add(nack);
    }

    private byte[][] command() {
        if (mode == Mode.ACK && result == null) {
            return acknowledging(List.of(this));
        }
        if (mode == Mode.ACK) {
            return new Words("DQ.ACK").add(job.rawKey).add("RESULTS").add(Job.all(List.of(job))).add(result).all();
        }
        if (suspended != null) {
            return suspending().all();
        }
        Words nack = job.about("DQ.NACK").add("TOKEN").add(job.rawToken);
        nack.flag("SILENT", mode == Mode.SILENT || mode == Mode.SNOOZE).flag("FATAL", mode == Mode.FATAL).value("DELAY", delay);
        return (reason == null ? nack : nack.add("REASON").add(reason)).all();
    }

    /** The reply that counts of its commands' replies: null, a value, or an error. */
    Object answer(List<Object> replies) {
        return replies.get(replies.size() - 1);
    }

    void sending() {
        unanswered++;
        isOut = true;
    }

    /**
     * Takes the error by which the connection was lost. Returns whether this may be why: the server closes connections on
     * a word longer than its {@code proto-max-bulk-len}, which is at least 1 MB. That a reply did not come in time is no
     * such error.
     */
    boolean endsConnections(Throwable error) {
        if (isOut && !Trouble.isLate(error)) {
            cuts++;
        }
        isOut = false;
        return cuts >= MOST_CUTS && Arrays.stream(command()).anyMatch(word -> word.length > LARGE);
    }

    void heard() {
        unanswered--;
        isOut = false;
    }

    /** What a reply means. If the command was sent twice, the first sending may have been executed. */
    Answer answered(Object reply) {
        Object own = reply instanceof List<?> rows && !rows.isEmpty() ? rows.get(0) : reply; // of an ACK of its own
        boolean isThere = mode == Mode.ACK ? own instanceof Long number && number == 1 : reply != null;
        return isThere || unanswered > 0 ? Answer.SETTLED : Answer.LOST;
    }

    /** Whether the job is dead, or may be, as the answer to an earlier sending was lost. */
    boolean mayBeDead(Object reply) {
        return mode != Mode.ACK && (reply == null ? unanswered > 0 : State.of(reply) == State.DEAD);
    }

    /** Whether the server will refuse it again unchanged; if not, it is sent again. */
    boolean isRefused(RefusedException said) {
        boolean isOptional = suspended != null && said.begins("NOPERM") || result != null && said.begins("OOM");
        return isOptional || Trouble.isRefusal(said) || (suspended != null || result != null) && Trouble.isFull(said);
    }

    /** Leaves out what connections may have ended for. */
    String cut(RefusedException said) {
        cuts = 0;
        if (result == null) {
            return weaken(said);
        }
        dieOfResult();
        return "the result";
    }

    /** Leaves out what the server may have refused. Returns what that was; null: nothing is left to leave out. */
    String weaken(RefusedException said) {
        if (suspended != null) { // a job that cannot wait has failed
            reason = Bytes.cut(Unheld.explained(said, suspended.waitedFor()), REASON_BYTES);
            suspended = null;
            mode = isLast(job) ? Mode.FATAL : Mode.FAIL;
            if (mode == Mode.FAIL) {
                waitOtherwise();
            }
            return WAIT;
        }
        if (delay != null) {
            if (mode == Mode.SNOOZE) { // a snooze that is refused is a failure
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
        if (result != null) {
            result = null;
            return "the result";
        }
        return null;
    }
}

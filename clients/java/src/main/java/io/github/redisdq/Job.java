package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Supplier;

/**
 * One delivery of a job. What {@link #step} has kept is there in later attempts. {@link #sleep}, {@link #waitSignal},
 * {@link #waitFor} and {@link #spawn} end the attempt with a {@link SuspendedError}; later the handler is called again.
 */
public final class Job extends Delivery {
    /** Null in a test of what needs none. */
    final Context context;
    HandlerTerms handler;
    final Progress progress = new Progress();
    /** What {@link #fail} and {@link #succeed} were given, or what a handler of one job returned. */
    volatile Throwable failure;
    volatile Object value;
    /** The value, encoded. */
    byte[] result;
    private Steps steps;
    volatile Steps.End suspension; // how the attempt ends if its handler suspended the job

    Job(byte[] key, List<Object> row, Codec codec, Context context) {
        super(key, row, codec);
        this.context = context;
    }

    /** What a job's methods need of the link that delivered it. */
    interface Context {
        /** The server's reply to a command about the job. It is sent again until there is one, or the job is lost. */
        Object ask(Job job, Words command) throws InterruptedException;

        /** Another worker has the job, as the server says. */
        void lose(Job job);

        /** The job has progress to send. */
        void report(Job job);

        /** The id of a job that its parent spawns, in the parent's shard: the given one, or one like the other. */
        String childId(Job parent, String given, String like);

        /** The command that adds a job to the queue of its parent. */
        Words adding(Job parent, String id, QueueCommands.NewJob child);
    }

    /** What a job needs of its handler. */
    abstract static class HandlerTerms {
        /** 0: no limit. */
        abstract int attempts();

        /** How many jobs it takes at a time. */
        abstract int size();

        /** Null: no limit. */
        abstract Duration timeout();

        /** Null if none was set. */
        abstract Duration lease();

        /** The step of its backoff after a failed attempt; null: it has none. */
        abstract Duration delay(int attempt);

        /** Whether a job is not tried again after this error. */
        abstract boolean isFinal(Throwable error);

        /** Returns the result; null for a batch. */
        abstract Object run(List<Job> jobs) throws Exception;
    }

    /**
     * How often the job may be delivered: the least of its own limit, its queue's and the handler's; 0: no limit.
     * Deliveries to workers that did not know its kind are no attempts of the handler.
     */
    public int maxAttempts() {
        int ofHandler = handler == null || handler.attempts() == 0 ? 0 : handler.attempts() + unknown;
        int ofJob = terms.maxAttempts();
        return ofJob == 0 || ofHandler == 0 ? ofJob + ofHandler : Math.min(ofJob, ofHandler);
    }

    /** Whether the job is dead if this attempt fails. */
    public boolean isLastAttempt() {
        return 0 < maxAttempts() && maxAttempts() <= attempt();
    }

    /** Throws {@link CancelledException} if the handler was told to end: for long handlers, between their parts. */
    public void check() {
        if (isSuspended()) {
            throw new SuspendedError(this + " has ended its attempt already");
        }
        if (isCancelled()) {
            throw new CancelledException(cancelReason());
        }
    }

    /** Pauses within the attempt; throws {@link CancelledException} at once if the handler is told to end. */
    public void pause(Duration duration) throws InterruptedException {
        check();
        try {
            Thread.sleep(duration.toMillis());
        } catch (InterruptedException error) {
            check();
            throw error;
        }
        check();
    }

    /**
     * Sets the error of this one job of a batch, which may be a {@link ControlException}. The other jobs are not
     * affected.
     */
    public void fail(Throwable error) {
        failure = error;
    }

    /** Sets the job's result: for batches, and for handlers that return nothing. */
    public void succeed(Object value) {
        this.value = value;
    }

    /**
     * Sets what this delivery counts in the rates of the queue and its group, if that is known only after the delivery.
     */
    public void setCost(int cost) throws InterruptedException {
        check();
        keep(new Words("DQ.TOUCH").add(rawKey).add(rawId).add("TOKEN").add(rawToken).value("COST", cost));
    }

    /**
     * Reports how far the job is, from 0 to 1. At most one report a second is sent, and always the last one.
     * {@link DqQueue#get} shows it.
     */
    public void progress(double fraction) {
        progress(fraction, null);
    }

    /** As {@link #progress(double)}, with a text. */
    public void progress(double fraction, String text) {
        if (isSuspended()) {
            check();
        }
        progress.report(Progress.text(fraction, text), System.nanoTime());
        context.report(this);
    }

    // --- Steps: what is kept, and what ends the attempt

    /** The encoded values that are kept with the job, by name: steps and signals. */
    public Map<String, byte[]> steps() {
        return stepLog().all();
    }

    /**
     * Runs the function once in the life of the job, and keeps what it returns: later attempts return the kept value.
     * If the process dies after the function and before its value is kept, the function runs again. A name may be used
     * once in each attempt.
     *
     * @throws CancelledException if another worker may have the job
     * @throws RefusedException if the server refuses to keep the value; the next attempt then runs the function again
     */
    public <T> T step(String name, Class<T> type, Callable<? extends T> function) throws Exception {
        return step(name, (Type) type, function);
    }

    /** As {@link #step(String, Class, Callable)}, for a type with parameters. */
    public <T> T step(String name, Type type, Callable<? extends T> function) throws Exception {
        check();
        stepLog().begin(name);
        if (stepLog().has(name)) {
            return Values.decode(codec, stepLog().value(name), type);
        }
        T made = function.call();
        byte[] raw = Values.encode(codec, made);
        keep(stepLog().keeping(name, raw));
        stepLog().keep(name, raw);
        return made;
    }

    /** The work of a step without a value. */
    @FunctionalInterface
    public interface Action {
        void run() throws Exception;
    }

    /** As {@link #step(String, Class, Callable)}, for work without a value. */
    public void step(String name, Action action) throws Exception {
        step(name, Void.class, () -> {
            action.run();
            return null;
        });
    }

    /**
     * Suspends the job for a duration: the attempt ends, and does not count. A later attempt, by any worker, goes on
     * here.
     */
    public void sleep(String name, Duration duration) {
        check();
        stepLog().begin(name);
        if (!stepLog().has(name)) {
            suspend(stepLog().sleep(name, Words.wait("a sleep", duration)));
        }
    }

    /**
     * Suspends the job until {@link DqQueue#signal} sends it a signal, and returns the signal's value, or null if it
     * has none. The attempt ends, and does not count, if the signal has not been sent.
     */
    public <T> T waitSignal(String name, Class<T> type) {
        check();
        stepLog().begin(name);
        if (!stepLog().has(name)) {
            suspend(stepLog().waitSignal(name));
        }
        return Values.decode(codec, stepLog().value(name), type);
    }

    /**
     * As {@link #waitSignal(String, Class)}, for at most {@code timeout}.
     *
     * @throws TimedOutException if the signal was not sent by then, in all later attempts too
     */
    public <T> T waitSignal(String name, Class<T> type, Duration timeout) throws InterruptedException {
        check();
        stepLog().begin(name);
        switch (stepLog().wait(name)) {
            case BEGINS -> suspend(stepLog().waitSignal(name, Words.wait("a timeout", timeout)));
            case RUNS_OUT -> keep(stepLog().over(name));
            case HAS_VALUE -> {
                return Values.decode(codec, stepLog().value(name), type);
            }
            case IS_OVER -> {}
        }
        throw new TimedOutException("job '" + id() + "': no signal " + name + " within " + timeout, id(), timeout);
    }

    /**
     * Suspends the job until these jobs of the same queue have ended, and returns how they ended. The attempt ends, and
     * does not count, if they have not ended.
     */
    public List<JobResult> waitFor(String... ids) throws InterruptedException {
        return waitFor(null, JobOptions.OnDead.RUN, List.of(ids));
    }

    /** As {@link #waitFor(String...)}. {@code name}: of the wait; null: its number in the attempt. */
    public List<JobResult> waitFor(String name, JobOptions.OnDead onDead, List<String> ids) throws InterruptedException {
        check();
        String wait = stepLog().nameOfWait(name);
        return waited(wait, ids, () -> Steps.after(List.of(), ids, onDead, ids));
    }

    /** Adds jobs to the same queue, and waits for them as {@link #waitFor(String...)} does, in one command. */
    public List<JobResult> spawn(QueueCommands.NewJob... jobs) throws InterruptedException {
        return spawn(null, JobOptions.OnDead.RUN, List.of(jobs));
    }

    /**
     * As {@link #spawn(DqQueue.NewJob...)}. Ids that are not given are {@code <id>/<name>/0}, {@code <id>/<name>/1},
     * ..., so later attempts add no second children.
     */
    public List<JobResult> spawn(String name, JobOptions.OnDead onDead, List<QueueCommands.NewJob> jobs) throws InterruptedException {
        check();
        String wait = stepLog().nameOfWait(name);
        List<String> ids = new ArrayList<>();
        for (QueueCommands.NewJob each : jobs) {
            ids.add(context.childId(this, each.options().id(), id() + "/" + wait + "/" + ids.size()));
        }
        return waited(wait, ids, () -> {
            List<Words> adds = new ArrayList<>();
            List<String> there = new ArrayList<>();
            for (QueueCommands.NewJob each : jobs) {
                there.addAll(each.options().after());
                there.removeAll(ids.subList(0, adds.size()));
                adds.add(context.adding(this, ids.get(adds.size()), each));
            }
            return Steps.after(adds, ids, onDead, there);
        });
    }

    private List<JobResult> waited(String name, List<String> ids, Supplier<Steps.End> otherwise) throws InterruptedException {
        List<JobResult> found = stepLog().resultsOf(name, codec);
        if (found != null) {
            return found;
        }
        if (ids.isEmpty()) {
            return List.of();
        }
        if (!results().stream().map(JobResult::id).toList().equals(ids)) {
            suspend(otherwise.get());
        }
        keep(stepLog().keepingResults(name, results()));
        return results();
    }

    /**
     * Runs a Lua script exactly once in the life of the job: its writes and its step, under the given name, take effect
     * together. The script's {@code KEYS} and {@code ARGV} are those given here; in a cluster the keys must be in the
     * queue's slot. Returns false if the script ran in an earlier attempt. A script that fails throws a
     * {@link RefusedException}, and runs again in the next attempt; what it wrote before it failed is not undone.
     */
    public boolean once(String name, String script, List<String> keys, List<String> arguments) throws InterruptedException {
        check();
        stepLog().begin(name);
        if (Arrays.equals(stepLog().value(name), Once.ENDED)) {
            return false;
        }
        Object reply = context.ask(this, Once.words(this, name, script, keys, arguments));
        if (reply == null) {
            context.lose(this);
            check();
        }
        if (reply instanceof List<?> why) {
            throw new RefusedException(Reply.text(why.get(0)));
        }
        stepLog().keep(name, Once.ENDED);
        return Reply.number(reply) == 1;
    }

    private void keep(Words step) throws InterruptedException {
        if (context.ask(this, step) == null) {
            context.lose(this);
            check();
        }
    }

    private void suspend(Steps.End end) {
        if (handler.size() > 1) {
            throw new IllegalStateException("a batch cannot sleep or wait: " + this + " needs a handler for one job at a time");
        }
        suspension = end; // sent when the handler has returned: before, it could be delivered while it still runs
        throw new SuspendedError(this + " goes on later");
    }

    boolean isSuspended() {
        return suspension != null;
    }

    private Steps stepLog() {
        if (steps == null) {
            steps = new Steps(rawKey, rawId, rawToken, Reply.map(stepsReply));
        }
        return steps;
    }

    /** Encodes the value. */
    void encode() {
        result = value == null ? null : codec.encode(value);
    }
}

package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * One delivery of a job. What {@link #step} has kept is there in later attempts; {@link #sleep}, {@link #awaitSignal},
 * {@link #waitFor} and {@link #spawn} end the attempt with a {@link SuspendedError}, and the handler begins again.
 */
public final class Job extends Delivery {
    final Rim rim;
    final Progress progress = new Progress();
    /** What {@link #fail} and {@link #succeed} were given, or a handler of one job returned. */
    volatile Throwable failure;
    volatile Object value;
    /** The value's bytes. */
    byte[] result;
    private Steps steps;
    private volatile boolean isSuspended;
    volatile Outcome suspension; // how it ends, where its handler has it wait

    Job(byte[] key, List<Object> row, Codec codec, Rim rim, Link link) {
        super(key, row, codec, link);
        this.rim = rim;
    }

    /** Throws {@link CancelledException} where cancelled: for long handlers, between two stepLog(). */
    public void check() {
        if (isSuspended) {
            throw new SuspendedError(this + " has ended its attempt already");
        }
        if (isCancelled()) {
            throw new CancelledException(cancelReason());
        }
    }

    /** Pauses within the attempt; throws {@link CancelledException} at once when cancelled. */
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

    /** In a batch: this one job failed (or is retried, snoozed, given up), and the others did not. */
    public void fail(Throwable error) {
        failure = error;
    }

    /** What the job's result is: for batches, and for handlers that return nothing. */
    public void succeed(Object value) {
        this.value = value;
    }

    /** What this delivery counts in the rates of the queue and its group, where that is known only afterwards. */
    public void setCost(int cost) throws InterruptedException {
        check();
        keep(new Words("DQ.TOUCH").add(rawKey).add(rawId).add("TOKEN").add(rawToken).add("COST").add(cost));
    }

    /** How far it is, from 0 to 1: for DQ.GET. Written at most once a second, and the last one as the job ends. */
    public void progress(double fraction) {
        progress(fraction, null);
    }

    /** As {@link #progress(double)}; the text is shown behind it. */
    public void progress(double fraction, String text) {
        if (isSuspended) {
            check();
        }
        progress.report(Progress.text(fraction, text), System.nanoTime());
        rim.report(this);
    }

    // --- Steps: what is kept, and what ends the attempt

    /** What is kept, by the names, as the codec wrote it: steps and signals. */
    public Map<String, byte[]> steps() {
        return stepLog().all();
    }

    /**
     * What the function returns, which runs once in the life of the job: its value is kept, and comes back in later attempts.
     * A name is used once in an attempt.
     *
     * @throws CancelledException where somebody else has the job meanwhile
     * @throws ServerException where the server refuses to keep it; then the function runs again in the next attempt
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

    /** What a step without a value does. */
    @FunctionalInterface
    public interface Action {
        void run() throws Exception;
    }

    /** As {@link #step(String, Class, Callable)}, for what has no value. */
    public void step(String name, Action action) throws Exception {
        step(name, Void.class, () -> {
            action.run();
            return null;
        });
    }

    /** Ends the attempt, and begins it again so much later; it does not count. */
    public void sleep(String name, Duration duration) {
        check();
        stepLog().begin(name);
        if (!stepLog().has(name)) {
            suspend(stepLog().sleep(name, Words.wait("a sleep", duration)));
        }
    }

    /** The value of a {@link DqQueue#signal}, for which the attempt ends as long as there is none. */
    public <T> T awaitSignal(String name, Class<T> type) {
        check();
        stepLog().begin(name);
        if (!stepLog().has(name)) {
            suspend(stepLog().awaitSignal(name));
        }
        return Values.decode(codec, stepLog().value(name), type);
    }

    /**
     * As {@link #awaitSignal(String, Class)}, for so long at most.
     *
     * @throws TimeoutException in this attempt and all later ones, also where the signal came after that
     */
    public <T> T awaitSignal(String name, Class<T> type, Duration timeout) throws TimeoutException, InterruptedException {
        check();
        stepLog().begin(name);
        switch (stepLog().wait(name)) {
            case BEGINS -> suspend(stepLog().awaitSignal(name, Words.wait("a timeout", timeout)));
            case RUNS_OUT -> keep(stepLog().over(name));
            case HAS_VALUE -> {
                return Values.decode(codec, stepLog().value(name), type);
            }
            case IS_OVER -> {}
        }
        throw new TimeoutException("no signal " + name + " within " + timeout);
    }

    /** How those jobs of the same queue have ended; the attempt ends as long as they have not. */
    public List<JobResult> waitFor(String... ids) throws InterruptedException {
        return waitFor(null, JobOptions.OnDead.RUN, List.of(ids));
    }

    /** As {@link #waitFor(String...)}. Without a name (null) it is the number of the wait in the attempt. */
    public List<JobResult> waitFor(String name, JobOptions.OnDead onDead, List<String> ids) throws InterruptedException {
        check();
        String wait = stepLog().nameOfWait(name);
        return waited(wait, ids, () -> Steps.after(List.of(), ids, onDead));
    }

    /** Adds jobs to the same queue, and waits for them as {@link #waitFor(String...)} does. */
    public List<JobResult> spawn(DqQueue.NewJob... jobs) throws InterruptedException {
        return spawn(null, JobOptions.OnDead.RUN, List.of(jobs));
    }

    /** As {@link #spawn(DqQueue.NewJob...)}. Ids that are not given are {@code <id>/<name>/0}, {@code <id>/<name>/1}, ... */
    public List<JobResult> spawn(String name, JobOptions.OnDead onDead, List<DqQueue.NewJob> jobs) throws InterruptedException {
        check();
        String wait = stepLog().nameOfWait(name);
        List<String> ids = new ArrayList<>();
        for (DqQueue.NewJob each : jobs) {
            String given = each.options().id();
            ids.add(given == null ? id() + "/" + wait + "/" + ids.size() : given);
        }
        return waited(wait, ids, () -> {
            List<Words> adds = new ArrayList<>();
            for (DqQueue.NewJob each : jobs) {
                adds.add(rim.adding(this, ids.get(adds.size()), each));
            }
            return Steps.after(adds, ids, onDead);
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
     * Runs a Lua script of yours once in the life of the job, together with a step that keeps its name and your other keys: all
     * of it has happened, or nothing. The script has the keys as {@code KEYS} and the arguments as {@code ARGV}; in a
     * cluster they are of the queue's slot. False where it ran before. One that fails is a {@link ServerException}, and
     * runs again in the next attempt; what it wrote before is not undone.
     */
    public boolean once(String name, String script, List<String> keys, List<String> arguments) throws InterruptedException {
        check();
        stepLog().begin(name);
        if (Arrays.equals(stepLog().value(name), Once.ENDED)) {
            return false;
        }
        Object reply = rim.ask(this, Once.words(this, name, script, keys, arguments));
        if (reply == null) {
            rim.lose(this);
            check();
        }
        if (reply instanceof List<?> why) {
            throw new ServerException(Reply.text(why.get(0)));
        }
        stepLog().keep(name, Once.ENDED);
        return Reply.number(reply) == 1;
    }

    private void keep(Words step) throws InterruptedException {
        if (rim.ask(this, step) == null) {
            rim.lose(this);
            check();
        }
    }

    private void suspend(Steps.End end) {
        if (handler.size() > 1) {
            throw new IllegalStateException("a batch cannot sleep or wait: " + this + " needs a handler for one job at a time");
        }
        isSuspended = true;
        rim.end(this, Outcome.suspended(this, end));
        throw new SuspendedError(this + " goes on later");
    }

    boolean isSuspended() {
        return isSuspended;
    }

    private Steps stepLog() {
        if (steps == null) {
            steps = new Steps(rawKey, rawId, rawToken, Reply.map(stepsReply));
        }
        return steps;
    }

    /** Makes bytes of the value. */
    void encode() {
        result = value == null ? null : codec.encode(value);
    }
}

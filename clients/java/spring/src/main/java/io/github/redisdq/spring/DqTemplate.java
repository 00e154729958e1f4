package io.github.redisdq.spring;

import io.github.redisdq.Codec;
import io.github.redisdq.Connector;
import io.github.redisdq.DqQueue;
import io.github.redisdq.Hooks;
import io.github.redisdq.JobFailedException;
import io.github.redisdq.JobOptions;
import io.github.redisdq.Prepared;
import io.github.redisdq.PreparedMany;
import io.github.redisdq.TimedOutException;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Adds jobs and cancels them. For all else that a queue can do, see {@link #queue}. Safe for use by many threads.
 *
 * <p>Inside a transaction, all is sent after the commit, in the order of the calls, and nothing if the transaction is
 * rolled back. The property {@code dq.template.after-commit} turns that off. {@link #queue} always acts at once.
 */
public class DqTemplate {
    private final Connector connector;
    private final Codec codec;
    private final Hooks[] hooks;
    private final boolean afterCommit;
    private final Map<String, DqQueue> queues = new ConcurrentHashMap<>();

    public DqTemplate(Connector connector, Codec codec, List<Hooks> hooks) {
        this(connector, codec, hooks, true);
    }

    /** @param afterCommit whether to wait for the commit inside a transaction */
    public DqTemplate(Connector connector, Codec codec, List<Hooks> hooks, boolean afterCommit) {
        this.connector = connector;
        this.codec = codec;
        this.hooks = hooks.toArray(Hooks[]::new);
        this.afterCommit = afterCommit;
    }

    /** The queue of this name; do not close it. */
    public DqQueue queue(String name) {
        return queues.computeIfAbsent(name, it -> DqQueue.on(connector, name).withCodec(codec).withHooks(hooks));
    }

    /** Adds a job that is due now. Returns its id. */
    public String add(String queue, Object data) {
        return add(queue, data, JobOptions.create());
    }

    /** Adds a job that is due after a delay: inside a transaction, counted from its commit. Returns the job's id. */
    public String add(String queue, Object data, Duration delay) {
        return add(queue, data, JobOptions.create().delay(delay));
    }

    /**
     * Adds a job. Returns its id, or null if the condition refused it: usually because a job with this id exists.
     * Inside a transaction that is not known yet, and the id is returned. The data is encoded now.
     *
     * <pre>{@code template.add("orders", order, JobOptions.withId("close:17").delay(Duration.ofMinutes(30)))}</pre>
     */
    public String add(String queue, Object data, JobOptions options) {
        Prepared job = queue(queue).prepare(data, options);
        boolean isLater = later("job " + job.id() + " of " + queue + " is not added", job::send);
        return isLater ? job.id() : job.send();
    }

    /** Adds a job of a kind, as {@link #add(String, Object, JobOptions)}: {@code template.add("orders", CHARGE.job(order))}. */
    public String add(String queue, DqQueue.NewJob job) {
        return add(queue, job.data(), job.options());
    }

    /**
     * Adds many jobs in few round trips, as {@link DqQueue#addMany} does. Inside a transaction the ids are returned, as it is
     * not known yet which jobs are refused.
     */
    public List<String> addMany(String queue, List<DqQueue.NewJob> jobs) {
        PreparedMany all = queue(queue).prepareMany(jobs);
        boolean isLater = later(jobs.size() + " jobs of " + queue + " are not added", all::send);
        return isLater ? all.ids() : all.send();
    }

    /**
     * Adds a job and waits for its result: what the listener's method returned, or null for nothing. The result is kept
     * for a minute. If a job with this id exists, this waits for that job. Inside a transaction, too, the job is added at
     * once, as it could not be waited for otherwise.
     *
     * @throws JobFailedException if the job is dead, was deleted, or has expired
     * @throws TimedOutException if the job has not ended by then; it goes on
     */
    public <T> T addAndWait(String queue, Object data, JobOptions options, Class<T> type, Duration timeout)
            throws InterruptedException {
        return queue(queue).addAndWait(data, options, type, timeout);
    }

    /** As {@link #addAndWait(String, Object, JobOptions, Class, Duration)}, for a type with parameters. */
    public <T> T addAndWait(String queue, Object data, JobOptions options, Type type, Duration timeout)
            throws InterruptedException {
        return queue(queue).addAndWait(data, options, type, timeout);
    }

    /**
     * Removes a job. False if it does not exist, or a listener works on it; inside a transaction true, as that is not
     * known yet.
     */
    public boolean cancel(String queue, String id) {
        boolean isLater = later("job " + id + " of " + queue + " is not cancelled", () -> queue(queue).deleteUnreserved(id));
        return isLater || queue(queue).deleteUnreserved(id) == 1;
    }

    /** Gives a delayed or ready job another due time. Returns what {@link #cancel} does. */
    public boolean reschedule(String queue, String id, Duration delay) {
        boolean isLater = later("job " + id + " of " + queue + " is not rescheduled", () -> queue(queue).reschedule(delay, id));
        return isLater || queue(queue).reschedule(delay, id) == 1;
    }

    private boolean later(String otherwise, Runnable action) {
        return afterCommit && AfterCommit.later(this, otherwise, action);
    }
}

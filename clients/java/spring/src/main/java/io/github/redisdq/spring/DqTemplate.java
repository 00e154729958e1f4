package io.github.redisdq.spring;

import io.github.redisdq.Codec;
import io.github.redisdq.Connector;
import io.github.redisdq.Hooks;
import io.github.redisdq.JobOptions;
import io.github.redisdq.Queue;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Adds jobs and cancels them. All else that a queue can do is in {@link #queue}. Safe for use by many threads. */
public class DqTemplate {
    private final Connector connector;
    private final Codec codec;
    private final Hooks[] hooks;
    private final Map<String, Queue> queues = new ConcurrentHashMap<>();

    public DqTemplate(Connector connector, Codec codec, List<Hooks> hooks) {
        this.connector = connector;
        this.codec = codec;
        this.hooks = hooks.toArray(Hooks[]::new);
    }

    /** The queue of that name; not to be closed. */
    public Queue queue(String name) {
        return queues.computeIfAbsent(name, it -> Queue.on(connector, name).withCodec(codec).withHooks(hooks));
    }

    /** Adds a job that is due now. Returns its id. */
    public String add(String queue, Object data) {
        return queue(queue).add(data);
    }

    /** Adds a job that is due so much later. Returns its id. */
    public String add(String queue, Object data, Duration delay) {
        return queue(queue).add(data, JobOptions.create().delay(delay));
    }

    /**
     * Adds a job. Returns its id, or null where the options refused it: as a rule, because a job of that id is there.
     *
     * <pre>{@code template.add("orders", order, JobOptions.withId("close:17").delay(Duration.ofMinutes(30)))}</pre>
     */
    public String add(String queue, Object data, JobOptions options) {
        return queue(queue).add(data, options);
    }

    /** Removes a job. False where there is none, or a listener is at it. */
    public boolean cancel(String queue, String id) {
        return queue(queue).deleteUnreserved(id) == 1;
    }

    /** Gives a job that waits another due time. False where there is none, or a listener is at it. */
    public boolean reschedule(String queue, String id, Duration delay) {
        return queue(queue).reschedule(delay, id) == 1;
    }
}

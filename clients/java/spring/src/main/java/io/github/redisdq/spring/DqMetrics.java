package io.github.redisdq.spring;

import io.github.redisdq.ControlException;
import io.github.redisdq.DqException;
import io.github.redisdq.Hooks;
import io.github.redisdq.Job;
import io.github.redisdq.State;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;

/**
 * Micrometer's meters: {@code dq.listener} (how long methods took, by queue and outcome), {@code dq.listener.lateness}
 * (from the due time to the start of the method), {@code dq.listener.lost}, and {@code dq.queue.jobs} (by queue and
 * state).
 */
final class DqMetrics implements Hooks, SmartInitializingSingleton {
    private final MeterRegistry registry;
    private final ObjectProvider<DqListeners> listeners;
    private final ObjectProvider<DqTemplate> template;
    private final Map<Job, Timer.Sample> running = new ConcurrentHashMap<>();

    DqMetrics(MeterRegistry registry, ObjectProvider<DqListeners> listeners, ObjectProvider<DqTemplate> template) {
        this.registry = registry;
        this.listeners = listeners;
        this.template = template;
    }

    /** Registers the gauges of the queues that have listeners when the application starts. */
    @Override
    public void afterSingletonsInstantiated() {
        for (String queue : listeners.getObject().queues()) {
            for (State state : List.of(State.DELAYED, State.READY, State.RESERVED, State.DEAD)) {
                Gauge.builder("dq.queue.jobs", () -> jobs(queue, state))
                        .description("Jobs in a queue, by state")
                        .tags("queue", queue, "state", state.name().toLowerCase(Locale.ROOT))
                        .register(registry);
            }
        }
    }

    private double jobs(String queue, State state) {
        try {
            return template.getObject().queue(queue).len(state);
        } catch (DqException error) {
            return Double.NaN; // not known
        }
    }

    @Override
    public void before(Job job) {
        running.put(job, Timer.start(registry));
        Duration late = Duration.between(job.due(), Instant.now());
        registry.timer("dq.listener.lateness", "queue", job.queue()).record(late.isNegative() ? Duration.ZERO : late);
    }

    @Override
    public void after(Job job) {
        end(job, "success");
    }

    @Override
    public void failed(Job job, Throwable error) {
        end(job, error instanceof ControlException ? "control" : "failure");
    }

    @Override
    public void suspended(Job job) {
        end(job, "suspended");
    }

    private void end(Job job, String outcome) {
        Timer.Sample sample = running.remove(job);
        if (sample != null) {
            sample.stop(registry.timer("dq.listener", "queue", job.queue(), "outcome", outcome));
        }
    }

    @Override
    public void lost(Job job) {
        registry.counter("dq.listener.lost", "queue", job.queue()).increment();
    }
}

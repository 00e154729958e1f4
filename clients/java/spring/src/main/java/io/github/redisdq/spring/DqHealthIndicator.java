package io.github.redisdq.spring;

import io.github.redisdq.Stats;
import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.boot.actuate.health.AbstractHealthIndicator;
import org.springframework.boot.actuate.health.Health;

/** Down where a queue that has listeners cannot be asked, or its listeners have ended. */
final class DqHealthIndicator extends AbstractHealthIndicator {
    private final DqListeners listeners;
    private final DqTemplate template;

    DqHealthIndicator(DqListeners listeners, DqTemplate template) {
        super("dq's queues cannot be reached");
        this.listeners = listeners;
        this.template = template;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        builder.up();
        for (String queue : listeners.queues()) {
            String failure = listeners.failure(queue);
            if (failure == null) {
                builder.withDetail(queue, figures(template.queue(queue).stats()));
            } else {
                builder.down().withDetail(queue, failure);
            }
        }
    }

    /** Null: nothing is in the queue. */
    private static Map<String, Object> figures(Stats stats) {
        Map<String, Object> figures = new LinkedHashMap<>();
        figures.put("delayed", stats == null ? 0 : stats.delayed());
        figures.put("ready", stats == null ? 0 : stats.ready());
        figures.put("reserved", stats == null ? 0 : stats.reserved());
        figures.put("dead", stats == null ? 0 : stats.dead());
        return figures;
    }
}

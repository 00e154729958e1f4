package io.github.redisdq.spring;

import io.github.redisdq.Stats;
import java.util.LinkedHashMap;
import java.util.Map;

/** Down where a queue that has listeners cannot be asked, or its listeners have ended. Boot 3 and 4 have types of their own for it. */
record HealthFigures(boolean isUp, Map<String, Object> details) {
    static final String FAILED = "dq's queues cannot be reached";

    static HealthFigures of(DqListeners listeners, DqTemplate template) {
        boolean isUp = true;
        Map<String, Object> details = new LinkedHashMap<>();
        for (String queue : listeners.queues()) {
            String failure = listeners.failure(queue);
            isUp &= failure == null;
            details.put(queue, failure == null ? figures(template.queue(queue).stats()) : failure);
        }
        return new HealthFigures(isUp, details);
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

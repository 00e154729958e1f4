package io.github.redisdq;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The handlers of a worker, by kind. */
final class Handlers {
    private final Map<String, Handler<?>> kinds = new HashMap<>();
    private final Nearest nearest = new Nearest(kinds.keySet());
    private Handler<?> other;
    private int smallest = Integer.MAX_VALUE;
    private Handler.Fill fill; // null: fetches wait for no batch

    Handlers(List<Handler<?>> all) {
        if (all.isEmpty()) {
            throw new ConfigurationException("the worker has no handler");
        }
        for (Handler<?> handler : all) {
            if (handler.kind() == null && other != null) {
                throw new ConfigurationException("two handlers without a kind: name the kind of all but one");
            }
            if (handler.kind() == null) {
                other = handler;
            } else if (kinds.put(handler.kind(), handler) != null) {
                throw new ConfigurationException("two handlers for jobs of kind " + handler.kind());
            }
            smallest = Math.min(smallest, handler.size());
            fill = Handler.Fill.least(fill, handler.fill());
        }
        if (fill != null && smallest < 2) {
            throw new ConfigurationException("fill needs handlers that all take batches: another one of this worker takes single jobs");
        }
    }

    Handler.Fill fill() {
        return fill;
    }

    /** The size of the smallest batch: one handler takes at least that many jobs, whatever kinds come. */
    int size() {
        return smallest;
    }

    /** What a log says of the kind that was meant by one that has no handler, perhaps nothing. */
    String hint(Job job) {
        return job.kind() == null ? "" : nearest.hint(job.kind());
    }

    /** The handler of a job; null if none takes it. */
    Handler<?> choose(Job job) {
        if (kinds.isEmpty() || job.envelope() == null) {
            return other;
        }
        if (job.envelope().version() != Envelope.VERSION) {
            return null;
        }
        return kinds.getOrDefault(job.kind(), other);
    }
}

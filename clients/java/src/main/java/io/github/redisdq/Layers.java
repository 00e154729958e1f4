package io.github.redisdq;

import java.util.List;

/** Calls a handler through its middleware; the first is outermost. */
record Layers(List<Around> around) {
    Object run(Job.HandlerTerms handler, List<Job> jobs) throws Exception {
        return call(0, handler, jobs);
    }

    private Object call(int at, Job.HandlerTerms handler, List<Job> jobs) throws Exception {
        if (at == around.size()) {
            return handler.run(jobs);
        }
        Around.Next next = () -> call(at + 1, handler, jobs);
        return handler.size() == 1 ? around.get(at).handle(jobs.get(0), next) : around.get(at).handleBatch(jobs, next);
    }
}

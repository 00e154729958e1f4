package io.github.redisdq;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Runs a handler and the hooks around it, and decides how its jobs end. Throws nothing. */
final class Handling {
    private final List<Hooks> hooks;
    private final List<Hooks> inside; // for hooks after a handler, in reverse: the first to open closes last
    private final Layers layers;

    Handling(List<Hooks> hooks, List<Around> around) {
        this.hooks = List.copyOf(hooks);
        layers = new Layers(List.copyOf(around));
        inside = new ArrayList<>(this.hooks);
        Collections.reverse(inside);
    }

    /** Calls the handler with those jobs of the batch that are still ours. */
    void handle(List<Job> batch) {
        List<Job> begun = new ArrayList<>(batch.size());
        for (Job job : batch) {
            if (begins(job)) {
                begun.add(job);
            }
        }
        if (begun.isEmpty()) {
            return;
        }
        Throwable error;
        try {
            for (Job job : begun) {
                for (Hooks each : hooks) {
                    Guard.hook("before", each, () -> each.before(job));
                }
            }
            Run run = new Run(begun.size());
            for (Job job : begun) {
                job.begins(run);
                Link.of(job).limit(job);
            }
            error = Guard.call(() -> run(begun));
            run.end();
        } finally {
            for (Job job : begun) {
                Running.end(job);
            }
        }
        for (int at = begun.size() - 1; at >= 0; at--) {
            ended(begun.get(at), error);
        }
    }

    private void run(List<Job> begun) throws Exception {
        Job first = begun.get(0);
        Object result = layers.run(first.handler, begun);
        if (first.handler.size() == 1 && result != null) {
            first.succeed(result);
        }
    }

    private boolean begins(Job job) {
        if (!isOurs(job)) {
            Link.of(job).settle(job, Outcome::returned); // if the job was told to stop
            return false;
        }
        Job other = Running.begin(job);
        if (other != null) {
            giveWay(job, other);
        }
        return other == null;
    }

    /** Whether the job's lease lasts, as far as this process knows. */
    private static boolean isOurs(Job job) {
        if (job.isOver(System.nanoTime())) {
            Link.of(job).lose(job);
        }
        return !job.isCancelled();
    }

    /**
     * Whether an older delivery of the job runs in this process. That one is lost, as the server has delivered the job
     * again.
     */
    boolean isAtItAlready(Job job) {
        Job other = Running.other(job);
        if (other != null) {
            giveWay(job, other);
        }
        return other != null;
    }

    private static void giveWay(Job job, Job other) {
        other.leaseEnd = System.nanoTime(); // for the server it is over
        Link.of(other).lose(other);
        Link.of(job).giveBack(job, Outcome::running);
    }

    private void ended(Job job, Throwable error) {
        if (job.isSuspended()) {
            inside.forEach(each -> Guard.hook("suspended", each, () -> each.suspended(job)));
            Link.of(job).settle(job, Outcome::suspended);
            return;
        }
        Throwable failed = whatFailed(job, job.failure == null ? error : job.failure);
        boolean isOurs = isOurs(job);
        if (failed == null) {
            for (Hooks each : inside) {
                Guard.hook("after", each, () -> each.after(job));
            }
        } else {
            if (!(failed instanceof ControlException) && isOurs) {
                Guard.warn(job + " failed", failed);
            }
            inside.forEach(each -> Guard.hook("failed", each, () -> each.failed(job, failed)));
        }
        Link.of(job).settle(job, it -> Outcome.ended(it, failed));
    }

    /** The error that counts; null if the job is done, and its result can be sent. */
    static Throwable whatFailed(Job job, Throwable error) {
        if (job.cancelReason() == CancelReason.TIMEOUT) {
            return new TimedOutException(job.id(), job.handler.timeout());
        }
        if (error != null) {
            return error;
        }
        Throwable unencodable = Guard.call(job::encode);
        return unencodable == null ? null : new UnencodableException(Guard.text(unencodable), unencodable);
    }

    void lost(Job job) {
        if (job.isOver(System.nanoTime())) {
            Guard.warn("lost " + job + ": its lease expired");
        } else {
            Guard.info(job + " was cancelled");
        }
        job.tell(CancelReason.LOST);
        hooks.forEach(each -> Guard.hook("lost", each, () -> each.lost(job)));
    }
}

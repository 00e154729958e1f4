package io.github.redisdq;

import java.util.List;

/** A batch and the thread that its handler runs in: interrupted when all its jobs were told, and not after its end. */
final class Run {
    private final Thread thread = Thread.currentThread();
    private final int size;
    private int left;
    private boolean hasEnded;

    Run(List<Job> batch) {
        size = batch.size();
        left = size;
        for (Job job : batch) {
            if (job.begins(this)) {
                oneWasTold();
            }
        }
    }

    synchronized void oneWasTold() {
        if (--left == 0 && !hasEnded) {
            thread.interrupt();
        }
    }

    synchronized boolean wasTold() {
        return left < size;
    }

    synchronized void end() {
        hasEnded = true;
        Thread.interrupted(); // of no concern to the next handler
    }
}

package io.github.redisdq;

/**
 * A batch and the thread of its handler. The thread is interrupted when all jobs of the batch were told to end, and not
 * after the handler has ended.
 */
final class Run {
    private final Thread thread = Thread.currentThread();
    private final int size;
    private int left;
    private boolean hasEnded;

    Run(int size) {
        this.size = size;
        left = size;
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
        Thread.interrupted(); // an interrupt must not reach the next handler
    }
}

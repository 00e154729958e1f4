package io.github.redisdq;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Notices at once when jobs of one queue are cancelled: waits in DQ.BTOUCH for those in hand, on a connection of its
 * own. That is opened for the first job that has been in hand for a while. Heartbeats go on beside it, and are enough
 * if the server refuses DQ.BTOUCH.
 */
final class Listener {
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(30);
    private static final Duration SLACK = Duration.ofSeconds(5);

    private final Held held;
    private final byte[] key;
    private final Wire wire;
    private final Listening plan = new Listening();
    private final Semaphore bell = new Semaphore(0);
    private final Thread thread = new Thread(this::listen, "dq-listener");
    private volatile boolean isOver;

    Listener(Held held, Connector connector, byte[] key) {
        this.held = held;
        this.key = key;
        this.wire = new Wire(connector, key, LONGEST_WAIT.plus(SLACK), () -> {});
        thread.setDaemon(true);
    }

    long dueAt(long otherwise) {
        return plan.dueAt(held.ofQueue(key), otherwise);
    }

    /** Waits anew, for all jobs that are in hand now. Called by the thread that {@code control} belongs to. */
    void begin(Wire control) {
        plan.holdOff(System.nanoTime());
        if (thread.getState() == Thread.State.NEW) {
            thread.start();
        } else if (plan.isWaiting()) {
            wire.unblockOrClose(control);
        }
        bell.release();
    }

    void end() {
        isOver = true;
        wire.cut();
        bell.release();
    }

    private void listen() {
        int failures = 0;
        while (!isOver) {
            try {
                List<Job> jobs = plan.ask(held.ofQueue(key), System.nanoTime());
                if (jobs.isEmpty()) {
                    bell.acquire();
                    bell.drainPermits();
                } else {
                    hear(jobs);
                    failures = 0;
                }
            } catch (InterruptedException error) {
                // left behind by a hook
            } catch (Throwable error) {
                plan.answered();
                Guard.call(wire::close);
                if (isOver || isRefused(error)) {
                    return;
                }
                rest(Trouble.pause(++failures).toNanos());
            }
        }
    }

    private void hear(List<Job> jobs) {
        long ms = Math.min(TimeUnit.NANOSECONDS.toMillis(held.longestPauseNs()), LONGEST_WAIT.toMillis());
        Words words = new Words("DQ.BTOUCH").add(key).add(Double.toString(Math.max(ms, 1) / 1000.0));
        long sent = System.nanoTime();
        Object reply = wire.ask(words.add(Job.all(jobs)));
        plan.answered();
        held.renewed(jobs, reply, sent);
    }

    private boolean isRefused(Throwable error) {
        if (!(error instanceof RefusedException said) || Trouble.fatal(said) == null && !Trouble.isRefusal(said)) {
            return false;
        }
        if (plan.refused()) {
            Guard.warn("the server refuses DQ.BTOUCH (" + said.getMessage() + "): handlers hear of a cancelled job at the next heartbeat");
        }
        return true;
    }

    private void rest(long ns) {
        plan.holdOff(System.nanoTime() + ns);
        Guard.call(() -> TimeUnit.NANOSECONDS.sleep(ns));
    }
}

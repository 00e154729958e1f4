package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Sends outcomes that no fetch took along within a millisecond, renews leases, sends progress, and ends the waiting
 * fetch when the worker stops: in a thread and on a connection of its own.
 */
final class Batcher {
    private static final int GATHER_UP_TO = 100;
    private static final int TELL_AT_ONCE = 500; // outcomes in one write, after which a heartbeat may be due
    private static final long AGAIN_NS = 50_000_000;
    private static final int PARTING_BYTES = 1 << 20;
    private static final int TICKS = 50; // without a new job, after which it sleeps until there is one

    private final Watch watch;
    private final Waiting waiting;
    private final Held held;
    private final Ends ends;
    private final Wire control;
    private final List<Listener> listeners;
    private final Set<Job> reporting = ConcurrentHashMap.newKeySet();
    private final List<List<Job>> returns = new CopyOnWriteArrayList<>(); // given back, which has no answer yet
    private final Semaphore bell = new Semaphore(0);
    private final Thread thread = new Thread(this::carry, "dq-batcher");
    private volatile boolean isNew; // a connection was opened again: the server may have forgotten leases
    private volatile boolean isAsleep;
    private volatile int deliveries;
    private int seen; // of the deliveries
    private int ticks; // since there was one
    private volatile boolean hasFinished;
    private volatile long finishBy; // by System.nanoTime; 0: not yet

    /** The connection that fetches: whether a fetch waits on it, and how that is ended. */
    static final class Waiting {
        final Wire wire;
        private volatile boolean isFetching;
        private volatile boolean isRecalled;

        Waiting(Wire wire) {
            this.wire = wire;
        }

        void begin() {
            isFetching = true;
            isRecalled = false; // a recall was of the fetch before
        }

        void end() {
            isFetching = false;
        }

        boolean isFetching() {
            return isFetching;
        }

        /** Has the fetch ended that waits. False if none does. */
        boolean recall() {
            isRecalled |= isFetching;
            return isFetching;
        }

        /** Ends the fetch if it was recalled. */
        void endRecalled(Wire control) {
            if (isRecalled) {
                isRecalled = false;
                if (isFetching) {
                    wire.unblock(control);
                }
            }
        }

        void cut() {
            if (isFetching) {
                wire.cut();
            }
        }
    }

    Batcher(Watch watch, Waiting waiting, Held held, Ends ends, Wire control, List<Listener> listeners) {
        this.watch = watch;
        this.waiting = waiting;
        this.held = held;
        this.ends = ends;
        this.control = control;
        this.listeners = listeners;
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    boolean isUnblockRefused() {
        return control.isUnblockRefused;
    }

    void ring() {
        if (bell.availablePermits() == 0) {
            bell.release();
        }
    }

    /** Asks for a heartbeat at once: the server may have forgotten leases. */
    void beatNow() {
        isNew = true;
        ring();
    }

    /** Records a delivery. Called by the one thread that fetches. */
    void delivered() {
        deliveries++;
        if (isAsleep && !listeners.isEmpty()) {
            ring();
        }
    }

    void report(Job job) {
        if (reporting.add(job)) {
            ring();
        }
    }

    private void carry() {
        int failures = 0;
        Guard.call(control::open); // at once: a server that stands still can be told only on a connection that is there
        while (finishBy == 0) {
            try {
                rest();
                // Heartbeats first, so that no command that the server refuses keeps leases from being renewed.
                renew();
                waiting.endRecalled(control);
                writeProgress();
                listen();
                round();
                failures = 0;
            } catch (InterruptedException error) {
                // left behind by a hook
            } catch (Throwable error) {
                Guard.call(() -> control.fail(error));
                held.liveness.failed(Guard.text(error));
                watch.failed(error);
                pause(Math.min(Trouble.pause(++failures).toNanos(), held.longestPauseNs()));
                ring();
            }
        }
        Guard.call(this::finish);
        hasFinished = true;
        watch.tell(Watch.NEWS);
    }

    /** Waits until the bell rings, or something is due. */
    private void rest() throws InterruptedException {
        long now = System.nanoTime();
        long until = held.beatAt();
        for (Job job : reporting) {
            until = job.progress.dueAt(until);
        }
        for (Listener listener : listeners) {
            until = listener.dueAt(until);
        }
        if (deliveries != seen) {
            seen = deliveries;
            ticks = 0;
        }
        if (!listeners.isEmpty() && ticks++ < TICKS) {
            until = Math.min(until - now, Listening.YOUNG_NS) + now;
        } else {
            isAsleep = true;
        }
        boolean isAwaited = !isAsleep || listeners.isEmpty() || deliveries == seen;
        if (isAwaited && bell.tryAcquire(Math.max(0, until - now), TimeUnit.NANOSECONDS)) {
            bell.drainPermits();
        }
        isAsleep = false;
    }

    /** Waits for that time, until there is a fetch to end, or until it is to finish. */
    private void pause(long ns) {
        long end = System.nanoTime() + ns;
        do {
            Guard.call(() -> Thread.sleep(5));
        } while (finishBy == 0 && System.nanoTime() - end < 0 && !(watch.isDraining() && waiting.isFetching()));
    }

    // --- Leases

    private void renew() {
        boolean isDue = isNew || System.nanoTime() - held.beatAt() >= 0;
        List<Job> jobs = held.all();
        if (isDue) {
            isNew = false;
            jobs.addAll(ends.unanswered());
        } else {
            jobs.removeIf(job -> job.askedMs == 0);
        }
        long at = System.nanoTime();
        try {
            beat(control, jobs);
        } catch (RuntimeException error) {
            isNew |= isDue;
            throw error;
        }
        if (isDue) {
            held.beaten(at);
        }
    }

    /** Renews the leases of jobs. Jobs that are no longer ours are lost. */
    void beat(Wire wire, List<Job> jobs) {
        for (List<Job> group : Held.groups(jobs)) {
            long asked = group.get(0).askedMs;
            long sent = System.nanoTime();
            Words touch = new Words("DQ.TOUCH").add(group.get(0).rawKey).add(Job.all(group));
            Object reply = wire.ask(asked == 0 ? touch : touch.add("TTR").add(asked));
            held.renewed(group, reply, sent, asked);
        }
    }

    private void listen() {
        long now = System.nanoTime();
        for (Listener listener : listeners) {
            if (listener.dueAt(now + 1) - now <= 0) {
                listener.begin(control);
            }
        }
    }

    private void writeProgress() {
        for (Job job : List.copyOf(reporting)) {
            reporting.remove(job);
            long now = System.nanoTime();
            byte[] text = held.has(job) ? job.progress.take(now) : null;
            if (text != null) {
                write(job, text, now);
            } else if (held.has(job) && job.progress.isPending()) {
                reporting.add(job);
            }
        }
    }

    private void write(Job job, byte[] text, long now) {
        try {
            Words touch = job.about("DQ.TOUCH").add("TOKEN").add(job.rawToken).add("PROGRESS").add(text);
            Object reply = control.ask(touch);
            job.progress.written();
            held.renewed(List.of(job), Collections.singletonList(reply), now);
        } catch (RuntimeException error) {
            job.progress.putBack();
            reporting.add(job);
            throw error;
        }
    }

    // --- Ends

    private void round() throws InterruptedException {
        if (watch.isDraining()) {
            withdraw();
        } else if (ends.pending() > 0 && ends.pending() < GATHER_UP_TO) {
            Thread.sleep(1); // so that a fetch may take them along
        }
        tellSome();
        if (ends.pending() > 0) {
            ring();
        }
    }

    void tellOutcomes() {
        while (ends.pending() > 0) {
            tellSome();
        }
    }

    private void tellSome() {
        Deque<Outcome> told = ends.take(TELL_AT_ONCE);
        if (told.isEmpty()) {
            return;
        }
        RefusedException trouble;
        try {
            control.open();
            control.send(Ends.commands(told));
            trouble = ends.hear(control, told, held, watch::uncounted);
        } catch (Throwable error) {
            ends.putBack(told, error);
            throw error;
        } finally {
            ends.putBack(told, null);
        }
        if (trouble != null) {
            throw trouble;
        }
    }

    /** Ends the fetch that waits. A job that was delivered in that instant is read, and given back. */
    private void withdraw() throws InterruptedException {
        try {
            while (waiting.isFetching() && finishBy == 0) {
                if (!waiting.wire.unblock(control)) {
                    break;
                }
                long again = System.nanoTime() + AGAIN_NS; // it has not arrived yet, or is held back
                while (waiting.isFetching() && System.nanoTime() - again < 0) {
                    Thread.sleep(2);
                }
            }
        } finally {
            waiting.cut();
        }
    }

    /** Sends the outcomes that are left, and gives back all other jobs. */
    private void finish() throws InterruptedException {
        takeBack();
        tellAll();
        while (waiting.isFetching() && System.nanoTime() - finishBy < 0) {
            Thread.sleep(2); // the fetch puts back the outcomes that it took along and that have no reply
        }
        tellAll();
    }

    private void takeBack() {
        for (List<Job> group : Held.groups(held.all())) {
            List<Job> left = group.stream().filter(held::release).toList();
            left.forEach(job -> job.tell(CancelReason.STOPPING));
            if (!left.isEmpty()) {
                returns.add(left);
            }
        }
    }

    private List<byte[][]> givingBack(Duration wait) {
        List<byte[][]> commands = new ArrayList<>();
        for (List<Job> left : returns) {
            commands.add(new Words("DQ.NACK").add(left.get(0).rawKey).add(Job.all(left)).add("SILENT").value("DELAY", wait).all());
        }
        return commands;
    }

    private void tellAll() {
        for (int failures = 1; ; failures++) {
            try {
                for (Object reply : returns.isEmpty() ? List.of() : control.ask(givingBack(null))) {
                    if (reply instanceof RefusedException said) {
                        throw said;
                    }
                }
                returns.clear();
                tellOutcomes();
                return;
            } catch (RuntimeException error) {
                control.fail(error);
                long pause = Trouble.pause(failures).toNanos();
                // What is refused for good is not repeated: those leases expire.
                if (isRefused(error) || System.nanoTime() + pause - finishBy > 0) {
                    return;
                }
                Guard.call(() -> TimeUnit.NANOSECONDS.sleep(pause));
            }
        }
    }

    private static boolean isRefused(RuntimeException error) {
        return Trouble.fatal(error) != null || error instanceof RefusedException said && Trouble.isRefusal(said);
    }

    void finishAt(long by) {
        finishBy = by == 0 ? 1 : by;
        ring();
    }

    boolean hasFinished() {
        return hasFinished;
    }

    /**
     * Closes the connections; what is not sent yet is written before, for a server that stands still and goes on later. It
     * may read the last fetch after that, and before it knows that the connection is closed: what is given back waits.
     */
    void end() {
        listeners.forEach(Listener::end);
        if (control.mayPart()) {
            takeBack();
            List<byte[][]> commands = givingBack(Outcome.SHORT_WAIT);
            commands.addAll(ends.unsent(PARTING_BYTES));
            control.part(commands);
        }
        control.cut();
    }
}

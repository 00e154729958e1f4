package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * The queues that are reached by one pair of connections. On one its supplier waits for jobs, with the acknowledgements of
 * finished ones in the same write. With the other its courier tells the server what no fetch took along within a
 * millisecond, renews leases, and withdraws the waiting fetch when the worker stops.
 */
final class Link {
    private static final Duration SLACK = Duration.ofSeconds(5); // how much longer than its wait a BPOP may take
    private static final int GATHER_UP_TO = 100;
    private static final int TELL_AT_ONCE = 500; // then a heartbeat may be due
    private static final long TELLING_NS = 1_000_000_000;

    private final Worker worker;
    private final Fetches fetches;
    private final Object place;
    private final Map<String, Codec> codecs = new LinkedHashMap<>();
    private final Wire waiting;
    private final Wire control;
    private final Held held;
    private final Ends ends = new Ends();
    private final Semaphore bell = new Semaphore(0);
    private final Thread courier = new Thread(this::carry, "dq-courier");
    private volatile boolean isFetching;
    private volatile boolean isNew; // a connection was made anew: the server may have forgotten leases
    private volatile long finishBy; // by System.nanoTime; 0: not yet
    private int troubles; // of the supplier

    Link(Worker worker, Fetches fetches) {
        Fetches.Member first = fetches.members().get(0);
        Connector connector = first.queue().connector();
        this.worker = worker;
        this.fetches = fetches;
        this.place = connector.place(first.key());
        this.waiting = new Wire(connector, first.key(), worker.wait.plus(SLACK), this::beatNow);
        this.control = new Wire(connector, first.key(), worker.answer, this::beatNow);
        this.held = new Held(worker.leases);
        fetches.members().forEach(each -> codecs.put(Bytes.text(each.key()), each.queue().codec()));
        courier.setDaemon(true);
    }

    void start() {
        courier.start();
    }

    /** Equal for links that reach the same queues. */
    Object place() {
        return place;
    }

    void ring() {
        if (bell.availablePermits() == 0) {
            bell.release();
        }
    }

    private void beatNow() {
        isNew = true;
        ring();
    }

    // --- What becomes of jobs

    void settle(Job job, Function<Job, Outcome> decide) {
        if (held.release(job)) {
            ends.put(decide.apply(job));
        }
    }

    void giveBack(Job job, Function<Job, Outcome> how) {
        settle(job, how);
        ring();
    }

    void lose(Job job) {
        if (held.release(job)) {
            worker.lost(job);
        }
    }

    /** Loses those whose lease is over. Returns when the next one's is, or {@code otherwise}, if that is earlier. */
    long loseOver(long now, long otherwise) {
        held.over(now).forEach(this::lose);
        return held.firstEnd(otherwise);
    }

    /** Their handlers say another lease than they were delivered with. */
    void correct(List<Job> jobs) {
        boolean isAny = false;
        for (Job job : jobs) {
            Duration said = job.handler.lease();
            if (said != null && Times.ms(said) != job.leaseMs) {
                job.askedMs = Times.ms(said);
                isAny = true;
            }
        }
        if (isAny) {
            ring();
        }
    }

    // --- The supplier

    /** Tells what happened since, and waits for jobs. Throws what the trouble was, after a pause. */
    List<Job> fetch(int count, Duration wait) {
        Deque<Outcome> told = ends.take(Integer.MAX_VALUE);
        isFetching = true;
        try {
            if (worker.isDraining()) {
                return List.of();
            }
            List<Job> found = exchange(told, count, wait);
            troubles = 0;
            return found;
        } catch (Throwable error) {
            Guard.call(waiting::close);
            worker.trouble(error);
            worker.rest(Trouble.pause(++troubles));
            throw error;
        } finally {
            isFetching = false;
            if (!told.isEmpty()) {
                ends.putBack(told);
                ring();
            }
        }
    }

    private List<Job> exchange(Deque<Outcome> told, int count, Duration wait) {
        waiting.open();
        List<byte[][]> commands = Ends.commands(told);
        commands.add(fetches.command(count, wait));
        long sent = System.nanoTime();
        waiting.send(commands);
        ServerException trouble = ends.hear(waiting, told, worker::lost);
        if (ends.pending() > 0) {
            ring();
        }
        Object reply = waiting.read();
        if (reply instanceof ServerException said) {
            throw said;
        }
        List<Job> found = jobs(reply);
        if (found.isEmpty() && trouble != null) {
            throw trouble; // else they are ours now, whatever became of the rest
        }
        return stillOurs(found, sent);
    }

    private List<Job> jobs(Object reply) {
        List<Object> pair = Reply.list(reply);
        if (pair.size() != 2) {
            return List.of();
        }
        byte[] key = (byte[]) pair.get(0);
        Codec codec = codecs.get(Bytes.text(key));
        List<Job> found = new ArrayList<>();
        for (Object row : Reply.list(pair.get(1))) {
            found.add(new Job(key, Reply.list(row), codec, this));
        }
        if (held.take(found, System.nanoTime())) {
            ring();
        }
        found.forEach(job -> worker.watch.endsAt(job.leaseEnd));
        return found;
    }

    /** Where this process stood still, they may have been delivered long before they were read: the server knows. */
    private List<Job> stillOurs(List<Job> found, long sent) {
        if (found.isEmpty() || !worker.watch.stoodStillSince(sent)) {
            return found;
        }
        try {
            beat(waiting, found);
        } catch (RuntimeException error) {
            found.forEach(job -> giveBack(job, Outcome::returned));
            throw error;
        }
        return found.stream().filter(job -> !job.isCancelled()).toList();
    }

    // --- The courier

    private void carry() {
        int failures = 0;
        while (finishBy == 0) {
            try {
                if (bell.tryAcquire(Math.max(0, held.beatAt() - System.nanoTime()), TimeUnit.NANOSECONDS)) {
                    bell.drainPermits();
                }
                // First, so that nothing that the server refuses keeps leases from being renewed.
                renew();
                round();
                failures = 0;
            } catch (InterruptedException error) {
                // left behind by a hook
            } catch (Throwable error) {
                Guard.call(control::close);
                worker.trouble(error);
                pause(Math.min(Trouble.pause(++failures).toNanos(), held.longestPauseNs()));
                ring();
            }
        }
        Guard.call(this::finish);
    }

    /** Until then, or until there is a fetch to withdraw, or it is to finish. */
    private void pause(long ns) {
        long end = System.nanoTime() + ns;
        do {
            Guard.call(() -> Thread.sleep(5));
        } while (finishBy == 0 && System.nanoTime() - end < 0 && !(worker.isDraining() && isFetching));
    }

    private void renew() {
        boolean isDue = isNew || System.nanoTime() - held.beatAt() >= 0;
        List<Job> jobs = held.all();
        if (isDue) {
            isNew = false;
            jobs.addAll(ends.unheard());
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

    private void beat(Wire wire, List<Job> jobs) {
        for (List<Job> group : Held.groups(jobs)) {
            long asked = group.get(0).askedMs;
            Words options = asked == 0 ? new Words() : new Words("TTR").add(asked);
            long sent = System.nanoTime();
            Object reply = wire.ask(Collections.singletonList(Outcome.forAll("DQ.TOUCH", group, options))).get(0);
            if (reply instanceof ServerException said) {
                throw said;
            }
            List<Object> deadlines = Reply.list(reply);
            for (int at = 0; at < deadlines.size(); at++) {
                Job job = group.get(at);
                if (deadlines.get(at) == null) {
                    lose(job);
                } else {
                    job.leased(sent, asked == 0 ? job.leaseMs : asked);
                    job.askedMs = 0;
                }
            }
        }
    }

    private void round() throws InterruptedException {
        if (worker.isDraining()) {
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
        ServerException trouble;
        try {
            control.open();
            control.send(Ends.commands(told));
            trouble = ends.hear(control, told, worker::lost);
        } finally {
            ends.putBack(told);
        }
        if (trouble != null) {
            throw trouble;
        }
    }

    /** Ends the fetch that waits. A job that was handed out in that instant is read, and given back. */
    private void withdraw() throws InterruptedException {
        long patience = System.nanoTime() + TELLING_NS;
        try {
            while (isFetching && System.nanoTime() - patience < 0) {
                long id = waiting.clientId;
                byte[][] unblock = new Words("CLIENT").add("UNBLOCK").add(id).all();
                if (id == 0 || control.ask(Collections.singletonList(unblock)).get(0) instanceof ServerException) {
                    break;
                }
                Thread.sleep(5);
            }
        } finally {
            if (isFetching) {
                waiting.cut();
            }
        }
    }

    /** Tells what the server has still to hear, and gives back all that is left. */
    private void finish() {
        List<byte[][]> commands = new ArrayList<>();
        for (List<Job> group : Held.groups(held.all())) {
            List<Job> left = group.stream().filter(held::release).toList();
            left.forEach(job -> job.tell(CancelReason.STOPPING));
            if (!left.isEmpty()) {
                commands.add(Outcome.forAll("DQ.NACK", left, new Words("SILENT")));
            }
        }
        for (int failures = 1; ; failures++) {
            try {
                for (Object reply : commands.isEmpty() ? List.of() : control.ask(commands)) {
                    if (reply instanceof ServerException said) {
                        throw said;
                    }
                }
                commands.clear();
                tellOutcomes();
                return;
            } catch (RuntimeException error) {
                control.close();
                long pause = Trouble.pause(failures).toNanos();
                // What is refused for good is not repeated: those leases end by themselves.
                if (isRefused(error) || System.nanoTime() + pause - finishBy > 0) {
                    return;
                }
                Guard.call(() -> TimeUnit.NANOSECONDS.sleep(pause));
            }
        }
    }

    private static boolean isRefused(RuntimeException error) {
        return Trouble.fatal(error) != null || error instanceof ServerException said && Trouble.isRefusal(said);
    }

    // --- Orders of the worker

    void tellAll() {
        held.all().forEach(job -> job.tell(CancelReason.STOPPING));
    }

    /** How many are in hand. */
    int size() {
        return held.all().size();
    }

    void finishAt(long by) {
        finishBy = by == 0 ? 1 : by;
        ring();
    }

    void end() {
        long left = Math.max(1, TimeUnit.NANOSECONDS.toMillis(finishBy - System.nanoTime()));
        Guard.call(() -> courier.join(left));
        waiting.cut();
        control.cut();
    }
}

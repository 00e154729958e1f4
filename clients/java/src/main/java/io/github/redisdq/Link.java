package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
    private static final long SHORTEST_BEAT_NS = 5_000_000;
    private static final int GATHER_UP_TO = 100;
    private static final int TELL_AT_ONCE = 500; // then a heartbeat may be due
    private static final long TELLING_NS = 1_000_000_000;

    private final Worker worker;
    private final Fetches fetches;
    private final Map<String, Codec> codecs = new LinkedHashMap<>();
    private final Wire waiting;
    private final Wire control;
    private final Semaphore bell = new Semaphore(0);
    private final Thread courier = new Thread(this::carry, "dq-courier");
    private volatile boolean isFetching;
    private volatile long finishBy; // by System.nanoTime; 0: not yet
    private int troubles; // of the supplier

    private final Object lock = new Object();
    private final Set<Job> held = new HashSet<>();
    private final Set<Job> unheard = new HashSet<>(); // settled, and the server has not answered yet
    private Deque<Outcome> outcomes = new ArrayDeque<>();

    Link(Worker worker, Fetches fetches) {
        Fetches.Member first = fetches.members().get(0);
        this.worker = worker;
        this.fetches = fetches;
        this.waiting = new Wire(first.queue().connector(), first.key(), worker.wait.plus(SLACK));
        this.control = new Wire(first.queue().connector(), first.key(), worker.answer);
        fetches.members().forEach(each -> codecs.put(Bytes.text(each.key()), each.queue().codec()));
        courier.setDaemon(true);
    }

    void start() {
        courier.start();
    }

    // --- What the server is to be told

    void ring() {
        if (bell.availablePermits() == 0) {
            bell.release();
        }
    }

    private Deque<Outcome> takeOutcomes(int count) {
        synchronized (lock) {
            Deque<Outcome> taken = outcomes;
            if (taken.size() <= count) {
                outcomes = new ArrayDeque<>();
                return taken;
            }
            Deque<Outcome> some = new ArrayDeque<>(count);
            while (some.size() < count) {
                some.addLast(taken.removeFirst());
            }
            return some;
        }
    }

    /** Those that have no answer yet: an ACK is safe to send twice. */
    private void putBack(Deque<Outcome> untold) {
        synchronized (lock) {
            while (!untold.isEmpty()) {
                outcomes.addFirst(untold.removeLast());
            }
        }
    }

    private void put(Outcome outcome) {
        synchronized (lock) {
            outcomes.addLast(outcome);
        }
    }

    private int pending() {
        synchronized (lock) {
            return outcomes.size();
        }
    }

    /** Who takes a job out of those held decides how it ends: its handler, a heartbeat or the stop. */
    void settle(Job job, Function<Job, Outcome> decide) {
        synchronized (lock) {
            if (!held.remove(job)) {
                return;
            }
            unheard.add(job);
        }
        put(decide.apply(job));
    }

    private void heard(Job job) {
        synchronized (lock) {
            unheard.remove(job);
        }
    }

    private boolean release(Job job) {
        synchronized (lock) {
            return held.remove(job);
        }
    }

    void giveBack(Job job) {
        settle(job, Outcome::returned);
        ring();
    }

    /** Takes the answers in; what has none yet stays in {@code told}. Returns what the server refused. */
    private ServerException hear(Wire wire, Deque<Outcome> told) {
        ServerException trouble = null;
        while (!told.isEmpty()) {
            Object reply = wire.read();
            Outcome each = told.removeFirst();
            if (reply instanceof ServerException said) {
                trouble = said;
                put(each);
                continue;
            }
            Outcome.Verdict verdict = each.answered(reply);
            if (verdict == Outcome.Verdict.OPEN) {
                put(each);
                continue;
            }
            heard(each.job);
            if (verdict == Outcome.Verdict.LOST) {
                worker.lost(each.job);
            }
        }
        return trouble;
    }

    // --- The supplier

    /** Tells what happened since, and waits for jobs. Throws what the trouble was, after a pause. */
    List<Job> fetch(int count, Duration wait) {
        Deque<Outcome> told = takeOutcomes(Integer.MAX_VALUE);
        isFetching = true;
        try {
            if (worker.isDraining()) {
                return List.of();
            }
            List<Job> found = exchange(told, count, wait);
            troubles = 0;
            return found;
        } catch (RuntimeException error) {
            waiting.close();
            worker.trouble(error);
            worker.rest(Trouble.pause(++troubles));
            throw error;
        } finally {
            isFetching = false;
            if (!told.isEmpty()) {
                putBack(told);
                ring();
            }
        }
    }

    private List<Job> exchange(Deque<Outcome> told, int count, Duration wait) {
        List<byte[][]> commands = new ArrayList<>(told.size() + 1);
        told.forEach(each -> commands.add(each.command));
        commands.add(fetches.command(count, wait));
        waiting.send(commands);
        ServerException trouble = hear(waiting, told);
        if (pending() > 0) {
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
        return found;
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
        synchronized (lock) {
            held.addAll(found);
        }
        return found;
    }

    // --- The courier

    private void carry() {
        long beat = Math.max(worker.lease.toNanos() / 3, SHORTEST_BEAT_NS);
        long next = System.nanoTime() + beat;
        int failures = 0;
        while (finishBy == 0) {
            try {
                if (bell.tryAcquire(Math.max(0, next - System.nanoTime()), TimeUnit.NANOSECONDS)) {
                    bell.drainPermits();
                }
                // First, so that nothing that the server refuses keeps leases from being renewed.
                if (System.nanoTime() - next >= 0) {
                    beat();
                    next = System.nanoTime() + beat;
                }
                round();
                failures = 0;
            } catch (RuntimeException error) {
                control.close();
                worker.trouble(error);
                pause(Math.min(Trouble.pause(++failures).toNanos(), beat));
                ring();
            } catch (InterruptedException error) {
                break; // nobody does that
            }
        }
        finish();
    }

    /** Until then, or until it is to finish. */
    private void pause(long ns) {
        long end = System.nanoTime() + ns;
        while (finishBy == 0 && System.nanoTime() - end < 0) {
            try {
                Thread.sleep(5);
            } catch (InterruptedException error) {
                return;
            }
        }
    }

    private void round() throws InterruptedException {
        if (worker.isDraining()) {
            withdraw();
        } else if (pending() > 0 && pending() < GATHER_UP_TO) {
            Thread.sleep(1); // so that a fetch may take them along
        }
        tellSome();
        if (pending() > 0) {
            ring();
        }
    }

    void tellOutcomes() {
        while (pending() > 0) {
            tellSome();
        }
    }

    private void tellSome() {
        Deque<Outcome> told = takeOutcomes(TELL_AT_ONCE);
        if (told.isEmpty()) {
            return;
        }
        ServerException trouble;
        try {
            control.send(told.stream().map(each -> each.command).toList());
            trouble = hear(control, told);
        } finally {
            putBack(told);
        }
        if (trouble != null) {
            throw trouble;
        }
    }

    private void beat() {
        List<Job> jobs = heldJobs();
        synchronized (lock) {
            jobs.addAll(unheard);
        }
        for (List<Job> group : byKey(jobs)) {
            byte[][] touch = Outcome.forAll("DQ.TOUCH", group, new Words().value("TTR", worker.lease));
            Object reply = control.ask(Collections.singletonList(touch)).get(0);
            if (reply instanceof ServerException said) {
                throw said;
            }
            List<Object> deadlines = Reply.list(reply);
            for (int at = 0; at < deadlines.size(); at++) {
                if (deadlines.get(at) == null && release(group.get(at))) {
                    worker.lost(group.get(at));
                }
            }
        }
    }

    private List<Job> heldJobs() {
        synchronized (lock) {
            return new ArrayList<>(held);
        }
    }

    private static Iterable<List<Job>> byKey(List<Job> jobs) {
        Map<String, List<Job>> groups = new LinkedHashMap<>();
        jobs.forEach(job -> groups.computeIfAbsent(job.queue(), key -> new ArrayList<>()).add(job));
        return groups.values();
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
        for (List<Job> group : byKey(heldJobs())) {
            List<Job> left = group.stream().filter(this::release).toList();
            left.forEach(job -> job.tell(Told.STOPPING));
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
                if (System.nanoTime() + pause - finishBy > 0) {
                    return;
                }
                try {
                    TimeUnit.NANOSECONDS.sleep(pause);
                } catch (InterruptedException interrupted) {
                    return;
                }
            }
        }
    }

    // --- Orders of the worker

    void tellAll() {
        heldJobs().forEach(job -> job.tell(Told.STOPPING));
    }

    void finishAt(long by) {
        finishBy = by == 0 ? 1 : by;
        ring();
    }

    void end() throws InterruptedException {
        long left = Math.max(1, TimeUnit.NANOSECONDS.toMillis(finishBy - System.nanoTime()));
        courier.join(left);
        waiting.cut();
        control.cut();
    }
}

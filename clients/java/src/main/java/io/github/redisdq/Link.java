package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The queues that one pair of connections reaches. On the first, the supplier waits for jobs, with the acknowledgements
 * of finished ones in the same write; the second is its {@link Courier}'s. Each queue's {@link Ear} has another one.
 */
final class Link implements Rim {
    private static final Duration SLACK = Duration.ofSeconds(5); // how much longer than its wait a BPOP may take
    private static final int MOST_EARS = 8;

    private final Worker worker;
    private final Fetches fetches;
    private final Object place;
    private final Map<String, DqQueue> queues = new LinkedHashMap<>();
    private final Wire waiting;
    private final Held held;
    private final Ends ends;
    private final boolean isOneOfSeveral;
    private final Courier courier;
    private final Pulse pulse = new Pulse();
    private volatile boolean isFetching;
    private volatile boolean isRecalled;
    private int troubles; // of the supplier

    Link(Worker worker, Fetches fetches, Ends ends, boolean isOneOfSeveral) {
        Fetches.Member first = fetches.members().get(0);
        Connector connector = first.queue().connector();
        this.worker = worker;
        this.fetches = fetches;
        this.ends = ends;
        this.isOneOfSeveral = isOneOfSeveral;
        this.place = connector.place(first.key());
        this.waiting = new Wire(connector, first.key(), worker.wait.plus(SLACK), this::beatNow);
        this.held = new Held(worker.leases);
        fetches.members().forEach(each -> queues.put(Bytes.text(each.key()), each.queue()));
        List<Ear> ears = new ArrayList<>();
        for (Fetches.Member each : queues.size() > MOST_EARS ? List.<Fetches.Member>of() : fetches.members()) {
            ears.add(new Ear(this, held, connector, each.key()));
        }
        Wire control = new Wire(connector, first.key(), worker.answer, this::beatNow);
        this.courier = new Courier(worker, this, held, ends, control, ears);
    }

    Courier courier() {
        return courier;
    }

    /** Equal for links that reach the same queues. */
    Object place() {
        return place;
    }

    void ring() {
        courier.ring();
    }

    private void beatNow() {
        courier.beatNow();
    }

    /** Why the link is not healthy; null: it is. */
    String trouble() {
        long most = Math.max(worker.wait.toNanos(), held.longestPauseNs()) + SLACK.toNanos();
        return pulse.trouble(System.nanoTime(), most);
    }

    void failed(Throwable error) {
        pulse.failed(Guard.text(error));
        worker.trouble(error);
    }

    // --- What becomes of jobs

    /** {@code decide} may take its time, as it reads the texts of errors: the lease is kept meanwhile. */
    void settle(Job job, Function<Job, Outcome> decide) {
        Outcome waits = job.suspension;
        Outcome outcome = !held.has(job) || waits != null ? waits : decide.apply(job);
        if (held.release(job)) {
            ends.put(outcome);
        }
    }

    boolean mayKill(Job job) {
        return worker.mayKill(job, queue(job).connector());
    }

    /** Whether the server has been told how each job that is not in hand any longer ended. */
    boolean hasToldAll() {
        return ends.unanswered().isEmpty();
    }

    void giveBack(Job job, Function<Job, Outcome> how) {
        settle(job, how);
        ring();
    }

    @Override
    public void lose(Job job) {
        if (held.release(job)) {
            worker.lost(job);
        }
    }

    /** Loses jobs with expired leases, fails overdue handlers; returns when to look again, at most {@code otherwise}. */
    long look(long now, long otherwise) {
        held.over(now).forEach(this::lose);
        held.outOfTime(now).forEach(job -> {
            giveBack(job, Outcome::timedOut); // before tell, as the handler may end at once
            job.tell(CancelReason.TIMEOUT);
        });
        return held.firstEnd(otherwise);
    }

    /** Starts the timeout of a job's handler. */
    void limit(Job job) {
        Duration timeout = job.handler.timeout();
        if (timeout != null) {
            job.timesOutAt = System.nanoTime() + timeout.toNanos();
            worker.watch.endsAt(job.timesOutAt);
        }
    }

    /** Asks for other leases for jobs whose handlers want them. */
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

    // --- What jobs ask for

    @Override
    public Object ask(Job job, Words command) throws InterruptedException {
        List<byte[][]> commands = Collections.singletonList(command.all());
        for (int failures = 1; ; failures++) {
            job.check();
            try {
                Object reply = queue(job).connector().call(commands, null).get(0);
                if (!(reply instanceof ServerException said)) {
                    return reply;
                }
                if (Trouble.isRefusal(said) || Trouble.isFull(said) || Trouble.fatal(said) != null) {
                    throw Shards.refused(said);
                }
                Guard.warn(job + ": trouble with the server, trying again: " + said.getMessage());
            } catch (ServerException refused) {
                throw refused;
            } catch (DqException error) {
                Guard.warn(job + ": trouble with the server, trying again: " + Guard.text(error));
            }
            job.pause(Trouble.pause(failures));
        }
    }

    private DqQueue queue(Job job) {
        return queues.get(job.queue());
    }

    /** Suspends a job. It is sent when the handler has returned: before, it could be delivered while it still runs. */
    @Override
    public void end(Job job, Outcome outcome) {
        job.suspension = outcome;
    }

    @Override
    public void report(Job job) {
        courier.report(job);
    }

    @Override
    public String childId(Job parent, String given, String like) {
        return queue(parent).shards.idLike(parent.rawKey, given, like);
    }

    @Override
    public Words adding(Job parent, String id, DqQueue.NewJob child) {
        return Adding.child(parent.rawKey, id, child, queue(parent));
    }

    // --- The supplier

    boolean isConnected() {
        return waiting.isOpen();
    }

    /** Connects, after a pause if it failed before. Throws why it fails. */
    void connect() {
        if (troubles > 0) {
            worker.rest(Trouble.pause(troubles));
        }
        try {
            if (!worker.isDraining()) {
                waiting.open();
            }
        } catch (Throwable error) {
            stumbled(error);
            throw error;
        }
    }

    private void stumbled(Throwable error) {
        Guard.call(waiting::close);
        failed(error);
        troubles++;
    }

    /** Sends the outcomes, and waits for jobs. Throws what went wrong; then the link is to be connected again. */
    List<Job> fetch(int count, Duration wait) {
        isFetching = true; // set before it takes the outcomes: as long as it has any, the courier does not finish
        isRecalled = false; // a recall was of the fetch before
        Deque<Outcome> told = ends.take(Integer.MAX_VALUE);
        try {
            if (worker.isDraining()) {
                return List.of();
            }
            List<Job> found = exchange(told, count, wait);
            troubles = 0;
            return found;
        } catch (Throwable error) {
            ends.putBack(told, error);
            stumbled(error);
            throw error;
        } finally {
            ends.putBack(told, null);
            if (ends.pending() > 0) {
                ring();
            }
            isFetching = false;
        }
    }

    private List<Job> exchange(Deque<Outcome> told, int count, Duration wait) {
        waiting.open();
        List<byte[][]> commands = Ends.commands(told);
        commands.add(fetches.command(count, limited(wait)));
        long sent = System.nanoTime();
        waiting.send(commands);
        ServerException trouble = ends.hear(waiting, told, worker::lost, worker::uncounted);
        if (ends.pending() > 0) {
            ring();
        }
        Object reply = waiting.read();
        if (reply instanceof ServerException said) {
            throw said;
        }
        pulse.heard(System.nanoTime());
        List<Job> found = jobs(reply);
        if (found.isEmpty() && trouble != null) {
            throw trouble; // jobs that were found are ours, whatever became of the rest
        }
        return stillOurs(found, sent);
    }

    /** A fetch that cannot be recalled must not hold for long what other links may need. */
    Duration limited(Duration wait) {
        boolean isRecallable = waiting.clientId > 0 && !courier.isUnblockRefused();
        return isOneOfSeveral && !isRecallable ? Times.min(wait, Turns.TURN) : wait;
    }

    private List<Job> jobs(Object reply) {
        List<Object> pair = Reply.list(reply);
        if (pair.size() != 2) {
            return List.of();
        }
        byte[] key = (byte[]) pair.get(0);
        Codec codec = queues.get(Bytes.text(key)).codec();
        List<Job> found = new ArrayList<>();
        for (Object row : Reply.list(pair.get(1))) {
            found.add(new Job(key, Reply.list(row), codec, this, this));
        }
        if (held.take(found, System.nanoTime())) {
            ring();
        }
        courier.delivered();
        found.forEach(job -> worker.watch.endsAt(job.leaseEnd));
        return found;
    }

    /** If this process was stopped, the jobs may have been delivered long before they were read: it asks the server. */
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

    // --- Heartbeats

    /** Renews the leases of jobs. Jobs that are no longer ours are lost. */
    void beat(Wire wire, List<Job> jobs) {
        for (List<Job> group : Held.groups(jobs)) {
            long asked = group.get(0).askedMs;
            long sent = System.nanoTime();
            Words touch = new Words("DQ.TOUCH").add(group.get(0).rawKey).deliveries(group);
            Object reply = wire.ask(asked == 0 ? touch : touch.add("TTR").add(asked));
            renewed(group, reply, sent, asked);
        }
    }

    /** Records renewed leases. {@code deadlines}: the reply; null in it for a job that is not ours. */
    void renewed(List<Job> jobs, Object deadlines, long sent) {
        renewed(jobs, deadlines, sent, 0);
    }

    private void renewed(List<Job> jobs, Object deadlines, long sent, long asked) {
        pulse.heard(System.nanoTime());
        List<Object> all = Reply.list(deadlines);
        for (int at = 0; at < all.size(); at++) {
            Job job = jobs.get(at);
            if (all.get(at) == null) {
                lose(job);
            } else if (asked == 0) {
                job.leased(sent, job.leaseMs);
            } else {
                job.leased(sent, asked);
                job.askedMs = 0;
            }
        }
    }

    // --- Orders of the worker, and of the courier

    boolean isFetching() {
        return isFetching;
    }

    /** Asks the courier to end the fetch that waits, as another link needs its places. */
    void recall() {
        if (isFetching && !courier.isUnblockRefused()) {
            isRecalled = true;
            ring();
        }
    }

    /** Ends the fetch if it was recalled. */
    void endRecalled(Wire control) {
        if (isRecalled) {
            isRecalled = false;
            if (isFetching) {
                unblock(control);
            }
        }
    }

    /** Ends the wait of the fetch; false if that cannot be done. */
    boolean unblock(Wire control) {
        return waiting.unblock(control);
    }

    List<byte[][]> unblocking(Wire control) {
        return isFetching ? waiting.unblocking(control) : List.of();
    }

    void cutFetch() {
        if (isFetching) {
            waiting.cut();
        }
    }

    void tellAll() {
        held.all().forEach(job -> job.tell(CancelReason.STOPPING));
    }

    /** How many jobs are in hand. */
    int size() {
        return held.all().size();
    }

    void end() {
        courier.end();
        waiting.cut();
    }
}

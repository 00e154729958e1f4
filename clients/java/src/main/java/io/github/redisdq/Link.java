package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * The queues that one pair of connections reaches. On the first, the supplier waits for jobs, with the acknowledgements
 * of finished ones in the same write; the second is its {@link Batcher}'s. Each queue's {@link Listener} has another one.
 */
final class Link implements Job.Context, Watch.Timed {
    private static final Duration SLACK = Duration.ofSeconds(5); // how much longer than its wait a BPOP may take
    private static final int MOST_LISTENERS = 8;
    private static final String LEASE_ENDED = "lease ended"; // as the server says

    private final Watch watch;
    private final Fetches fetches;
    private final Object place;
    private final int placeHash;
    private final Map<String, DqQueue> queues = new LinkedHashMap<>();
    private final Batcher.Waiting waiting;
    private final Held held;
    private final Ends ends;
    private final boolean isOneOfSeveral;
    private final Batcher batcher;
    private final Idle idle;
    private int troubles; // of the supplier

    /** {@code lost}: called with jobs that another worker may have. */
    Link(Watch watch, Fetches fetches, Ends ends, boolean isOneOfSeveral, Consumer<Job> lost, BiConsumer<DqQueue, Job> died) {
        Fetches.Member first = fetches.members().get(0);
        Connector connector = first.queue().connector();
        this.watch = watch;
        this.fetches = fetches;
        this.ends = ends;
        this.isOneOfSeveral = isOneOfSeveral;
        this.place = connector.place(first.key());
        this.placeHash = place.hashCode();
        this.waiting = new Batcher.Waiting(new Wire(connector, first.key(), fetches.longest().plus(SLACK), this::beatNow));
        this.held = new Held(fetches.leases(), lost, job -> died.accept(queue(job), job));
        fetches.members().forEach(each -> queues.put(Bytes.text(each.key()), each.queue()));
        List<Listener> listeners = new ArrayList<>();
        for (Fetches.Member each : queues.size() > MOST_LISTENERS ? List.<Fetches.Member>of() : fetches.members()) {
            listeners.add(new Listener(held, connector, each.key()));
        }
        Wire control = new Wire(connector, first.key(), fetches.leases().answer(), this::beatNow);
        this.batcher = new Batcher(watch, waiting, held, ends, control, listeners);
        this.idle = new Idle(watch, fetches.members().stream().map(Fetches.Member::key).toList());
    }

    /** The link that a worker's job came by. */
    static Link of(Job job) {
        return (Link) job.context;
    }

    Batcher batcher() {
        return batcher;
    }

    /** Equal for links that reach the same queues. */
    Object place() {
        return place;
    }

    int placeHash() {
        return placeHash;
    }

    void ring() {
        batcher.ring();
    }

    private void beatNow() {
        batcher.beatNow();
    }

    /** Why the link is not healthy; null: it is. */
    String trouble() {
        long most = Math.max(fetches.longest().toNanos(), held.longestPauseNs()) + SLACK.toNanos();
        return held.liveness.trouble(System.nanoTime(), most);
    }

    // --- What becomes of jobs

    /** {@code decide} may take its time, as it reads the texts of errors: the lease is kept meanwhile. */
    void settle(Job job, Function<Job, Outcome> decide) {
        if (held.has(job)) {
            Outcome outcome = job.isSuspended() ? Outcome.suspended(job) : decide.apply(job);
            if (held.release(job)) {
                ends.put(outcome);
            }
        }
    }

    /** Whether the job may have killed its worker, and has no other attempt to show that it does not. */
    boolean mayKill(Job job) {
        if (job.attempt() < 2 || job.attempt() != job.maxAttempts()) {
            return false;
        }
        try {
            byte[][] get = job.about("DQ.GET").add("PREFIX").add(0).all();
            Object reply = queue(job).connector().call(Collections.singletonList(get), null).get(0);
            if (reply instanceof RefusedException said) {
                return !watch.isForbidden(said, "DQ.GET", "a job that may have killed its worker is not run alone");
            }
            return reply != null && LEASE_ENDED.equals(Reply.text(Reply.map(reply).get("reason")));
        } catch (RuntimeException error) {
            return true;
        }
    }

    /** Whether the server has been told how each job that is not in hand any longer ended. */
    boolean hasToldAll() {
        return ends.unanswered().isEmpty();
    }

    /** Whether the server has not confirmed yet how this job's delivery ended. */
    boolean isTellingOf(Job job) {
        return ends.isUnanswered(job);
    }

    void giveBack(Job job, Function<Job, Outcome> how) {
        settle(job, how);
        ring();
    }

    @Override
    public void lose(Job job) {
        held.lose(job);
    }

    /** Loses jobs with expired leases, fails overdue handlers. */
    @Override
    public long look(long now, long otherwise) {
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
            watch.endsAt(job.timesOutAt);
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
                if (!(reply instanceof RefusedException said)) {
                    return reply;
                }
                if (Trouble.isRefusal(said) || Trouble.isFull(said) || Trouble.fatal(said) != null) {
                    throw Refusal.of(said, command, job.id(), "");
                }
                Guard.warn(job + ": trouble with the server, trying again: " + said.getMessage());
            } catch (RefusedException refused) {
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

    @Override
    public void report(Job job) {
        batcher.report(job);
    }

    @Override
    public String childId(Job parent, String given, String like) {
        return queue(parent).shards.idLike(parent.rawKey, given, like);
    }

    @Override
    public Words adding(Job parent, String id, QueueCommands.NewJob child) {
        return Adding.child(parent.rawKey, id, child, queue(parent).adds);
    }

    // --- The supplier

    boolean isConnected() {
        return waiting.wire.isOpen();
    }

    /** Connects, after a pause if it failed before. Throws why it fails. */
    void connect() {
        if (troubles > 0) {
            watch.rest(Trouble.pause(troubles));
        }
        try {
            if (!watch.isDraining()) {
                waiting.wire.open();
            }
        } catch (Throwable error) {
            stumbled(error);
            throw error;
        }
    }

    private void stumbled(Throwable error) {
        Guard.call(waiting.wire::close);
        held.liveness.failed(Guard.text(error));
        watch.failed(error);
        troubles++;
    }

    List<Job> fetch(int count) {
        return fetch(count, fetches.longest());
    }

    /** Sends the outcomes, and waits for jobs. Throws what went wrong; then the link is to be connected again. */
    List<Job> fetch(int count, Duration wait) {
        waiting.begin(); // before it takes the outcomes: as long as it has any, the batcher does not finish
        Deque<Outcome> told = ends.take(Integer.MAX_VALUE);
        try {
            if (watch.isDraining()) {
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
            waiting.end();
        }
    }

    private List<Job> exchange(Deque<Outcome> told, int count, Duration wait) {
        waiting.wire.open();
        List<byte[][]> commands = Ends.commands(told);
        List<byte[]> asked = idle.asks();
        asked.forEach(key -> commands.add(Idle.command(key)));
        long sent = System.nanoTime();
        commands.add(fetches.command(count, limited(wait), sent));
        waiting.wire.send(commands);
        RefusedException trouble = ends.hear(waiting.wire, told, held, watch::uncounted);
        if (ends.pending() > 0) {
            ring();
        }
        asked.forEach(key -> idle.heard(key, waiting.wire.read()));
        Object reply = waiting.wire.read();
        if (reply instanceof RefusedException said) {
            throw said;
        }
        held.liveness.heard(System.nanoTime());
        List<Job> found = jobs(reply);
        long lasted = System.nanoTime() - sent;
        idle.fetched(!found.isEmpty(), lasted);
        fetches.fetched(!found.isEmpty() || lasted >= limited(wait).toNanos(), sent);
        if (found.isEmpty() && trouble != null) {
            throw trouble; // jobs that were found are ours, whatever became of the rest
        }
        return stillOurs(found, sent);
    }

    /** A fetch that cannot be recalled must not hold for long what other links may need. */
    Duration limited(Duration wait) {
        boolean isRecallable = waiting.wire.clientId > 0 && !batcher.isUnblockRefused();
        return isOneOfSeveral && !isRecallable ? Times.min(wait, LinkScheduler.TURN) : wait;
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
            found.add(new Job(key, Reply.list(row), codec, this));
        }
        if (held.take(found, System.nanoTime())) {
            ring();
        }
        batcher.delivered();
        for (Job job : found) {
            watch.endsAt(job.leaseEnd);
        }
        return found;
    }

    /** If this process was stopped, the jobs may have been delivered long before they were read: it asks the server. */
    private List<Job> stillOurs(List<Job> found, long sent) {
        if (found.isEmpty() || !watch.stoodStillSince(sent)) {
            return found;
        }
        try {
            batcher.beat(waiting.wire, found);
        } catch (RuntimeException error) {
            found.forEach(job -> giveBack(job, Outcome::returned));
            throw error;
        }
        return found.stream().filter(job -> !job.isCancelled()).toList();
    }

    // --- Orders of the worker

    /** Asks the batcher to end the fetch that waits, as another link needs its places. */
    void recall() {
        if (!batcher.isUnblockRefused() && waiting.recall()) {
            ring();
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
        batcher.end();
        waiting.wire.cut();
    }
}

package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The commands of a {@link DqQueue} that need only its keys. */
public abstract sealed class QueueCommands extends QueueQueries permits DqQueue {
    private static final Duration SLACK = Duration.ofSeconds(5);

    /** What a delivery is to have besides the job. */
    private static final Words BRINGS = new Words("WITHDUE").add("WITHRESULTS").add("WITHSTEPS");

    QueueCommands(Shards shards) {
        super(shards);
    }

    /** A job for {@link DqQueue#addMany}, {@link DqQueue#chain} and {@link Job#spawn}. */
    public record NewJob(Object data, JobOptions options) {
        public NewJob(Object data) {
            this(data, JobOptions.create());
        }
    }

    // --- For programs that handle jobs without a Worker, which does all of this

    /** Removes jobs, in any state. Returns how many it removed. */
    public int delete(String... ids) {
        return shards.count("DQ.DEL", new Words(), ids);
    }

    /** Removes a job, in any state; a handler that works on it is told at once. False if the job did not exist. */
    public boolean cancel(String id) {
        return delete(id) == 1;
    }

    /** As {@link #delete}, for jobs that no worker has: reserved jobs stay. */
    public int deleteUnreserved(String... ids) {
        return shards.count("DQ.DEL", new Words("UNRESERVED"), ids);
    }

    /**
     * Takes up to {@code count} ready jobs of each shard, without waiting. {@code ttr}: the length of the lease; null:
     * the job's own.
     */
    public List<Reserved> pop(int count, Duration ttr) {
        return popped(new Words().value("COUNT", count).value("TTR", ttr).add(BRINGS));
    }

    private List<Reserved> popped(Words options) {
        List<Object> replies = shards.each("DQ.POP", options);
        List<Reserved> found = new ArrayList<>();
        for (int at = 0; at < replies.size(); at++) {
            found.addAll(reserved(shards.keys.get(at), replies.get(at)));
        }
        return found;
    }

    /** Takes this job, if it is ready; else returns null. */
    public Reserved popId(String id, Duration ttr) {
        byte[] key = shards.key(id);
        Object reply = shards.one(new Words("DQ.POP").add(key).value("ID", id).value("TTR", ttr).add(BRINGS));
        return reply == null ? null : Reserved.of(key, Reply.list(reply), codec());
    }

    /** Takes and removes up to {@code count} ready jobs of each shard: at-most-once delivery. */
    public List<Reserved> popAndForget(int count) {
        return popped(new Words().value("COUNT", count).add("NOACK").add(BRINGS));
    }

    /**
     * Waits for ready jobs for up to {@code timeout} (0: without limit), and takes up to {@code count}. It does not
     * work with a sharded queue in a cluster.
     */
    public List<Reserved> bpop(Duration timeout, int count, Duration ttr) {
        return bpop(shards.keys, timeout, count, ttr);
    }

    /** As {@link #bpop(Duration, int, Duration)}, from the first of the keys that has ready jobs. */
    List<Reserved> bpop(List<byte[]> keys, Duration timeout, int count, Duration ttr) {
        Words words = new Words("DQ.BPOP");
        keys.forEach(words::add);
        words.add(seconds(timeout)).value("COUNT", count).value("TTR", ttr).add(BRINGS);
        List<Object> pair = Reply.list(shards.all(List.of(words), patience(timeout)).get(0));
        return pair.size() == 2 ? reserved((byte[]) pair.get(0), pair.get(1)) : List.of();
    }

    /** As {@link #bpop(List, Duration, int, Duration)}, without waiting. */
    List<Reserved> pop(List<byte[]> keys, int count, Duration ttr) {
        for (byte[] key : keys) {
            Words words = new Words("DQ.POP").add(key).value("COUNT", count).value("TTR", ttr).add(BRINGS);
            List<Reserved> found = reserved(key, shards.one(words));
            if (!found.isEmpty()) {
                return found;
            }
        }
        return List.of();
    }

    /** The acknowledgement of one job; {@link #isAcked} reads its reply. */
    static Words acking(byte[] key, String form, String id, String token) {
        return new Words("DQ.ACK").add(key).add(form).add(Words.IDS).add(1).add(id).add(token);
    }

    static boolean isAcked(Object reply) {
        return Reply.list(reply).contains(1L);
    }

    private List<Reserved> reserved(byte[] key, Object rows) {
        return Reply.list(rows).stream().map(row -> Reserved.of(key, Reply.list(row), codec())).toList();
    }

    /**
     * Marks a job as done. False if the token is not the job's current one: another worker has the job, or it is gone.
     */
    public boolean ack(String id, String token) {
        return isAcked(shards.one(acking(shards.key(id), "WITHTOKENS", id, token)));
    }

    /** {@link #ack} for many jobs: tokens by ids. Returns how many were acknowledged. */
    public int ackMany(Map<String, String> tokens) {
        List<Words> calls = shards.withTokens("DQ.ACK", new Words("WITHTOKENS"), tokens, new Words());
        return shards.all(calls, null).stream().mapToInt(reply -> Shards.sum(Reply.list(reply))).sum();
    }

    /** Gives a job back. Returns its new state; null if the token is not the job's current one. */
    public State nack(String id, String token, NackOptions options) {
        return State.of(shards.one(new Words("DQ.NACK").add(shards.key(id)).add(id).value("TOKEN", token).add(options.words())));
    }

    /** {@link #nack} for many jobs: tokens by ids. Returns the new states by ids. */
    public Map<String, State> nackMany(Map<String, String> tokens, NackOptions options) {
        return shards.many("DQ.NACK", tokens, options.words(), State::of);
    }

    /**
     * Renews a lease: it lasts {@code ttr} from now (null: as long as the last one). Returns when it expires; null if
     * the token is not the job's current one.
     */
    public Instant touch(String id, String token, Duration ttr) {
        return Reply.instant(shards.one(new Words("DQ.TOUCH").add(shards.key(id)).add(id).value("TOKEN", token).value("TTR", ttr)));
    }

    /**
     * Sets what a delivery counts in the rates of the queue and its group, if that is known only after the delivery,
     * and renews its lease. False if the token is not the job's current one.
     */
    public boolean setCost(String id, String token, int cost) {
        return shards.one(new Words("DQ.TOUCH").add(key(id)).add(id).value("TOKEN", token).value("COST", cost)) != null;
    }

    /** {@link #touch} for many jobs: tokens by ids. Returns by ids when the leases expire. */
    public Map<String, Instant> touchMany(Map<String, String> tokens, Duration ttr) {
        return shards.many("DQ.TOUCH", tokens, new Words().value("TTR", ttr), Reply::instant);
    }

    /**
     * As {@link #touchMany}, and then waits for up to {@code timeout} while all of these leases are held. It returns as
     * soon as one is lost, as by {@link #cancel}. Only for queues without shards.
     */
    public Map<String, Instant> btouch(Duration timeout, Map<String, String> tokens, Duration ttr) {
        if (shards.keys.size() > 1) {
            throw new IllegalArgumentException("btouch is for queues without shards");
        }
        Words words = new Words("DQ.BTOUCH").add(shards.keys.get(0)).add(seconds(timeout)).add(Words.IDS).add(tokens.size());
        tokens.forEach((id, token) -> words.add(id).add(token));
        List<Object> ends = Reply.list(shards.all(List.of(words.value("TTR", ttr)), patience(timeout)).get(0));
        Map<String, Instant> found = new LinkedHashMap<>();
        tokens.keySet().forEach(id -> found.put(id, Reply.instant(ends.get(found.size()))));
        return found;
    }

    private static String seconds(Duration timeout) {
        return Double.toString(Words.wait("timeout", timeout) / 1000.0);
    }

    /** How long to wait for the reply; 0: without limit. */
    private static Duration patience(Duration timeout) {
        return timeout.isZero() ? Duration.ZERO : timeout.plus(SLACK);
    }

    /** Keeps a step with a reserved job, for later attempts. False if the token is not the job's current one. */
    public boolean step(String id, String token, String name, byte[] value) {
        return shards.one(new Words("DQ.STEP").add(key(id)).add(id).add(token).add(name).add(value)) != null;
    }

    /** Reports how far a job is, for {@link #get}, and renews its lease, as {@link #touch} does. */
    public Instant setProgress(String id, String token, String text) {
        return Reply.instant(shards.one(new Words("DQ.TOUCH").add(key(id)).add(id).value("TOKEN", token).value("PROGRESS", text)));
    }

    /** Gives delayed or ready jobs another due time, {@code delay} from now. Returns how many jobs it found. */
    public int reschedule(Duration delay, String... ids) {
        return shards.count("DQ.RESCHEDULE", new Words().value("DELAY", given(delay)), ids);
    }

    /** Gives delayed or ready jobs another due time. Returns how many jobs it found. */
    public int reschedule(Instant at, String... ids) {
        return shards.count("DQ.RESCHEDULE", new Words().value("AT", given(at)), ids);
    }

    /** Gives delayed or ready jobs another due time, another priority, or both. Returns how many jobs it found. */
    public int reschedule(RescheduleOptions options, String... ids) {
        return shards.count("DQ.RESCHEDULE", options.words(), ids);
    }

    private static <T> T given(T due) {
        return Objects.requireNonNull(due, "reschedule needs a new due time: a Duration from now, or an Instant");
    }

    /** Makes dead, done or blocked jobs ready again, and returns how many. A done job loses its result. */
    public int kick(String... ids) {
        return shards.count("DQ.KICK", new Words(), ids);
    }

    /** Makes the {@code count} jobs of each shard that have been dead longest ready again. Returns how many. */
    public int kickOldest(int count) {
        return Shards.sum(shards.each("DQ.KICK", new Words().value("COUNT", count)));
    }

    /**
     * Ends the waits of these connections of the same user, by their CLIENT ID on the server that has the queue (the
     * first shard of it), and returns how many it ended.
     */
    public int unblock(long... clients) {
        Words words = new Words("DQ.UNBLOCK");
        for (long client : clients) {
            words.add(client);
        }
        Wire wire = new Wire(shards.connector, shards.keys.get(0), SLACK, () -> {}); // its words have no key
        try {
            return (int) Reply.number(wire.ask(words));
        } finally {
            wire.close();
        }
    }

    // --- Settings

    /** Sets the settings that are given, on each shard. Creates the queue if it does not exist. */
    public void configure(Settings settings) {
        shards.each("DQ.CFGSET", settings.words());
    }

    /** One group of this queue, such as a tenant. It sends nothing. */
    public QueueGroup group(String name) {
        return new QueueGroup(shards, name);
    }

    /** Stops deliveries until {@link #resume}. */
    public void pause() {
        shards.each("DQ.PAUSE", new Words());
    }

    /** Stops deliveries for a duration. */
    public void pause(Duration duration) {
        shards.each("DQ.PAUSE", new Words().add(Words.wait("a pause", duration)));
    }

    /** Ends a pause. */
    public void resume() {
        shards.each("DQ.RESUME", new Words());
    }

    /** Removes all jobs in a state. Returns how many. */
    public int purge(State state) {
        return Shards.sum(shards.each("DQ.PURGE", new Words(state.name())));
    }

    /** Removes all jobs. Returns how many. */
    public int purge() {
        return Shards.sum(shards.each("DQ.PURGE", new Words("ALL")));
    }
}

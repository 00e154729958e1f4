package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

/** The commands of a {@link DqQueue} that need only its keys. */
public abstract sealed class QueueCommands permits DqQueue {
    private static final Duration SLACK = Duration.ofSeconds(5);

    /** What a delivery is to have besides the job. */
    private static final Words BRINGS = new Words("WITHDUE").add("WITHRESULTS").add("WITHSTEPS");

    final Shards shards;

    QueueCommands(Shards shards) {
        this.shards = shards;
    }

    byte[] key(String id) {
        return shards.key(id);
    }

    abstract Codec codec();

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
        return new Words("DQ.ACK").add(key).add(form).add("IDS").add(1).add(id).add(token);
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
    public int ackAll(Map<String, String> tokens) {
        List<Words> calls = shards.withTokens("DQ.ACK", new Words("WITHTOKENS"), tokens, new Words());
        return shards.all(calls, null).stream().mapToInt(reply -> Shards.sum(Reply.list(reply))).sum();
    }

    /** Gives a job back. Returns its new state; null if the token is not the job's current one. */
    public State nack(String id, String token, NackOptions options) {
        return State.of(shards.one(new Words("DQ.NACK").add(shards.key(id)).add(id).value("TOKEN", token).add(options.words())));
    }

    /** {@link #nack} for many jobs: tokens by ids. Returns the new states by ids. */
    public Map<String, State> nackAll(Map<String, String> tokens, NackOptions options) {
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
    public Map<String, Instant> touchAll(Map<String, String> tokens, Duration ttr) {
        return shards.many("DQ.TOUCH", tokens, new Words().value("TTR", ttr), Reply::instant);
    }

    /**
     * As {@link #touchAll}, and then waits for up to {@code timeout} while all of these leases are held. It returns as
     * soon as one is lost, as by {@link #cancel}. Only for queues without shards.
     */
    public Map<String, Instant> btouchAll(Duration timeout, Map<String, String> tokens, Duration ttr) {
        if (shards.keys.size() > 1) {
            throw new IllegalArgumentException("btouchAll is for queues without shards");
        }
        Words words = new Words("DQ.BTOUCH").add(shards.keys.get(0)).add(seconds(timeout)).add("IDS").add(tokens.size());
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
    public Instant progress(String id, String token, String text) {
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

    private static <T> T given(T due) {
        return Objects.requireNonNull(due, "reschedule needs a new due time: a Duration from now, or an Instant");
    }

    /** Gives delayed or ready jobs another priority. Returns how many jobs it found. */
    public int reprioritize(int priority, String... ids) {
        return shards.count("DQ.RESCHEDULE", new Words().value("PRIORITY", priority), ids);
    }

    /** Makes dead, done or blocked jobs ready again, and returns how many. A done job loses its result. */
    public int kick(String... ids) {
        return shards.count("DQ.KICK", new Words(), ids);
    }

    /** Makes the {@code count} jobs of each shard that have been dead longest ready again. Returns how many. */
    public int kickOldest(int count) {
        return Shards.sum(shards.each("DQ.KICK", new Words().value("COUNT", count)));
    }

    // --- Read-only commands

    /** Everything about a job; null if it does not exist. */
    public JobInfo get(String id) {
        return get(id, null);
    }

    /**
     * As {@link #get(String)}, with only so many bytes of the payload, the next one, the result, and values of results
     * and steps; null: all.
     */
    public JobInfo get(String id, Integer prefix) {
        Words words = new Words("DQ.GET").add(shards.key(id)).add(id).value("PREFIX", prefix);
        return JobInfo.of(Reply.map(shards.one(words)), codec());
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

    /** The first jobs of each shard that are in a state, in that state's order. Changes nothing. */
    public List<Peeked> peek(State state, int count) {
        return peek(state, count, null, null);
    }

    /** As {@link #peek(State, int)}, from {@code since} to {@code until}; either may be null. */
    public List<Peeked> peek(State state, int count, Instant since, Instant until) {
        return peek(state, count, since, until, null);
    }

    /**
     * As {@link #peek(State, int, Instant, Instant)}, with only so many bytes of each payload; null: all. A shard ends
     * its answer after 16 MB of payloads: fewer than {@code count} are not always all, unless {@code prefix} is 0.
     */
    public List<Peeked> peek(State state, int count, Instant since, Instant until, Integer prefix) {
        Words rest = new Words(state.name()).value("FROM", since).value("TO", until);
        rest.value("COUNT", count).value("PREFIX", prefix);
        List<Peeked> found = new ArrayList<>();
        shards.each("DQ.PEEK", rest).forEach(rows -> Reply.list(rows).forEach(row -> found.add(Peeked.of(Reply.list(row)))));
        return found;
    }

    /**
     * Makes one step through the ids of a shard (0 if there is one key). Begin with the cursor "0". State, pattern and
     * count may be null.
     */
    public Page<String> scan(String cursor, int shard, State state, String match, Integer count) {
        Words words = new Words("DQ.SCAN").add(shards.keys.get(shard)).add(cursor).value("STATE", state);
        List<Object> pair = Reply.list(shards.one(words.value("MATCH", match).value("COUNT", count)));
        return new Page<>(Reply.text(pair.get(0)), Reply.list(pair.get(1)).stream().map(Reply::text).toList());
    }

    /** Calls the action with each id of all shards, step by step. */
    public void forEachId(Consumer<String> action) {
        for (int shard = 0; shard < shards.keys.size(); shard++) {
            String cursor = "0";
            do {
                Page<String> page = scan(cursor, shard, null, null, 1000);
                page.found().forEach(action);
                cursor = page.cursor();
            } while (!cursor.equals("0"));
        }
    }

    /** Divides the time into equal buckets, and returns how many jobs will be due in each. */
    public long[] forecast(Instant from, Instant to, int buckets) {
        long[] counts = new long[buckets];
        Words rest = new Words().value("FROM", from).value("TO", to).value("BUCKETS", buckets);
        for (Object reply : shards.each("DQ.FORECAST", rest)) {
            List<Object> parts = Reply.list(reply);
            for (int at = 0; at < parts.size(); at++) {
                counts[at] += Reply.number(parts.get(at));
            }
        }
        return counts;
    }

    /** How many jobs are blocked, delayed, ready and reserved. */
    public int size() {
        return Shards.sum(shards.each("DQ.LEN", new Words()));
    }

    /** How many jobs are in a state. */
    public int size(State state) {
        return Shards.sum(shards.each("DQ.LEN", new Words(state.name())));
    }

    /** How many jobs a group has. */
    public int sizeOfGroup(String group) {
        return Shards.sum(shards.each("DQ.LEN", new Words().value("GROUP", group)));
    }

    /** The queue's figures, summed over its shards; null if the queue does not exist. */
    public Stats stats() {
        return Stats.addUp(shards.each("DQ.STATS", new Words()).stream().map(Reply::map).toList());
    }

    /**
     * The next {@code count} due times of a recurring job: none for a job that does not recur; null if the job does not
     * exist.
     */
    public List<Instant> next(String id, int count) {
        Object reply = shards.one(new Words("DQ.NEXT").add(shards.key(id)).add(id).value("COUNT", count));
        return reply == null ? null : Reply.list(reply).stream().map(Reply::instant).toList();
    }

    /**
     * Makes one step through the groups of a shard (0 if there is one key) that hold jobs. Begin with the cursor "0".
     */
    public Page<Group> groups(String cursor, int shard, String match, Integer count) {
        Words words = new Words("DQ.GROUPS").add(shards.keys.get(shard)).add(cursor);
        List<Object> pair = Reply.list(shards.one(words.value("MATCH", match).value("COUNT", count)));
        List<Group> groups = Reply.list(pair.get(1)).stream().map(row -> Group.of(Reply.list(row))).toList();
        return new Page<>(Reply.text(pair.get(0)), groups);
    }

    // --- Settings

    /** Sets the settings that are given, on each shard. Creates the queue if it does not exist. */
    public void configure(Settings settings) {
        shards.each("DQ.CFGSET", settings.words());
    }

    /** All settings (of the first shard) by name: a Long, or a List of them; null if the queue does not exist. */
    public Map<String, Object> settings() {
        return Reply.map(shards.one(new Words("DQ.CFGGET").add(shards.keys.get(0))));
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

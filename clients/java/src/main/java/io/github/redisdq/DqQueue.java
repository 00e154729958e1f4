package io.github.redisdq;

import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Adds jobs, and has every command of dq as a method. Safe for use by many threads.
 *
 * <p>Ids are texts; bytes that are not UTF-8 are lone surrogates, U+DC80 to U+DCFF.
 */
public final class DqQueue implements AutoCloseable {
    private static final Duration SLACK = Duration.ofSeconds(5);

    private final Shards shards;
    private final Codec codec;
    private final List<Hooks> hooks;

    private DqQueue(Shards shards, Codec codec, List<Hooks> hooks) {
        this.shards = shards;
        this.codec = codec;
        this.hooks = hooks;
    }

    /** A queue by the URL of its server, with Jedis: {@code redis://user:password@host:6379/0}, {@code rediss://} with TLS. */
    public static DqQueue connect(String url, String name) {
        return on(JedisConnector.of(URI.create(url)), name);
    }

    /** A queue by a connector; several may share one. */
    public static DqQueue on(Connector connector, String name) {
        return new DqQueue(new Shards(connector, name, 0), Codec.json(), List.of());
    }

    /** Spread over so many keys, {@code name:{0}} to {@code name:{n-1}}, by the CRC-32 of the id. */
    public DqQueue withShards(int count) {
        return new DqQueue(new Shards(shards.connector, shards.name, count), codec, hooks);
    }

    public DqQueue withCodec(Codec codec) {
        return new DqQueue(shards, Objects.requireNonNull(codec, "no codec"), hooks);
    }

    public DqQueue withHooks(Hooks... hooks) {
        return new DqQueue(shards, codec, List.of(hooks));
    }

    public String name() {
        return shards.name;
    }

    Connector connector() {
        return shards.connector;
    }

    Codec codec() {
        return codec;
    }

    List<byte[]> keys() {
        return shards.keys;
    }

    boolean isSharded() {
        return shards.count > 0;
    }

    /** Closes the connector. */
    @Override
    public void close() {
        shards.connector.close();
    }

    // --- Adding

    /** A job for {@link #addAll}. */
    public record NewJob(Object data, JobOptions options) {}

    /** Adds a job that is due now. Returns its id. */
    public String add(Object data) {
        return add(data, JobOptions.create());
    }

    /**
     * Adds a job. Returns its id, or null where the condition refused it: as a rule, because a job of that id is there.
     *
     * @param data a {@code byte[]}, or what the queue's codec makes bytes of: JSON unless the queue says otherwise
     */
    public String add(Object data, JobOptions options) {
        return send(new Adding(this, data, options));
    }

    String send(Adding adding) {
        return adding.answered(shards.one(adding.words()));
    }

    /** Makes a job without sending it, so that its data may change meanwhile: {@link Prepared#send} adds it as it was. */
    public Prepared prepare(Object data, JobOptions options) {
        return new Prepared(this, new Adding(this, data, options));
    }

    /** Adds many jobs in one round trip; returns what {@link #add} does for each. */
    public List<String> addAll(List<NewJob> jobs) {
        List<Adding> all = jobs.stream().map(job -> new Adding(this, job.data, job.options)).toList();
        List<Object> replies = shards.all(all.stream().map(Adding::words).toList(), null);
        List<String> ids = new ArrayList<>();
        for (int at = 0; at < replies.size(); at++) {
            ids.add(all.get(at).answered(replies.get(at)));
        }
        return ids;
    }

    /**
     * Makes a job come again and again. Say it at each start of the program: the same rule goes on as it was. The options
     * need an id; of a job's own, delay, at and what becomes of another one of that id are not for it.
     */
    public String recur(Rule rule, Object data, JobOptions options) {
        if (options.id() == null) {
            throw new IllegalArgumentException("a recurring job needs an id: JobOptions.withId(\"report\")");
        }
        options.ifExists(JobOptions.IfExists.REPLACE);
        Adding adding = new Adding(this, data, options);
        return adding.answered(shards.one(adding.words().add(rule.words())));
    }

    byte[] key(String id) {
        return shards.key(id);
    }

    List<Hooks> hooks() {
        return hooks;
    }

    // --- A job's life by hand: a Worker does all of this

    /** Removes jobs, in whatever state. Returns how many went. */
    public int delete(String... ids) {
        return shards.count("DQ.DEL", size -> new Words(), ids);
    }

    /** As {@link #delete}, but not those at which a worker is. */
    public int deleteUnreserved(String... ids) {
        return shards.count("DQ.DEL", size -> new Words("UNRESERVED"), ids);
    }

    /** Takes up to {@code count} ready jobs (of each shard), without waiting. {@code ttr}: null for the job's own lease. */
    public List<Reserved> pop(int count, Duration ttr) {
        return popped(new Words().value("COUNT", count).value("TTR", ttr).add("WITHDUE"));
    }

    private List<Reserved> popped(Words options) {
        List<Object> replies = shards.each("DQ.POP", options);
        List<Reserved> found = new ArrayList<>();
        for (int at = 0; at < replies.size(); at++) {
            found.addAll(reserved(shards.keys.get(at), replies.get(at)));
        }
        return found;
    }

    /** Takes that very job, if it is ready; null otherwise. */
    public Reserved popId(String id, Duration ttr) {
        byte[] key = shards.key(id);
        Object reply = shards.one(new Words("DQ.POP").add(key).value("ID", id).value("TTR", ttr).add("WITHDUE"));
        return reply == null ? null : Reserved.of(key, Reply.list(reply));
    }

    /** Takes and removes up to {@code count} ready jobs: at most once. */
    public List<Reserved> popAndForget(int count) {
        return popped(new Words().value("COUNT", count).add("NOACK").add("WITHDUE"));
    }

    /** Waits for ready jobs for up to {@code timeout} and takes up to {@code count}. Not of a sharded queue in a cluster. */
    public List<Reserved> bpop(Duration timeout, int count, Duration ttr) {
        return bpop(shards.keys, timeout, count, ttr);
    }

    /** Of the first of the keys that has any. */
    List<Reserved> bpop(List<byte[]> keys, Duration timeout, int count, Duration ttr) {
        Words words = new Words("DQ.BPOP");
        keys.forEach(words::add);
        words.add(Double.toString(Words.wait("timeout", timeout) / 1000.0)).value("COUNT", count).value("TTR", ttr).add("WITHDUE");
        Duration patience = timeout.isZero() ? Duration.ZERO : timeout.plus(SLACK); // 0: for ever
        List<Object> pair = Reply.list(shards.all(List.of(words), patience).get(0));
        return pair.size() == 2 ? reserved((byte[]) pair.get(0), pair.get(1)) : List.of();
    }

    /** The same without waiting. */
    List<Reserved> pop(List<byte[]> keys, int count, Duration ttr) {
        for (byte[] key : keys) {
            Words words = new Words("DQ.POP").add(key).value("COUNT", count).value("TTR", ttr).add("WITHDUE");
            List<Reserved> found = reserved(key, shards.one(words));
            if (!found.isEmpty()) {
                return found;
            }
        }
        return List.of();
    }

    /** Of whichever queues they are: what {@link #ack} says of each. */
    List<Boolean> ackEach(List<Reserved> jobs) {
        List<Words> calls = jobs.stream()
                .map(job -> new Words("DQ.ACK").add(job.queue()).add("WITHTOKENS").add(job.id()).add(job.token()))
                .toList();
        return shards.all(calls, null).stream().map(reply -> Reply.number(reply) == 1).toList();
    }

    private static List<Reserved> reserved(byte[] key, Object rows) {
        return Reply.list(rows).stream().map(row -> Reserved.of(key, Reply.list(row))).toList();
    }

    /** The job is done. False where the token is not its current one: somebody else has it, or it is gone. */
    public boolean ack(String id, String token) {
        return Reply.number(shards.one(new Words("DQ.ACK").add(shards.key(id)).add("WITHTOKENS").add(id).add(token))) == 1;
    }

    /** {@link #ack} for many: tokens by ids. Returns how many of them were done by that. */
    public int ackAll(Map<String, String> tokens) {
        return Shards.sum(shards.all(shards.withTokens("DQ.ACK", size -> new Words("WITHTOKENS"), tokens, new Words()), null));
    }

    /** Gives a job back. Returns its state; null where the token is not its current one. */
    public State nack(String id, String token, NackOptions options) {
        return State.of(shards.one(new Words("DQ.NACK").add(shards.key(id)).add(id).value("TOKEN", token).add(options.words())));
    }

    /** {@link #nack} for many: tokens by ids. Returns states by ids. */
    public Map<String, State> nackAll(Map<String, String> tokens, NackOptions options) {
        return shards.many("DQ.NACK", tokens, options.words(), State::of);
    }

    /** A fresh lease from now (null: as long as the last one). Returns its end; null where the token is not current. */
    public Instant touch(String id, String token, Duration ttr) {
        return Reply.instant(shards.one(new Words("DQ.TOUCH").add(shards.key(id)).add(id).value("TOKEN", token).value("TTR", ttr)));
    }

    /** {@link #touch} for many: tokens by ids. Returns the leases' ends by ids. */
    public Map<String, Instant> touchAll(Map<String, String> tokens, Duration ttr) {
        return shards.many("DQ.TOUCH", tokens, new Words().value("TTR", ttr), Reply::instant);
    }

    /** Gives delayed or ready jobs another due time. Returns how many it found. */
    public int reschedule(Duration delay, String... ids) {
        return shards.count("DQ.RESCHEDULE", size -> new Words().value("DELAY", given(delay)), ids);
    }

    /** Gives delayed or ready jobs another due time. Returns how many it found. */
    public int reschedule(Instant at, String... ids) {
        return shards.count("DQ.RESCHEDULE", size -> new Words().value("AT", given(at)), ids);
    }

    private static <T> T given(T due) {
        return Objects.requireNonNull(due, "reschedule needs a new due time: a Duration from now, or an Instant");
    }

    /** Gives delayed or ready jobs another priority. Returns how many it found. */
    public int reprioritize(int priority, String... ids) {
        return shards.count("DQ.RESCHEDULE", size -> new Words().value("PRIORITY", priority), ids);
    }

    /** Makes dead jobs ready again. Returns how many. */
    public int kick(String... ids) {
        return shards.count("DQ.KICK", size -> new Words().value("IDS", size), ids);
    }

    /** Makes the longest dead jobs (of each shard) ready again. Returns how many. */
    public int kickOldest(int count) {
        return Shards.sum(shards.each("DQ.KICK", new Words().value("COUNT", count)));
    }

    // --- Looking

    /** All about one job; null where there is none. */
    public JobInfo get(String id) {
        return JobInfo.of(Reply.map(shards.one(new Words("DQ.GET").add(shards.key(id)).add(id))));
    }

    /** The first jobs in a state, in its order (of each shard). */
    public List<Peeked> peek(State state, int count) {
        return peek(state, count, null, null);
    }

    /** As {@link #peek(State, int)}, between two instants; either may be null. */
    public List<Peeked> peek(State state, int count, Instant since, Instant until) {
        Words rest = new Words(state.name()).value("FROM", since).value("TO", until).value("COUNT", count);
        List<Peeked> found = new ArrayList<>();
        shards.each("DQ.PEEK", rest).forEach(rows -> Reply.list(rows).forEach(row -> found.add(Peeked.of(Reply.list(row)))));
        return found;
    }

    /** One step through the ids of a shard (0 where there is one key). State, pattern and count may be null. */
    public Page<String> scan(String cursor, int shard, State state, String match, Integer count) {
        Words words = new Words("DQ.SCAN").add(shards.keys.get(shard)).add(cursor).value("STATE", state);
        List<Object> pair = Reply.list(shards.one(words.value("MATCH", match).value("COUNT", count)));
        return new Page<>(Reply.text(pair.get(0)), Reply.list(pair.get(1)).stream().map(Reply::text).toList());
    }

    /** All ids, step by step. */
    public void forEachId(java.util.function.Consumer<String> action) {
        for (int shard = 0; shard < shards.keys.size(); shard++) {
            String cursor = "0";
            do {
                Page<String> page = scan(cursor, shard, null, null, 1000);
                page.found().forEach(action);
                cursor = page.cursor();
            } while (!cursor.equals("0"));
        }
    }

    /** How many jobs will be due in each of so many equal parts of that time. */
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

    /** How many jobs are delayed, ready and reserved. */
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

    /** The queue's figures, added up over its shards; null where there is no queue. */
    public Stats stats() {
        return Stats.addUp(shards.each("DQ.STATS", new Words()).stream().map(Reply::map).toList());
    }

    /** When a recurring job will be due; empty for another job, null where there is none. */
    public List<Instant> next(String id, int count) {
        Object reply = shards.one(new Words("DQ.NEXT").add(shards.key(id)).add(id).value("COUNT", count));
        return reply == null ? null : Reply.list(reply).stream().map(Reply::instant).toList();
    }

    /** One step through the groups of a shard (0 where there is one key) that hold jobs. */
    public Page<Group> groups(String cursor, int shard, String match, Integer count) {
        Words words = new Words("DQ.GROUPS").add(shards.keys.get(shard)).add(cursor);
        List<Object> pair = Reply.list(shards.one(words.value("MATCH", match).value("COUNT", count)));
        List<Group> groups = new ArrayList<>();
        for (Object each : Reply.list(pair.get(1))) {
            List<Object> row = Reply.list(each);
            groups.add(new Group(Reply.text(row.get(0)), Reply.number(row.get(1)), Reply.number(row.get(2))));
        }
        return new Page<>(Reply.text(pair.get(0)), groups);
    }

    // --- Settings

    /** Sets the settings that are named, on each shard. */
    public void configure(Settings settings) {
        shards.each("DQ.CFGSET", settings.words());
    }

    /** All settings (of the first shard) by name: Long, or a List of them; null where there is no queue. */
    public Map<String, Object> settings() {
        return Reply.map(shards.one(new Words("DQ.CFGGET").add(shards.keys.get(0))));
    }

    /** Delivers nothing until {@link #resume}. */
    public void pause() {
        shards.each("DQ.PAUSE", new Words());
    }

    /** Delivers nothing for so long. */
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

    @Override
    public String toString() {
        return "queue " + shards.name;
    }
}

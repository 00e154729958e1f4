package io.github.redisdq;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** The read-only commands of a {@link DqQueue}. */
public abstract sealed class QueueQueries permits QueueCommands {
    final Shards shards;

    QueueQueries(Shards shards) {
        this.shards = shards;
    }

    byte[] key(String id) {
        return shards.key(id);
    }

    abstract Codec codec();

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
        return scan(cursor, shard, new ScanOptions().state(state).match(match).count(count));
    }

    /** As {@link #scan(String, int, State, String, Integer)}, by other options, too. */
    public Page<String> scan(String cursor, int shard, ScanOptions options) {
        Words words = new Words("DQ.SCAN").add(shards.keys.get(shard)).add(cursor).add(options.words());
        List<Object> pair = Reply.list(shards.one(words));
        return new Page<>(Reply.text(pair.get(0)), Reply.list(pair.get(1)).stream().map(Reply::text).toList());
    }

    /** Calls the action with each id of all shards, step by step. */
    public void ids(Consumer<String> action) {
        ids(new ScanOptions().count(1000), action);
    }

    /** As {@link #ids(Consumer)}, for the ids that the options choose. */
    public void ids(ScanOptions options, Consumer<String> action) {
        for (int shard = 0; shard < shards.keys.size(); shard++) {
            String cursor = "0";
            do {
                Page<String> page = scan(cursor, shard, options);
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
    public int len() {
        return Shards.sum(shards.each("DQ.LEN", new Words()));
    }

    /** How many jobs are in a state. */
    public int len(State state) {
        return Shards.sum(shards.each("DQ.LEN", new Words(state.name())));
    }

    /** How many jobs a group has. */
    public int lenOfGroup(String group) {
        return Shards.sum(shards.each("DQ.LEN", new Words().value("GROUP", group)));
    }

    /** The queue's figures, summed over its shards; null if the queue does not exist. */
    public Stats stats() {
        return Stats.addUp(shards.each("DQ.STATS", new Words()).stream().map(Reply::map).toList());
    }

    /**
     * Why the queue delivers nothing: all that holds, in the server's order; of a sharded queue, the numbers of its shards
     * added up. Null if the queue does not exist.
     */
    public List<Explanation> explain() {
        return Explanation.ofShards(shards.each("DQ.EXPLAIN", new Words()));
    }

    /** Why the queue does not deliver a job; null if the job does not exist. */
    public List<Explanation> explain(String id) {
        return Explanation.ofShards(Collections.singletonList(shards.one(new Words("DQ.EXPLAIN").add(shards.key(id)).add(id))));
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
        return groups(cursor, shard, new Words().value("MATCH", match).value("COUNT", count));
    }

    /** As {@link #groups}, of those with settings of their own instead, whether they hold jobs or not. */
    public Page<Group> groupsWithSettings(String cursor, int shard, String match, Integer count) {
        return groups(cursor, shard, new Words("SET").value("MATCH", match).value("COUNT", count));
    }

    private Page<Group> groups(String cursor, int shard, Words options) {
        List<Object> pair = Reply.list(shards.one(new Words("DQ.GROUPS").add(shards.keys.get(shard)).add(cursor).add(options)));
        List<Group> groups = Reply.list(pair.get(1)).stream().map(row -> Group.of(Reply.list(row))).toList();
        return new Page<>(Reply.text(pair.get(0)), groups);
    }

    /** All settings (of the first shard) by name: a Long, or a List of them; null if the queue does not exist. */
    public Map<String, Object> settings() {
        return Reply.map(shards.one(new Words("DQ.CFGGET").add(shards.keys.get(0))));
    }
}

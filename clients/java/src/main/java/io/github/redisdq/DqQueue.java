package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A queue: adds jobs, and has every command of dq as a method. Safe for use by many threads.
 *
 * <p>Ids are strings. Their bytes that are not UTF-8 are lone surrogates, U+DC80 to U+DCFF.
 */
public final class DqQueue extends QueueCommands implements AutoCloseable {
    private final Codec codec;
    private final List<Hooks> hooks;
    final Adding.To adds;
    private final Waits waits;

    private DqQueue(Shards shards, Codec codec, List<Hooks> hooks) {
        super(shards);
        this.codec = codec;
        this.hooks = hooks;
        this.adds = new Adding.To(shards, codec, hooks);
        this.waits = new Waits(shards.connector, codec);
    }

    /**
     * Opens a queue on the server at a URL, with Jedis: {@code redis://user:password@host:6379/0}, or {@code rediss://}
     * with TLS.
     */
    public static DqQueue connect(String url, String name) {
        return on(JedisConnector.of(JedisConnector.uri(url)), name);
    }

    /** Opens a queue by a connector, which several queues may share. */
    public static DqQueue on(Connector connector, String name) {
        return new DqQueue(new Shards(connector, name, 0), Codec.json(), List.of());
    }

    /** Spreads the queue over that many keys, {@code name:{0}} to {@code name:{n-1}}, by the CRC-32 of the id. */
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

    @Override
    Codec codec() {
        return codec;
    }

    List<byte[]> keys() {
        return shards.keys;
    }

    boolean isSharded() {
        return shards.count > 0;
    }

    /** Ends the queue's waits, and closes its connector. */
    @Override
    public void close() {
        waits.close();
        shards.connector.close();
    }

    // --- Adding

    /** Adds a job that is due now. Returns its id. */
    public String add(Object data) {
        return add(data, JobOptions.create());
    }

    /**
     * Adds a job. Returns its id, or null if the condition refused it: usually because a job with this id exists.
     *
     * @param data a {@code byte[]}, or a value that the queue's codec encodes (default: JSON)
     */
    public String add(Object data, JobOptions options) {
        return send(new Adding(adds, data, options));
    }

    private String send(Adding adding) {
        try {
            return adding.answered(shards.one(adding.words()));
        } catch (RefusedException said) {
            throw Unheld.explained(said, shards, adding.after());
        }
    }

    /**
     * Encodes a job without sending it, so that its data may change meanwhile: {@link Prepared#send} adds it as it was.
     */
    public Prepared prepare(Object data, JobOptions options) {
        return new Prepared(new Adding(adds, data, options), this::send);
    }

    /**
     * Adds many jobs in few round trips, and returns what {@link #add} returns for each. Jobs with equal options except the
     * id share commands of up to a thousand, each of which adds all of them or none. If some are after others of the list,
     * all are added in one transaction.
     */
    public List<String> addMany(List<NewJob> jobs) {
        return prepareMany(jobs).send();
    }

    /** As {@link #prepare}, for {@link #addMany}. */
    public PreparedMany prepareMany(List<NewJob> jobs) {
        return new Flows(adds).prepared(List.copyOf(jobs));
    }

    /**
     * Adds each job after the one before, in one transaction. Returns their ids. If the server's answer is lost, it does as
     * {@link #join}, if the last job has a {@code keep}; without one nobody can tell.
     */
    public List<String> chain(List<NewJob> jobs) {
        return new Flows(adds).chain(jobs);
    }

    /**
     * Adds jobs, and one that begins when all of them have ended, in one transaction. Returns that one's id, or null if it
     * was refused. Its {@link Job#results} say how the others ended, its {@link JobOptions#onDead} what it does if one dies.
     *
     * <p>It is kept for a minute by default: if the server's answer is lost, it is looked up, and all are sent again only
     * if it is not there and none of the others ran. Where nobody can tell, as its {@code keep} is over or a job of its id
     * was there and had not ended, the error of the connection says so.
     *
     * <p>More than 1000 jobs are joined by their group: one that they have in common, or a new one. Then there are no results.
     *
     * @param then neither after others nor after a group
     */
    public String join(List<NewJob> jobs, NewJob then) {
        return new Join(adds, jobs, then).add();
    }

    /**
     * Adds a job that recurs at an interval; first, one interval from now. Call this at each start of the program: with
     * an unchanged rule, the job goes on as it was. The options need an id. Their ifExists does not count, and delay and
     * at are refused: the rule says when.
     */
    public String every(Duration interval, Object data, JobOptions options) {
        return recurring(data, options.every(interval));
    }

    /** Adds a job that recurs by a cron expression, in the options' time zone. See {@link #every}. */
    public String cron(String expression, Object data, JobOptions options) {
        return recurring(data, options.cron(expression));
    }

    private String recurring(Object data, JobOptions options) {
        if (options.id() == null) {
            throw new IllegalArgumentException("a recurring job needs an id: JobOptions.withId(\"report\")");
        }
        Adding adding = new Adding(adds, data, options);
        return adding.answered(shards.one(adding.words()));
    }

    /**
     * Says all recurring jobs of a program, by names, which have no colon: adds those that are new, and changes those
     * that differ. The id of each is {@code program:name}. For each start of a worker, which logs which others there are.
     */
    public RuleChanges rules(String program, Map<String, NewRule> rules) {
        return rules(program, rules, new RulesOptions());
    }

    /** As {@link #rules(String, Map)}; a deploy prunes the other rules. */
    public RuleChanges rules(String program, Map<String, NewRule> rules, RulesOptions options) {
        return new RuleSet(this, adds, program).say(rules, options);
    }

    // --- Results

    /**
     * The result of a job that is done and kept (see {@link JobOptions#keep}). Null if it has no result, is not done or
     * does not exist.
     *
     * @throws JobFailedException if the job is dead
     */
    public <T> T result(String id, Class<T> type) {
        return result(id, (Type) type);
    }

    /** As {@link #result(String, Class)}, for a type with parameters. */
    public <T> T result(String id, Type type) {
        JobInfo job = get(id);
        if (job != null && job.state() == State.DEAD) {
            throw new JobFailedException(id, JobOutcome.DEAD, job.reason());
        }
        return job == null || job.state() != State.DONE ? null : Values.decode(codec, job.result(), type);
    }

    /**
     * Waits until a job has ended, and returns its result, or null if it has none. All waits on a shard of this object
     * share one connection.
     *
     * @throws JobFailedException if the job did not succeed, or ended before and was not kept
     * @throws TimedOutException if the job has not ended by then
     */
    public <T> T wait(String id, Class<T> type, Duration timeout) throws InterruptedException {
        return wait(id, (Type) type, timeout);
    }

    /** As {@link #wait(String, Class, Duration)}, for a type with parameters. */
    public <T> T wait(String id, Type type, Duration timeout) throws InterruptedException {
        CompletableFuture<JobResult> end = end(id);
        try {
            JobResult found = end.get(Words.wait("a timeout", timeout), TimeUnit.MILLISECONDS);
            if (found.isDone()) {
                return found.value(type);
            }
            throw new JobFailedException(id, found.outcome(), found.reason());
        } catch (ExecutionException error) {
            throw waitFailed(id, error.getCause());
        } catch (TimeoutException error) {
            throw new TimedOutException("job " + id + " has not ended within " + timeout, id, timeout);
        } finally {
            end.cancel(false);
        }
    }

    /** The error of a wait, which came to another thread. */
    private static DqException waitFailed(String id, Throwable cause) {
        if (cause instanceof RefusedException said) {
            return new RefusedException(said.getMessage(), said.answer(), id, said.argument(), said.value());
        }
        return cause instanceof DqException said ? said : new DqException(Guard.text(cause), cause);
    }

    /** Completes when the job has ended, however it did. Cancel the future if nobody waits any longer. */
    public CompletableFuture<JobResult> end(String id) {
        return waits.end(key(id), id);
    }

    /**
     * Adds a job and waits for its result, as {@link #wait} does. The job is kept for a minute, unless the options
     * say otherwise. If a job with this id exists, this waits for that job instead.
     */
    public <T> T addAndWait(Object data, JobOptions options, Class<T> type, Duration timeout)
            throws InterruptedException {
        return addAndWait(data, options, (Type) type, timeout);
    }

    /** As {@link #addAndWait(Object, JobOptions, Class, Duration)}, for a type with parameters. */
    public <T> T addAndWait(Object data, JobOptions options, Type type, Duration timeout) throws InterruptedException {
        Adding adding = new Adding(adds, data, options.isKept() ? options : options.copy().keep(Join.KEEP));
        send(adding);
        return wait(adding.id(), type, timeout);
    }

    /** Marks a job as done, with a result. False as for {@link #ack(String, String)}. */
    public boolean ack(String id, String token, Object result) {
        Words words = acking(key(id), "RESULTS", id, token);
        return isAcked(shards.one(words.add(Values.encode(codec, result))));
    }

    /** {@link #ack} for jobs of any queues: its result for each. */
    List<Boolean> ackEach(List<Reserved> jobs) {
        List<Words> calls = jobs.stream()
                .map(job -> acking(Bytes.of(job.queue()), "WITHTOKENS", job.id(), job.token()))
                .toList();
        return shards.all(calls, null).stream().map(QueueCommands::isAcked).toList();
    }

    /** Sends a signal without a value to a job, as {@link #signal(String, String, Object)}. */
    public Boolean signal(String id, String name) {
        return signal(id, name, null);
    }

    /**
     * Sends a signal to a job: see {@link Job#waitSignal}. True: it was sent now; false: it was sent before, and its
     * first value stays; null: the job does not exist or has ended.
     */
    public Boolean signal(String id, String name, Object value) {
        Words words = new Words("DQ.SIGNAL").add(key(id)).add(id).add(name).add(Values.encode(codec, value));
        Object reply = shards.one(words);
        return reply == null ? null : Reply.number(reply) == 1;
    }

    @Override
    public String toString() {
        return "queue " + shards.name;
    }
}

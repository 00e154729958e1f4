package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/** What the server delivered, how long it is ours, and what its handler was told. */
abstract sealed class Delivery permits Job {
    private static final long LONGEST_LEASE_MS = 1L << 42; // as System.nanoTime must not run over
    private static final int RESULTS = 6; // where they are in a row, then steps and terms

    final byte[] rawId;
    final byte[] rawKey;
    final byte[] rawToken;
    private final byte[] payload;
    private final int attempt;
    private final Instant deadline;
    private final Instant due;
    private final List<JobResult> results;
    final Object stepsReply;
    final Codec codec;
    final Link link;
    final Terms terms;
    Handler<?> handler;

    /** How long its lease is, and, by System.nanoTime, when it ends, for all that this process knows. */
    volatile long leaseMs;
    volatile long leaseEnd;
    /** Its handler's lease, until the server has heard of it; 0: nothing is to be said. */
    volatile long askedMs;
    /** When it was delivered, and when its handler has had its time, by System.nanoTime; 0: no limit. */
    volatile long takenAt;
    volatile long timesOutAt;

    private Envelope envelope;
    private boolean isRead;
    private volatile CancelReason told;
    private volatile Run run;

    /** By a row of DQ.BPOP. {@code link}: null without a worker. */
    Delivery(byte[] key, List<Object> row, Codec codec, Link link) {
        this.rawKey = key;
        this.rawId = (byte[]) row.get(0);
        this.payload = (byte[]) row.get(1);
        this.rawToken = (byte[]) row.get(2);
        this.attempt = (int) Reply.number(row.get(3));
        this.deadline = Reply.instant(row.get(4));
        this.due = Reply.instant(row.get(5));
        this.results = JobResult.all(row.get(RESULTS), codec);
        this.stepsReply = row.get(RESULTS + 1);
        this.terms = Terms.of(Reply.list(row.get(RESULTS + 2)));
        this.codec = codec;
        this.link = link;
    }

    /** The job's id. Bytes that are not UTF-8 are lone surrogates, U+DC80 to U+DCFF. */
    public String id() {
        return Bytes.text(rawId);
    }

    /** The key that it came from; of a sharded queue, the shard's. */
    public String queue() {
        return Bytes.text(rawKey);
    }

    /** What was added, envelope included. */
    public byte[] payload() {
        return payload;
    }

    /** What names this delivery. */
    public String token() {
        return Bytes.text(rawToken);
    }

    /** How often the job was delivered, this time included. */
    public int attempt() {
        return attempt;
    }

    /** How many deliveries it is allowed: its own limit, or the handler's; 0: no limit. */
    public int maxAttempts() {
        int ofHandler = handler == null ? 0 : handler.attempts();
        return terms.maxAttempts() > 0 ? terms.maxAttempts() : ofHandler;
    }

    /** It is dead if this attempt fails. */
    public boolean isLastAttempt() {
        return 0 < maxAttempts() && maxAttempts() <= attempt;
    }

    /** When the lease ended at delivery. The worker keeps renewing it while the handler runs. */
    public Instant deadline() {
        return deadline;
    }

    /** When the job was due; of a recurring one, the instant of its occurrence, the same in all attempts. */
    public Instant due() {
        return due;
    }

    /** The kind that it was added with, or null. */
    public String kind() {
        return envelope() == null ? null : envelope().kind();
    }

    /** Those that it was added with. */
    public Map<String, String> headers() {
        return envelope() == null ? Map.of() : envelope().headers();
    }

    /**
     * What was added, as the queue's codec reads it; never null.
     *
     * @throws PayloadException where it cannot: a handler from which that comes ends the job, which is dead
     */
    public <T> T data(Class<T> type) {
        return data((Type) type);
    }

    /** As {@link #data(Class)}, for a type with parameters. */
    public <T> T data(Type type) {
        try {
            T data = codec.decode(envelope() == null ? payload : envelope().data(), type);
            if (data == null && type != Void.class) {
                throw new PayloadException("it is null", null);
            }
            return data;
        } catch (PayloadException error) {
            throw error;
        } catch (Exception error) { // the codec may be the program's
            throw new PayloadException(Guard.text(error), error);
        }
    }

    /** How the jobs have ended that it was added after, in their order; empty for other jobs. */
    public List<JobResult> results() {
        return results;
    }

    /** Another worker may have the job: stop, the end of this handler will not count. */
    public boolean isLost() {
        return told == CancelReason.LOST;
    }

    /**
     * The job was lost, its handler has had its time, or the worker stops and the time to finish is over; the handler's
     * thread is interrupted, too.
     */
    public boolean isCancelled() {
        return told != null;
    }

    /** What the handler was told; null: nothing. */
    public CancelReason cancelReason() {
        return told;
    }

    Envelope envelope() {
        if (!isRead) {
            envelope = Envelope.read(payload);
            isRead = true;
        }
        return envelope;
    }

    /** Whether its handler may have ended as this job, or another one of its batch, was told something. */
    boolean batchWasTold() {
        Run running = run;
        return told != null || running != null && running.wasTold();
    }

    /** By what this process knows, another worker may have it from then on. */
    boolean isOver(long now) {
        return leaseEnd - now <= 0;
    }

    /** Since then it is the server's again to give away, so long later. */
    void leased(long since, long ms) {
        long end = since + Math.min(ms, LONGEST_LEASE_MS) * 1_000_000;
        boolean isEarlier = ms == leaseMs && end - leaseEnd < 0; // an answer that a later one has overtaken
        leaseEnd = isEarlier ? leaseEnd : end;
        leaseMs = ms;
    }

    /** Whether it was told something already. */
    synchronized boolean begins(Run batch) {
        run = batch;
        return told != null;
    }

    void tell(CancelReason why) {
        Run running;
        synchronized (this) {
            if (told != null) {
                return;
            }
            told = why;
            running = run;
        }
        if (running != null) {
            running.oneWasTold();
        }
    }

    Words about(String command) {
        return new Words(command).add(rawKey).add(rawId);
    }

    @Override
    public String toString() {
        return "job " + id() + " of " + queue() + ", attempt " + attempt;
    }
}

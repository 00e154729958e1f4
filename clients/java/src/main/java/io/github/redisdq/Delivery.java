package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/** A delivery: what the server sent, how long the job is ours, and what its handler was told. */
abstract sealed class Delivery permits Job {
    private static final long LONGEST_LEASE_MS = 1L << 42; // so that System.nanoTime does not overflow
    private static final int RESULTS = 6; // their place in a row; then steps and terms

    final byte[] rawId;
    final byte[] rawKey;
    final byte[] rawToken;
    private String id; // made once it is asked for
    /** By which those that run are told apart; made once. */
    Object name;
    private final byte[] payload;
    private final int attempt;
    final int unknown; // earlier deliveries to workers that did not know the job's kind
    private final Instant deadline;
    private final Instant due;
    private final List<JobResult> results;
    final Object stepsReply;
    final Codec codec;
    final Terms terms;
    /** It is to run with nothing else in hand. */
    boolean mayKill;

    /** How long its lease is, and when it expires, by System.nanoTime, as far as this process knows. */
    volatile long leaseMs;
    volatile long leaseEnd;
    /** The lease that its handler wants, until the server has set it; 0: none. */
    volatile long askedMs;
    /** When it was delivered, and when its handler's timeout is over, by System.nanoTime; 0: no limit. */
    volatile long takenAt;
    volatile long timesOutAt;

    private Envelope envelope;
    private boolean isRead;
    private volatile CancelReason told;
    private volatile Run run;

    /** Reads a row of DQ.BPOP. */
    Delivery(byte[] key, List<Object> row, Codec codec) {
        this.rawKey = key;
        this.rawId = (byte[]) row.get(0);
        this.payload = (byte[]) row.get(1);
        this.rawToken = (byte[]) row.get(2);
        this.attempt = (int) Reply.number(row.get(3));
        this.deadline = Reply.instant(row.get(4));
        this.due = Reply.instant(row.get(5));
        this.results = JobResult.all(row.get(RESULTS), codec);
        this.stepsReply = row.get(RESULTS + 1);
        this.unknown = Math.min(Steps.unknown(Reply.list(stepsReply)), attempt - 1);
        this.terms = Terms.of(Reply.list(row.get(RESULTS + 2)));
        this.codec = codec;
    }

    /** The job's id. Bytes that are not UTF-8 are lone surrogates, U+DC80 to U+DCFF. */
    public String id() {
        if (id == null) {
            id = Bytes.text(rawId);
        }
        return id;
    }

    /** The key that the job came from; of a sharded queue, the shard's key. */
    public String queue() {
        return Bytes.text(rawKey);
    }

    /** The payload that was added, envelope included. */
    public byte[] payload() {
        return payload;
    }

    /** The token of this delivery. */
    public String token() {
        return Bytes.text(rawToken);
    }

    /** How often the job was delivered, this time included. */
    public int attempt() {
        return attempt;
    }

    /** When the lease would have expired as it was at delivery. The worker renews it while the handler runs. */
    public Instant deadline() {
        return deadline;
    }

    /** When the job was due. */
    public Instant due() {
        return due;
    }

    /** The instant of a recurring job's occurrence, which is equal in all attempts. */
    public Instant occurrence() {
        return due;
    }

    /** The kind that the job was added with, or null. */
    public String kind() {
        return envelope() == null ? null : envelope().kind();
    }

    /** The headers that the job was added with. */
    public Map<String, String> headers() {
        return envelope() == null ? Map.of() : envelope().headers();
    }

    /**
     * The job's data, decoded by the queue's codec; never null.
     *
     * @throws PayloadException if it cannot be decoded; if the handler throws it, the job is dead at once
     */
    public <T> T data(Class<T> type) {
        return data((Type) type);
    }

    /** As {@link #data(Class)}, for a type with parameters. */
    public <T> T data(Type type) {
        return Envelope.data(codec, payload, envelope(), type);
    }

    /** How the jobs ended that this job came after, in their order; empty for other jobs. */
    public List<JobResult> results() {
        return results;
    }

    /** Whether another worker may have the job. What the handler then does or throws does not count. */
    public boolean isLost() {
        return told == CancelReason.LOST;
    }

    /**
     * Whether the handler was told to end: the job was lost, the handler's timeout is over, or the worker stops and its
     * drain is over. The handler's thread is interrupted, too.
     */
    public boolean isCancelled() {
        return told != null;
    }

    /** Why the handler was told to end; null: it was not. */
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

    /** Whether its handler may have ended because this job, or another one of its batch, was told something. */
    boolean batchWasTold() {
        Run running = run;
        return told != null || running != null && running.wasTold();
    }

    /** Whether the lease has expired, as far as this process knows: from then on another worker may have the job. */
    boolean isOver(long now) {
        return leaseEnd - now <= 0;
    }

    /** Records that a lease began at {@code since}. */
    void leased(long since, long ms) {
        long end = since + Math.min(ms, LONGEST_LEASE_MS) * 1_000_000;
        boolean isEarlier = ms == leaseMs && end - leaseEnd < 0; // a reply that a later one has overtaken
        leaseEnd = isEarlier ? leaseEnd : end;
        leaseMs = ms;
    }

    /** Records the batch that handles it, which hears of what the job was told already. */
    void begins(Run batch) {
        boolean wasTold;
        synchronized (this) {
            run = batch;
            wasTold = told != null;
        }
        if (wasTold) {
            batch.oneWasTold();
        }
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

    /** The words for several jobs: their number, then each with its token. */
    static Words all(List<? extends Delivery> jobs) {
        Words words = new Words();
        words.add(Words.IDS).add(jobs.size());
        for (Delivery job : jobs) {
            words.add(job.rawId).add(job.rawToken);
        }
        return words;
    }

    @Override
    public String toString() {
        return "job " + id() + " of " + queue() + ", attempt " + attempt;
    }
}

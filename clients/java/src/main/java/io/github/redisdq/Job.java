package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/** One delivery of a job. */
public final class Job {
    final byte[] rawId;
    final byte[] rawKey;
    final byte[] rawToken;
    private final byte[] payload;
    private final int attempt;
    private final Instant deadline;
    private final Instant due;
    private final Codec codec;
    final Link link;
    Handler<?> handler;
    /** What {@link #fail} was given. */
    Throwable failure;

    boolean hasBegun;

    private Envelope envelope;
    private boolean isRead;
    private volatile Told told;
    private Run run;

    /** By a row of DQ.BPOP. */
    Job(byte[] key, List<Object> row, Codec codec, Link link) {
        this.rawKey = key;
        this.rawId = (byte[]) row.get(0);
        this.payload = (byte[]) row.get(1);
        this.rawToken = (byte[]) row.get(2);
        this.attempt = (int) Reply.number(row.get(3));
        this.deadline = Reply.instant(row.get(4));
        this.due = Reply.instant(row.get(5));
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

    /** What was added, as the queue's codec reads it. */
    public <T> T data(Class<T> type) {
        return data((Type) type);
    }

    /** As {@link #data(Class)}, for a type with parameters. */
    public <T> T data(Type type) {
        return envelope() == null ? codec.decode(payload, type) : JsonCodec.DEFAULT.decode(envelope().data(), type);
    }

    /** Another worker may have the job: stop, the end of this handler will not count. */
    public boolean isLost() {
        return told == Told.LOST;
    }

    /** The job was lost, or the worker stops and the handler's time to finish is over; its thread is interrupted, too. */
    public boolean isCancelled() {
        return told != null;
    }

    /** What the handler was told; null: nothing. */
    public Told told() {
        return told;
    }

    /** Throws {@link Say.Cancelled} where cancelled: for long handlers, between two steps. */
    public void check() {
        if (told != null) {
            throw new Say.Cancelled(told);
        }
    }

    /** Sleeps; throws {@link Say.Cancelled} at once when cancelled. */
    public void sleep(Duration duration) throws InterruptedException {
        check();
        try {
            Thread.sleep(duration.toMillis());
        } catch (InterruptedException error) {
            check();
            throw error;
        }
        check();
    }

    /** In a batch: this one job failed (or is retried, snoozed, given up), and the others did not. */
    public void fail(Throwable error) {
        failure = error;
    }

    Envelope envelope() {
        if (!isRead) {
            envelope = Envelope.read(payload);
            isRead = true;
        }
        return envelope;
    }

    void tell(Told why) {
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

    @Override
    public String toString() {
        return "job " + id() + " of " + queue() + ", attempt " + attempt;
    }

    /** A batch and the thread that its handler runs in: interrupted when all its jobs were told, and not after its end. */
    static final class Run {
        private final Thread thread = Thread.currentThread();
        private int left;
        private boolean hasEnded;

        Run(List<Job> batch) {
            left = batch.size();
            for (Job job : batch) {
                boolean already;
                synchronized (job) {
                    job.run = this;
                    already = job.told != null;
                }
                if (already) {
                    oneWasTold();
                }
            }
        }

        synchronized void oneWasTold() {
            if (--left == 0 && !hasEnded) {
                thread.interrupt();
            }
        }

        synchronized void end() {
            hasEnded = true;
            Thread.interrupted(); // of no concern to the next handler
        }
    }
}

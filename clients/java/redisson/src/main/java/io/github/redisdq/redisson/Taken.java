package io.github.redisdq.redisson;

import io.github.redisdq.DqQueue;
import io.github.redisdq.NackOptions;
import io.github.redisdq.Reserved;
import java.time.Duration;
import java.time.Instant;

/** An element that its consumer has still to acknowledge. If it does not, another one gets it when the lease ends. */
public final class Taken<V> {
    private final DqQueue queue;
    private final Reserved job;
    private final V value;

    Taken(DqQueue queue, Reserved job, V value) {
        this.queue = queue;
        this.job = job;
        this.value = value;
    }

    public V value() {
        return value;
    }

    public String id() {
        return job.id();
    }

    /** How often it was delivered, this time included. */
    public int attempt() {
        return job.attempt();
    }

    public Instant due() {
        return job.due();
    }

    /** When the lease ends, unless it is renewed. */
    public Instant deadline() {
        return job.deadline();
    }

    /** It is done. False where the lease ended, and somebody else has it or had it since. */
    public boolean ack() {
        return queue.ack(job.id(), job.token());
    }

    /** It failed, and comes again so much later. False as for {@link #ack}. */
    public boolean retry(Duration delay, String reason) {
        return queue.nack(job.id(), job.token(), NackOptions.fail().delay(delay).reason(reason)) != null;
    }

    /** It cannot succeed: it is dead, kept with the reason, until somebody kicks it. False as for {@link #ack}. */
    public boolean giveUp(String reason) {
        return queue.nack(job.id(), job.token(), NackOptions.fatal().reason(reason)) != null;
    }

    /** A new lease from now. False as for {@link #ack}. */
    public boolean renew(Duration lease) {
        return queue.touch(job.id(), job.token(), lease) != null;
    }
}

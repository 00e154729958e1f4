package io.github.redisdq.redisson;

import io.github.redisdq.DqQueue;
import io.github.redisdq.NackOptions;
import io.github.redisdq.Reserved;
import java.time.Duration;
import java.time.Instant;

/** An element that its consumer must acknowledge. If it does not, another consumer gets it when the lease expires. */
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

    /** How often the element was delivered, this time included. */
    public int attempt() {
        return job.attempt();
    }

    public Instant due() {
        return job.due();
    }

    /** When the lease expires, unless it is renewed. */
    public Instant deadline() {
        return job.deadline();
    }

    /** Marks the element as done. False if the lease has expired, and another consumer has or had the element. */
    public boolean ack() {
        return queue.ack(job.id(), job.token());
    }

    /** Gives the element back as failed; it comes again after {@code delay}. False as for {@link #ack}. */
    public boolean retry(Duration delay, String reason) {
        return queue.nack(job.id(), job.token(), NackOptions.fail().delay(delay).reason(reason)) != null;
    }

    /** Gives the element up: it is dead, kept with the reason, until somebody kicks it. False as for {@link #ack}. */
    public boolean giveUp(String reason) {
        return queue.nack(job.id(), job.token(), NackOptions.fatal().reason(reason)) != null;
    }

    /** Renews the lease: it lasts {@code lease} from now. False as for {@link #ack}. */
    public boolean renew(Duration lease) {
        return queue.touch(job.id(), job.token(), lease) != null;
    }
}

package io.github.redisdq.redisson;

import io.github.redisdq.Internals;
import io.github.redisdq.JobOptions;
import io.github.redisdq.Peeked;
import io.github.redisdq.QueueFullException;
import io.github.redisdq.State;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.redisson.api.RBucket;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RFuture;
import org.redisson.api.RedissonClient;

/**
 * Redisson's delayed queue on dq. The server makes elements ready, whether or not any client has the queue open.
 *
 * <pre>{@code
 * DqBlockingQueue<Order> orders = DqBlockingQueue.of(redisson, "orders"); // redisson.getBlockingQueue("orders")
 * RDelayedQueue<Order> delayed = DqDelayedQueue.of(orders); // redisson.getDelayedQueue(orders)
 * }</pre>
 *
 * Its elements are shown in the order of adding, as Redisson shows them; those with an id of their own come last, by
 * due time.
 */
@SuppressWarnings("deprecation") // of Redisson
public final class DqDelayedQueue<V> extends RedissonElements<V> implements RDelayedQueue<V> {
    private static final String NO_DELAY = "use offer with a delay, or the destination queue";

    private DqDelayedQueue(RedissonClient client, RBucket<V> key) {
        super(client, key, State.DELAYED);
    }

    /** The delayed elements of a queue. */
    public static <V> DqDelayedQueue<V> of(DqBlockingQueue<V> destination) {
        return of(destination.client, destination.getName(), destination.getCodec());
    }

    /** As {@link #of(DqBlockingQueue)}, for a program that only adds. {@code codec}: null for the client's. */
    public static <V> DqDelayedQueue<V> of(RedissonClient client, String name, org.redisson.client.codec.Codec codec) {
        return new DqDelayedQueue<>(client, key(client, name, codec));
    }

    /** @throws QueueFullException if the queue has reached its MAXLEN or MAXBYTES */
    @Override
    public void offer(V element, long delay, TimeUnit unit) {
        if (delay < 0) {
            throw new IllegalArgumentException("a delay must be 0 or more");
        }
        JobOptions options = JobOptions.create().delay(Duration.of(delay, unit.toChronoUnit()));
        queue().add(Objects.requireNonNull(element), options);
    }

    @Override
    public RFuture<Void> offerAsync(V element, long delay, TimeUnit unit) {
        return Later.run(() -> offer(element, delay, unit));
    }

    /** In the order of the ids that the library gave them, which grow with time. */
    @Override
    List<Peeked> jobs() {
        Map<Boolean, List<Peeked>> byOrigin = super.jobs().stream().collect(Collectors.partitioningBy(job -> Internals.isOurs(job.id())));
        Stream<Peeked> ours = byOrigin.get(true).stream().sorted(Comparator.comparing(Peeked::id));
        return Stream.concat(ours, byOrigin.get(false).stream()).toList();
    }

    /** Removes the first elements, even if they are not due, as Redisson does. */
    @Override
    public List<V> poll(int limit) {
        List<V> found = new ArrayList<>();
        for (Peeked job : jobs()) {
            if (found.size() >= limit) {
                break;
            }
            V element = decode(job.payload());
            if (queue().deleteUnreserved(job.id()) == 1) {
                found.add(element);
            }
        }
        return found;
    }

    /** Nothing needs to be destroyed: no client keeps a timer. */
    @Override
    public void destroy() {}

    @Override
    public boolean add(V element) {
        throw unsupported("add", NO_DELAY);
    }

    @Override
    public boolean offer(V element) {
        throw unsupported("offer without a delay", NO_DELAY);
    }

    @Override
    public boolean addAll(Collection<? extends V> elements) {
        throw unsupported("addAll", NO_DELAY);
    }
}

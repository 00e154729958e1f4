package io.github.redisdq.redisson;

import io.github.redisdq.DqQueue;
import io.github.redisdq.Handler;
import io.github.redisdq.Internals;
import io.github.redisdq.JobOptions;
import io.github.redisdq.QueueFullException;
import io.github.redisdq.Reserved;
import io.github.redisdq.State;
import io.github.redisdq.Worker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Function;
import org.redisson.api.Entry;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBucket;
import org.redisson.api.RFuture;
import org.redisson.api.RedissonClient;
import org.redisson.api.queue.QueueMoveElementsArgs;

/**
 * Redisson's blocking queue on dq: the elements that are ready. With {@link DqDelayedQueue#of(DqBlockingQueue)} it
 * replaces a delayed queue and its destination.
 *
 * <p>{@code take} and {@code poll} remove what they return, as Redisson's do. With {@link #takeReserved} the element
 * stays until it is acknowledged, so a consumer that dies loses nothing.
 */
@SuppressWarnings("deprecation") // of Redisson
public final class DqBlockingQueue<V> extends RedissonElements<V> implements RBlockingQueue<V> {
    private static final int AT_A_TIME = 100;

    private final Taking taking;
    private final Map<Integer, Worker> subscribers = new ConcurrentHashMap<>();
    private final AtomicInteger subscriptions = new AtomicInteger();

    private DqBlockingQueue(RedissonClient client, RBucket<V> key) {
        super(client, key, State.READY);
        this.taking = new Taking(queue(), () -> client.isShuttingDown() || client.isShutdown());
    }

    /** A queue with the client's codec. */
    public static <V> DqBlockingQueue<V> of(RedissonClient client, String name) {
        return of(client, name, null);
    }

    /** A queue with a codec; null for the client's. */
    public static <V> DqBlockingQueue<V> of(RedissonClient client, String name, org.redisson.client.codec.Codec codec) {
        return new DqBlockingQueue<>(client, key(client, name, codec));
    }

    // --- Adding

    /** @throws QueueFullException if the queue has reached its MAXLEN or MAXBYTES */
    @Override
    public boolean add(V element) {
        return queue().add(Objects.requireNonNull(element)) != null;
    }

    /** False if the queue is full. */
    @Override
    public boolean offer(V element) {
        try {
            return add(element);
        } catch (QueueFullException error) {
            return false;
        }
    }

    @Override
    public boolean offer(V element, long timeout, TimeUnit unit) {
        return offer(element);
    }

    @Override
    public void put(V element) {
        add(element);
    }

    @Override
    public boolean addAll(Collection<? extends V> elements) {
        List<DqQueue.NewJob> jobs = new ArrayList<>();
        elements.forEach(each -> jobs.add(new DqQueue.NewJob(Objects.requireNonNull(each), JobOptions.create())));
        queue().addMany(jobs);
        return !jobs.isEmpty();
    }

    @Override
    public int remainingCapacity() {
        return Integer.MAX_VALUE;
    }

    // --- Taking

    private List<byte[]> keys(String... others) {
        List<byte[]> keys = new ArrayList<>(Internals.keys(queue()));
        Arrays.stream(others).forEach(name -> keys.add(Internals.key(rawName(client.getBucket(name)))));
        return keys;
    }

    private static Duration duration(long timeout, TimeUnit unit) {
        return Duration.of(timeout, unit.toChronoUnit());
    }

    private List<Reserved> found(List<byte[]> keys, Duration timeout, int count) throws InterruptedException {
        if (timeout != null && (timeout.isZero() || timeout.isNegative())) {
            return Internals.pop(queue(), keys, count, Taking.LEASE);
        }
        return taking.reserve(keys, timeout, count, Taking.LEASE);
    }

    /** Decodes elements before it acknowledges them: what cannot be decoded stays in the queue. */
    private List<V> own(List<Reserved> jobs) {
        Map<Reserved, V> values = new LinkedHashMap<>();
        jobs.forEach(job -> values.put(job, decode(job.payload())));
        return jobs.isEmpty() ? List.of() : taking.own(jobs).stream().map(values::get).toList();
    }

    private V one(Duration timeout, String... others) throws InterruptedException {
        long end = timeout == null ? 0 : System.nanoTime() + timeout.toNanos();
        Duration left = timeout;
        while (true) {
            List<Reserved> found = found(keys(others), left, 1);
            List<V> own = own(found);
            if (!own.isEmpty() || found.isEmpty()) {
                return own.isEmpty() ? null : own.get(0);
            }
            left = timeout == null ? null : Duration.ofNanos(end - System.nanoTime()); // the element was cancelled just now
        }
    }

    @Override
    public V take() throws InterruptedException {
        return one(null);
    }

    @Override
    public V poll(long timeout, TimeUnit unit) throws InterruptedException {
        return one(duration(timeout, unit));
    }

    @Override
    public List<V> poll(int limit) {
        List<V> found = new ArrayList<>();
        drainTo(found, limit);
        return found;
    }

    @Override
    public int drainTo(Collection<? super V> target) {
        return drainTo(target, Integer.MAX_VALUE);
    }

    @Override
    public int drainTo(Collection<? super V> target, int most) {
        int moved = 0;
        while (moved < most) {
            List<Reserved> jobs = Internals.pop(queue(), keys(), Math.min(AT_A_TIME, most - moved), Taking.LEASE);
            if (jobs.isEmpty()) {
                break;
            }
            List<V> own = own(jobs);
            target.addAll(own);
            moved += own.size();
        }
        return moved;
    }

    @Override
    public V pollFromAny(long timeout, TimeUnit unit, String... others) throws InterruptedException {
        return one(duration(timeout, unit), others);
    }

    @Override
    public Entry<String, V> pollFromAnyWithName(Duration timeout, String... others) throws InterruptedException {
        for (Map.Entry<String, List<V>> found : pollFirstFromAny(timeout, 1, others).entrySet()) {
            return new Entry<>(found.getKey(), found.getValue().get(0));
        }
        return null;
    }

    /** From the first of these queues that has ready elements. */
    @Override
    public Map<String, List<V>> pollFirstFromAny(Duration timeout, int count, String... others) throws InterruptedException {
        List<Reserved> jobs = found(keys(others), timeout, count);
        List<V> own = own(jobs);
        return own.isEmpty() ? Map.of() : Map.of(name(jobs.get(0).queue(), others), own);
    }

    private String name(String rawName, String... others) {
        return Arrays.stream(others)
                .filter(each -> rawName(client.getBucket(each)).equals(rawName))
                .findFirst()
                .orElse(getName());
    }

    // --- Taking with an acknowledgement

    /**
     * Waits for an element, which stays in the queue until it is acknowledged; the lease is the one that it was added
     * with.
     */
    public Taken<V> takeReserved() throws InterruptedException {
        return takeReserved(null);
    }

    /** Waits for an element, and reserves it for {@code lease}. */
    public Taken<V> takeReserved(Duration lease) throws InterruptedException {
        return taken(taking.reserve(keys(), null, 1, lease));
    }

    /**
     * As {@link #takeReserved(Duration)}; null if no element is ready in time. {@code lease}: null for the element's
     * own.
     */
    public Taken<V> pollReserved(Duration timeout, Duration lease) throws InterruptedException {
        return taken(taking.reserve(keys(), timeout, 1, lease));
    }

    private Taken<V> taken(List<Reserved> jobs) {
        return jobs.isEmpty() ? null : new Taken<>(queue(), jobs.get(0), decode(jobs.get(0).payload()));
    }

    // --- Subscriptions

    /**
     * Calls the consumer with each element, which is acknowledged when the consumer returns. If it throws, the element
     * comes again by its own backoff, else the server's {@code default-backoff}.
     */
    @Override
    public int subscribeOnElements(Consumer<V> consumer) {
        return subscribe(Handler.of(job -> consumer.accept(decode(job.payload()))));
    }

    /** As {@link #subscribeOnElements(Consumer)}; the element is acknowledged when the stage completes. */
    @Override
    public int subscribeOnElements(Function<V, CompletionStage<Void>> consumer) {
        return subscribe(Handler.of(job -> consumer.apply(decode(job.payload())).toCompletableFuture().get()));
    }

    private int subscribe(Handler<?> handler) {
        Worker worker = Worker.on(queue()).handler(handler).concurrency(1).build();
        int id = subscriptions.incrementAndGet();
        subscribers.put(id, worker);
        worker.start();
        return id;
    }

    @Override
    public void unsubscribe(int subscription) {
        Worker worker = subscribers.remove(subscription);
        if (worker != null) {
            worker.stop();
        }
    }

    // --- What dq has no counterpart of

    @Override
    public Map<String, List<V>> pollLastFromAny(Duration timeout, int count, String... others) {
        throw unsupported("pollLastFromAny", NO_LAST);
    }

    @Override
    public Entry<String, V> pollLastFromAnyWithName(Duration timeout, String... others) {
        throw unsupported("pollLastFromAnyWithName", NO_LAST);
    }

    @Override
    public V pollLastAndOfferFirstTo(String queueName, long timeout, TimeUnit unit) {
        return pollLastAndOfferFirstTo(queueName);
    }

    @Override
    public V takeLastAndOfferFirstTo(String queueName) {
        throw unsupported("takeLastAndOfferFirstTo", NO_LAST);
    }

    @Override
    public List<V> move(Duration timeout, QueueMoveElementsArgs args) {
        return move(args);
    }

    // --- The same, asynchronously. An element that comes when its future was just cancelled is added again.

    private void giveBack(V element) {
        if (element != null) {
            add(element);
        }
    }

    @Override
    public RFuture<Void> putAsync(V element) {
        return Later.run(() -> put(element));
    }

    @Override
    public RFuture<V> takeAsync() {
        return Later.call(this::take, this::giveBack);
    }

    @Override
    public RFuture<V> pollAsync(long timeout, TimeUnit unit) {
        return Later.call(() -> poll(timeout, unit), this::giveBack);
    }

    @Override
    public RFuture<V> pollAsync() {
        return Later.call(() -> poll(), this::giveBack);
    }

    @Override
    public RFuture<List<V>> pollAsync(int limit) {
        return Later.call(() -> poll(limit), this::addAll);
    }

    @Override
    public RFuture<Integer> drainToAsync(Collection<? super V> target) {
        return Later.call(() -> drainTo(target));
    }

    @Override
    public RFuture<Integer> drainToAsync(Collection<? super V> target, int most) {
        return Later.call(() -> drainTo(target, most));
    }

    @Override
    public RFuture<V> pollFromAnyAsync(long timeout, TimeUnit unit, String... others) {
        return Later.call(() -> pollFromAny(timeout, unit, others), this::giveBack);
    }

    @Override
    public RFuture<Entry<String, V>> pollFromAnyWithNameAsync(Duration timeout, String... others) {
        return Later.call(() -> pollFromAnyWithName(timeout, others), found -> {
            if (found != null) {
                giveBack(Map.of(found.getKey(), List.of(found.getValue())));
            }
        });
    }

    @Override
    public RFuture<Map<String, List<V>>> pollFirstFromAnyAsync(Duration timeout, int count, String... others) {
        return Later.call(() -> pollFirstFromAny(timeout, count, others), this::giveBack);
    }

    private void giveBack(Map<String, List<V>> found) {
        found.forEach((name, elements) -> of(client, name, getCodec()).addAll(elements));
    }

    @Override
    public RFuture<Map<String, List<V>>> pollLastFromAnyAsync(Duration timeout, int count, String... others) {
        return Later.call(() -> pollLastFromAny(timeout, count, others));
    }

    @Override
    public RFuture<Entry<String, V>> pollLastFromAnyWithNameAsync(Duration timeout, String... others) {
        return Later.call(() -> pollLastFromAnyWithName(timeout, others));
    }

    @Override
    public RFuture<V> pollLastAndOfferFirstToAsync(String queueName, long timeout, TimeUnit unit) {
        return pollLastAndOfferFirstToAsync(queueName);
    }

    @Override
    public RFuture<V> takeLastAndOfferFirstToAsync(String queueName) {
        return Later.call(() -> takeLastAndOfferFirstTo(queueName));
    }

    @Override
    public RFuture<List<V>> moveAsync(Duration timeout, QueueMoveElementsArgs args) {
        return moveAsync(args);
    }
}

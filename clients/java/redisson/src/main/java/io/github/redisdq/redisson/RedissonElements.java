package io.github.redisdq.redisson;

import io.github.redisdq.DqQueue;
import io.github.redisdq.Internals;
import io.github.redisdq.Peeked;
import io.github.redisdq.State;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.redisson.RedissonObject;
import org.redisson.api.RBucket;
import org.redisson.api.RFuture;
import org.redisson.api.RQueue;
import org.redisson.api.RedissonClient;
import org.redisson.api.queue.QueueMoveElementsArgs;

/**
 * The jobs of a queue in one state, as Redisson's collection of their values. Values are compared by their bytes, as
 * Redisson does; to find some, all are read.
 */
abstract class RedissonElements<V> extends RedissonKey implements RQueue<V> {
    static final String NO_LAST = "a queue's order is that of priorities and due times, and is served from its head";
    private static final int AT_A_TIME = 1000;

    final RedissonClient client;
    private final org.redisson.client.codec.Codec codec;
    private final DqQueue queue;
    private final State state;

    RedissonElements(RedissonClient client, RBucket<V> key, State state) {
        super(key);
        this.client = client;
        this.codec = key.getCodec();
        this.state = state;
        this.queue = DqQueue.on(RedissonConnector.sharedBy(client), rawName(key)).withCodec(new RedissonPayload(codec));
    }

    static <V> RBucket<V> key(RedissonClient client, String name, org.redisson.client.codec.Codec codec) {
        return codec == null ? client.getBucket(name) : client.getBucket(name, codec);
    }

    /** The name with the prefix that the client's settings put before names. */
    static String rawName(RBucket<?> key) {
        return key instanceof RedissonObject object ? object.getRawName() : key.getName();
    }

    /**
     * The queue itself, with all that dq has and the same codec: ids, cancelling, priorities, recurring jobs, workers.
     */
    public final DqQueue queue() {
        return queue;
    }

    final byte[] encode(Object value) {
        return Internals.codec(queue).encode(Objects.requireNonNull(value, "an element is not null"));
    }

    final V decode(byte[] payload) {
        return Internals.codec(queue).decode(payload, Object.class);
    }

    static UnsupportedOperationException unsupported(String method, String reason) {
        return new UnsupportedOperationException(method + " is not supported by dq: " + reason);
    }

    // --- Reading

    /** The jobs, in the order in which Redisson would show them. */
    List<Peeked> jobs() {
        return queue.peek(state, Math.max(1, queue.len(state)));
    }

    /** A value, compared by its bytes. */
    private record Value(byte[] bytes) {
        @Override
        public boolean equals(Object other) {
            return other instanceof Value value && Arrays.equals(bytes, value.bytes);
        }

        @Override
        public int hashCode() {
            return Arrays.hashCode(bytes);
        }
    }

    private Set<Value> values(Collection<?> elements) {
        Set<Value> values = new HashSet<>();
        elements.forEach(each -> values.add(new Value(encode(each))));
        return values;
    }

    @Override
    public List<V> readAll() {
        List<V> found = new ArrayList<>();
        jobs().forEach(job -> found.add(decode(job.payload())));
        return found;
    }

    @Override
    public int size() {
        return queue.len(state);
    }

    @Override
    public boolean isEmpty() {
        return size() == 0;
    }

    @Override
    public boolean isExists() {
        return !isEmpty();
    }

    @Override
    public boolean contains(Object element) {
        return indexOfBytes(encode(element)) >= 0;
    }

    @Override
    public boolean containsAll(Collection<?> elements) {
        Set<Value> missing = values(elements);
        jobs().forEach(job -> missing.remove(new Value(job.payload())));
        return missing.isEmpty();
    }

    @Override
    public int indexOf(V element) {
        return indexOfBytes(encode(element));
    }

    private int indexOfBytes(byte[] value) {
        List<Peeked> jobs = jobs();
        for (int at = 0; at < jobs.size(); at++) {
            if (Arrays.equals(jobs.get(at).payload(), value)) {
                return at;
            }
        }
        return -1;
    }

    @Override
    public V peek() {
        List<Peeked> jobs = jobs();
        return jobs.isEmpty() ? null : decode(jobs.get(0).payload());
    }

    @Override
    public V element() {
        return there(peek());
    }

    private static <T> T there(T element) {
        if (element == null) {
            throw new NoSuchElementException("the queue is empty");
        }
        return element;
    }

    @Override
    public Object[] toArray() {
        return readAll().toArray();
    }

    @Override
    public <T> T[] toArray(T[] array) {
        return readAll().toArray(array);
    }

    /** Iterates over the elements that exist now. */
    @Override
    public Iterator<V> iterator() {
        Iterator<Peeked> jobs = jobs().iterator();
        return new Iterator<>() {
            private Peeked last;

            @Override
            public boolean hasNext() {
                return jobs.hasNext();
            }

            @Override
            public V next() {
                last = jobs.next();
                return decode(last.payload());
            }

            @Override
            public void remove() {
                if (last == null) {
                    throw new IllegalStateException("call next before remove");
                }
                queue.deleteUnreserved(last.id());
                last = null;
            }
        };
    }

    // --- Removing: never an element that a consumer has reserved meanwhile

    @Override
    public V poll() {
        List<V> found = poll(1);
        return found.isEmpty() ? null : found.get(0);
    }

    @Override
    public V remove() {
        return there(poll());
    }

    @Override
    public boolean remove(Object element) {
        byte[] value = encode(element);
        return jobs().stream()
                .filter(job -> Arrays.equals(job.payload(), value))
                .anyMatch(job -> queue.deleteUnreserved(job.id()) == 1);
    }

    @Override
    public boolean removeAll(Collection<?> elements) {
        Set<Value> values = values(elements);
        return removeWhere(values::contains);
    }

    @Override
    public boolean retainAll(Collection<?> elements) {
        Set<Value> values = values(elements);
        return removeWhere(value -> !values.contains(value));
    }

    private boolean removeWhere(Predicate<Value> isChosen) {
        List<String> ids = jobs().stream().filter(job -> isChosen.test(new Value(job.payload()))).map(Peeked::id).toList();
        int removed = 0;
        for (int at = 0; at < ids.size(); at += AT_A_TIME) {
            removed += queue.deleteUnreserved(ids.subList(at, Math.min(ids.size(), at + AT_A_TIME)).toArray(String[]::new));
        }
        return removed > 0;
    }

    @Override
    public void clear() {
        queue.purge(state);
    }

    /** Deletes these elements; the queue's other jobs, and its settings, stay. */
    @Override
    public boolean delete() {
        return queue.purge(state) > 0;
    }

    @Override
    public boolean unlink() {
        return delete();
    }

    // --- What dq has no counterpart of

    @Override
    public V pollLastAndOfferFirstTo(String queueName) {
        throw unsupported("pollLastAndOfferFirstTo", NO_LAST);
    }

    @Override
    public List<V> move(QueueMoveElementsArgs args) {
        throw unsupported("move", "elements belong to one queue; a consumer may add them to another one");
    }

    // --- The same, asynchronously

    @Override
    public org.redisson.client.codec.Codec getCodec() {
        return codec;
    }

    @Override
    public RFuture<List<V>> readAllAsync() {
        return Later.call(this::readAll);
    }

    @Override
    public RFuture<Integer> sizeAsync() {
        return Later.call(this::size);
    }

    @Override
    public RFuture<Boolean> isExistsAsync() {
        return Later.call(this::isExists);
    }

    @Override
    public RFuture<Boolean> containsAsync(Object element) {
        return Later.call(() -> contains(element));
    }

    @Override
    public RFuture<Boolean> containsAllAsync(Collection<?> elements) {
        return Later.call(() -> containsAll(elements));
    }

    @Override
    public RFuture<Integer> indexOfAsync(V element) {
        return Later.call(() -> indexOf(element));
    }

    @Override
    public RFuture<V> peekAsync() {
        return Later.call(this::peek);
    }

    @Override
    public RFuture<V> pollAsync() {
        return Later.call(this::poll);
    }

    @Override
    public RFuture<List<V>> pollAsync(int limit) {
        return Later.call(() -> poll(limit));
    }

    @Override
    public RFuture<Boolean> removeAsync(Object element) {
        return Later.call(() -> remove(element));
    }

    @Override
    public RFuture<Boolean> removeAllAsync(Collection<?> elements) {
        return Later.call(() -> removeAll(elements));
    }

    @Override
    public RFuture<Boolean> retainAllAsync(Collection<?> elements) {
        return Later.call(() -> retainAll(elements));
    }

    @Override
    public RFuture<Boolean> deleteAsync() {
        return Later.call(this::delete);
    }

    @Override
    public RFuture<Boolean> unlinkAsync() {
        return Later.call(this::unlink);
    }

    @Override
    public RFuture<Boolean> addAsync(V element) {
        return Later.call(() -> add(element));
    }

    @Override
    public RFuture<Boolean> offerAsync(V element) {
        return Later.call(() -> offer(element));
    }

    @Override
    public RFuture<Boolean> addAllAsync(Collection<? extends V> elements) {
        return Later.call(() -> addAll(elements));
    }

    @Override
    public RFuture<V> pollLastAndOfferFirstToAsync(String queueName) {
        return Later.call(() -> pollLastAndOfferFirstTo(queueName));
    }

    @Override
    public RFuture<List<V>> moveAsync(QueueMoveElementsArgs args) {
        return Later.call(() -> move(args));
    }

    @Override
    public String toString() {
        return queue.toString();
    }
}

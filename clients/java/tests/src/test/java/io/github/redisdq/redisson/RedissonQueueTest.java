package io.github.redisdq.redisson;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.DqQueue;
import io.github.redisdq.JobOptions;
import io.github.redisdq.QueueFullException;
import io.github.redisdq.Settings;
import io.github.redisdq.State;
import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** What Redisson's own tests expect of its delayed queue, with a clock that is moved instead of waiting. */
@SuppressWarnings("deprecation")
@ExtendWith(DqExtension.class)
class RedissonQueueTest {
    private static final Duration SECOND = Duration.ofSeconds(1);

    private RedissonClient redisson;
    private RBlockingQueue<Object> ready;
    private RDelayedQueue<Object> delayed;

    @BeforeEach
    void open(DqServer server) {
        redisson = client(server);
        DqBlockingQueue<Object> destination = DqBlockingQueue.of(redisson, "orders");
        ready = destination;
        delayed = DqDelayedQueue.of(destination);
    }

    static RedissonClient client(DqServer server) {
        Config config = new Config();
        config.useSingleServer().setAddress(server.url()).setConnectionMinimumIdleSize(1).setConnectionPoolSize(4);
        return Redisson.create(config);
    }

    @AfterEach
    void close() {
        redisson.shutdown(0, 5, TimeUnit.SECONDS);
    }

    private void offerThreeFirstDueLast() {
        delayed.offer(3, 5, TimeUnit.SECONDS);
        delayed.offer(1, 2, TimeUnit.SECONDS);
        delayed.offer(2, 1, TimeUnit.SECONDS);
    }

    @Test
    void elementsBecomeReadyOneByOne(Clock clock) {
        delayed.offer("a", 1, TimeUnit.SECONDS);
        delayed.offer("b", 5, TimeUnit.SECONDS);
        delayed.offer("d", 4, TimeUnit.SECONDS);
        delayed.offer("b", 2, TimeUnit.SECONDS);
        delayed.offer("c", 3, TimeUnit.SECONDS);
        assertEquals(List.of("a", "b", "d", "b", "c"), new ArrayList<>(delayed));
        clock.advance(SECOND.minusMillis(1));
        assertTrue(ready.isEmpty());
        List<List<Object>> waiting = List.of(
                List.of("b", "d", "b", "c"), List.of("b", "d", "c"), List.of("b", "d"), List.of("b"), List.of());
        List<Object> due = List.of("a", "b", "c", "d", "b");
        clock.advance(Duration.ofMillis(1));
        for (int at = 0; at < due.size(); at++) {
            assertEquals(due.subList(0, at + 1), new ArrayList<>(ready));
            assertEquals(waiting.get(at), delayed.readAll());
            assertEquals(List.of(at + 1, 4 - at), List.of(ready.size(), delayed.size()));
            clock.advance(SECOND);
        }
        for (Object each : due) {
            assertEquals(each, ready.poll());
        }
        assertNull(ready.poll());
        delayed.destroy();
    }

    @Test
    void whatIsRemovedNeverComes(Clock clock) {
        delayed.offer("a", 3, TimeUnit.SECONDS);
        delayed.offer("b", 7, TimeUnit.SECONDS);
        assertTrue(delayed.contains("a"));
        assertTrue(delayed.remove("a"));
        assertFalse(delayed.contains("a"));
        assertFalse(delayed.remove("a"));
        clock.advance(Duration.ofSeconds(9));
        assertEquals(List.of("b"), ready.readAll());
        assertFalse(ready.contains("a"));
    }

    @Test
    void removingManyAndKeepingSome(Clock clock) {
        offerThreeFirstDueLast();
        assertFalse(delayed.retainAll(List.of(3, 1, 2, 8)));
        assertEquals(List.of(3, 1, 2), delayed.readAll());
        assertTrue(delayed.retainAll(List.of(1, 2)));
        assertEquals(List.of(1, 2), delayed.readAll());
        delayed.offer(3, 5, TimeUnit.SECONDS);
        assertFalse(delayed.removeAll(List.of(7)));
        assertTrue(delayed.removeAll(List.of(1, 2)));
        assertEquals(List.of(3), delayed.readAll());
        assertTrue(delayed.removeAll(List.of(3, 4)));
        assertTrue(delayed.isEmpty());
        clock.advance(Duration.ofSeconds(9));
        assertTrue(ready.isEmpty());
    }

    @Test
    void lookingChangesNothing() {
        offerThreeFirstDueLast();
        assertTrue(delayed.contains(1));
        assertFalse(delayed.contains(4));
        assertTrue(delayed.containsAll(List.of(1, 2, 1)));
        assertFalse(delayed.containsAll(List.of(1, 2, 4)));
        assertEquals(3, delayed.peek());
        assertEquals(3, delayed.element());
        assertEquals(2, delayed.indexOf(2));
        assertArrayEquals(new Object[] {3, 1, 2}, delayed.toArray());
        assertArrayEquals(new Integer[] {3, 1, 2}, delayed.toArray(new Integer[0]));
        assertEquals(3, delayed.size());
        assertThrows(NoSuchElementException.class, ready::element);
    }

    @Test
    void theFirstOnesCanBeTakenThoughTheyAreNotDue(Clock clock) {
        offerThreeFirstDueLast();
        delayed.offer(4, 9, TimeUnit.SECONDS);
        assertEquals(3, delayed.poll());
        assertEquals(List.of(1, 2), delayed.poll(2));
        assertEquals(4, delayed.remove());
        assertEquals(List.of(), delayed.poll(2));
        assertNull(delayed.poll());
        assertThrows(NoSuchElementException.class, delayed::remove);
        clock.advance(Duration.ofSeconds(9));
        assertNull(ready.poll());
    }

    @Test
    void anIteratorRemoves() {
        offerThreeFirstDueLast();
        for (Iterator<Object> each = delayed.iterator(); each.hasNext(); ) {
            if (each.next().equals(1)) {
                each.remove();
                assertThrows(IllegalStateException.class, each::remove);
            }
        }
        assertEquals(List.of(3, 2), delayed.readAll());
        assertTrue(delayed.delete());
        assertFalse(delayed.delete());
        assertFalse(delayed.isExists());
    }

    @Test
    void whatIsDelayedAndWhatIsReadyAreEachTheirOwn(Clock clock) throws InterruptedException {
        offerThreeFirstDueLast();
        ready.add(0);
        delayed.clear();
        assertEquals(List.of(0), ready.readAll());
        offerThreeFirstDueLast();
        ready.clear();
        clock.advance(Duration.ofSeconds(5));
        List<Object> found = new ArrayList<>();
        assertEquals(2, ready.drainTo(found, 2));
        assertEquals(1, ready.drainTo(found));
        assertEquals(List.of(2, 1, 3), found);
    }

    @Test
    void theSameAsynchronously() throws Exception {
        delayed.offerAsync(3, 5, TimeUnit.SECONDS).get();
        delayed.offerAsync(1, 2, TimeUnit.SECONDS).get();
        assertEquals(List.of(3, 1), delayed.readAllAsync().get());
        assertEquals(List.of(2, true), List.of(delayed.sizeAsync().get(), delayed.containsAsync(1).get()));
        assertTrue(delayed.removeAsync(3).get());
        assertEquals(1, delayed.pollAsync().get());
        ready.putAsync(7).get();
        assertEquals(7, ready.takeAsync().get());
    }

    record Order(int number, List<String> items) implements Serializable {}

    @Test
    void thePayloadIsWhatRedissonsCodecMakesOfIt() {
        Order order = new Order(17, new ArrayList<>(List.of("tea")));
        redisson.<Object>getQueue("list").add(order);
        ready.add(order);
        byte[] written = redisson.<byte[]>getQueue("list", ByteArrayCodec.INSTANCE).peek();
        assertArrayEquals(written, DqBlockingQueue.of(redisson, "orders").queue().peek(State.READY, 1).get(0).payload());
        assertEquals(order, ready.poll());
        DqBlockingQueue<String> texts = DqBlockingQueue.of(redisson, "texts", StringCodec.INSTANCE);
        texts.add("é");
        assertArrayEquals("é".getBytes(StandardCharsets.UTF_8), texts.queue().peek(State.READY, 1).get(0).payload());
        assertEquals("é", texts.poll());
    }

    @Test
    void anElementMayHaveAnId(Clock clock) {
        DqQueue queue = DqDelayedQueue.of(redisson, "orders", null).queue();
        queue.add(17, JobOptions.withId("close:17").delay(SECOND));
        queue.add(18, JobOptions.withId("close:18").delay(SECOND));
        assertEquals(1, queue.deleteUnreserved("close:17"));
        clock.advance(SECOND);
        assertEquals(List.of(18), ready.readAll());
    }

    /** Of a key, whatever its type. */
    @Test
    void theKeyIsRedissonsToo() {
        offerThreeFirstDueLast();
        assertTrue(ready.copy("copy"));
        ready.rename("renamed");
        assertEquals(0, delayed.size());
        assertEquals(3, DqDelayedQueue.of(redisson, "copy", null).size());
        RDelayedQueue<Object> renamed = DqDelayedQueue.of(redisson, "renamed", null);
        assertTrue(renamed.expire(Duration.ofHours(1)));
        assertTrue(renamed.remainTimeToLive() > 0);
        assertEquals(List.of(3, 1, 2), renamed.readAll());
    }

    @Test
    void aFullQueueSaysSo() {
        DqBlockingQueue.of(redisson, "orders").queue().configure(new Settings().maxLen(1));
        assertTrue(ready.offer(1));
        assertFalse(ready.offer(2));
        assertThrows(QueueFullException.class, () -> delayed.offer(2, 1, TimeUnit.SECONDS));
    }

    @Test
    void whatThereIsNotIsSaidAndListed() throws IOException {
        assertThrows(UnsupportedOperationException.class, () -> delayed.offer(1));
        assertThrows(UnsupportedOperationException.class, () -> delayed.add(1));
        assertThrows(UnsupportedOperationException.class, () -> delayed.addAll(List.of(1)));
        assertThrows(UnsupportedOperationException.class, () -> delayed.pollLastAndOfferFirstTo("other"));
        assertThrows(UnsupportedOperationException.class, () -> ready.takeLastAndOfferFirstTo("other"));
        assertThrows(NullPointerException.class, () -> ready.add(null));
        Set<String> refused = new TreeSet<>();
        for (String name : List.of("RedissonElements", "DqDelayedQueue", "DqBlockingQueue")) {
            String source = Files.readString(Path.of("../redisson/src/main/java/io/github/redisdq/redisson/" + name + ".java"));
            Pattern.compile("unsupported\\(\"(\\w+)").matcher(source).results().forEach(each -> refused.add(each.group(1)));
        }
        assertTrue(refused.size() > 5, refused.toString());
        String readme = Files.readString(Path.of("../README.md"));
        assertEquals(List.of(), refused.stream().filter(each -> !readme.contains("`" + each + "`")).toList());
    }
}

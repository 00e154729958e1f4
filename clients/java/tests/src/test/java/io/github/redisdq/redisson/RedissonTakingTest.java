package io.github.redisdq.redisson;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.Connector;
import io.github.redisdq.DqException;
import io.github.redisdq.DqQueue;
import io.github.redisdq.Internals;
import io.github.redisdq.PayloadException;
import io.github.redisdq.Reserved;
import io.github.redisdq.State;
import io.github.redisdq.Stats;
import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.redisson.api.RFuture;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.IntegerCodec;
import org.redisson.client.codec.StringCodec;

/** An element that a consumer takes is its own, and none is lost. */
@Timeout(120)
@ExtendWith(DqExtension.class)
class RedissonTakingTest {
    private static final Duration LEASE = Duration.ofSeconds(30);

    private RedissonClient redisson;
    private DqBlockingQueue<String> ready;
    private DqDelayedQueue<String> delayed;
    private DqQueue queue;

    @BeforeEach
    void open(DqServer server) {
        redisson = RedissonQueueTest.client(server);
        ready = DqBlockingQueue.of(redisson, "orders", StringCodec.INSTANCE);
        delayed = DqDelayedQueue.of(ready);
        queue = ready.queue();
    }

    @AfterEach
    void close() {
        redisson.shutdown(0, 5, TimeUnit.SECONDS);
    }

    private static <T> CompletableFuture<T> inAThread(Callable<T> call) {
        CompletableFuture<T> result = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                result.complete(call.call());
            } catch (Throwable error) {
                result.completeExceptionally(error);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return result;
    }

    private static void until(Callable<Boolean> isSo) throws Exception {
        long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        while (!isSo.call()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError("waited in vain");
            }
            Thread.sleep(5);
        }
    }

    private void untilSomeoneWaits() throws Exception {
        until(() -> {
            Stats stats = queue.stats();
            return stats != null && stats.waitingClients() > 0;
        });
    }

    @Test
    void whoWaitsGetsItWhenItIsDue(Clock clock) throws Exception {
        delayed.offer("a", 30, TimeUnit.DAYS);
        CompletableFuture<String> taken = inAThread(ready::take);
        untilSomeoneWaits();
        clock.advance(Duration.ofDays(30).minusMillis(1));
        assertFalse(taken.isDone());
        clock.advance(Duration.ofMillis(1));
        assertEquals("a", taken.get());
        assertEquals(0, queue.len());
    }

    @Test
    void aWaitEndsInTimeOrByAnInterrupt() throws Exception {
        assertNull(ready.poll(1, TimeUnit.MILLISECONDS));
        assertNull(ready.poll(0, TimeUnit.MILLISECONDS));
        assertNull(ready.pollReserved(Duration.ofMillis(1), null));
        BlockingQueue<Throwable> ended = new LinkedBlockingQueue<>();
        Thread waiting = new Thread(() -> ended.add(assertThrows(InterruptedException.class, ready::take)));
        delayed.offer("keeps the queue there", 1, TimeUnit.DAYS);
        waiting.start();
        untilSomeoneWaits();
        waiting.interrupt();
        assertTrue(ended.take() instanceof InterruptedException);
        until(() -> queue.stats().waitingClients() == 0);
        ready.add("b");
        assertEquals("b", ready.take());
    }

    private Object ask(String... words) {
        byte[][] call = Stream.of(words).map(Internals::key).toArray(byte[][]::new);
        return RedissonConnector.sharedBy(redisson).call(List.<byte[][]>of(call), null).get(0);
    }

    private String clients() {
        return new String((byte[]) ask("CLIENT", "LIST"), StandardCharsets.UTF_8);
    }

    /** A wait goes on over lost connections, as Redisson's does. */
    @Test
    void aWaitOutlivesItsConnection() throws Exception {
        delayed.offer("keeps the queue there", 1, TimeUnit.DAYS);
        CompletableFuture<String> taken = inAThread(ready::take);
        for (int times = 0; times < 3; times++) {
            untilSomeoneWaits();
            String clients = clients();
            String waiting = clients.lines().filter(each -> each.contains("cmd=dq.bpop")).findFirst().orElseThrow();
            String id = waiting.substring("id=".length(), waiting.indexOf(' '));
            assertEquals(1L, ask("CLIENT", "KILL", "ID", id));
            until(() -> !clients().contains("id=" + id + " "));
        }
        ready.add("a");
        assertEquals("a", taken.get());
    }

    @Test
    void whatIsReservedComesAgainUnlessItIsAcknowledged(Clock clock) throws Exception {
        ready.add("a");
        Taken<String> first = ready.takeReserved(LEASE);
        assertEquals(List.of("a", 1), List.of(first.value(), first.attempt()));
        assertTrue(ready.isEmpty());
        clock.advance(LEASE); // as if its consumer had died
        Taken<String> second = ready.takeReserved();
        assertEquals(List.of("a", 2), List.of(second.value(), second.attempt()));
        assertFalse(first.ack());
        assertFalse(first.renew(LEASE));
        assertTrue(second.renew(LEASE));
        assertTrue(second.retry(Duration.ofMinutes(1), "the shop is closed"));
        assertEquals(List.of("a"), delayed.readAll());
        clock.advance(Duration.ofMinutes(1));
        assertTrue(ready.takeReserved().giveUp("no such order"));
        assertEquals(1, queue.kickOldest(1));
        assertTrue(ready.takeReserved().ack());
        assertEquals(0, queue.len());
    }

    @Test
    void whatCannotBeReadStays(Clock clock) {
        ready.add("no number");
        DqBlockingQueue<Integer> numbers = DqBlockingQueue.of(redisson, "orders", IntegerCodec.INSTANCE);
        assertThrows(PayloadException.class, numbers::poll);
        clock.advance(LEASE);
        assertEquals("no number", ready.poll());
    }

    @Test
    void theFirstOfSeveralQueues() throws Exception {
        DqBlockingQueue<String> other = DqBlockingQueue.of(redisson, "other", StringCodec.INSTANCE);
        other.addAll(List.of("b", "c"));
        assertEquals("b", ready.pollFromAny(1, TimeUnit.SECONDS, "other"));
        ready.add("a");
        assertEquals("orders", ready.pollFromAnyWithName(Duration.ofSeconds(1), "other").getKey());
        assertEquals(Map.of("other", List.of("c")), ready.pollFirstFromAny(Duration.ofSeconds(1), 5, "other"));
        assertEquals(Map.of(), ready.pollFirstFromAny(Duration.ZERO, 5, "other"));
        assertNull(ready.pollFromAnyWithName(Duration.ZERO, "other"));
    }

    @Test
    void aCancelledFutureLosesNothing(Clock clock) throws Exception {
        for (int round = 0; round < 20; round++) {
            RFuture<String> taken = ready.takeAsync();
            ready.add("a");
            if (taken.cancel(true)) {
                until(() -> {
                    clock.advance(LEASE); // in case the element was reserved
                    return "a".equals(ready.poll(20, TimeUnit.MILLISECONDS));
                });
            } else {
                assertEquals("a", taken.get());
            }
        }
    }

    @Test
    void aSubscriberAcknowledgesWhenItReturns(Clock clock) throws Exception {
        List<String> seen = new ArrayList<>();
        CompletableFuture<Void> done = new CompletableFuture<>();
        int subscription = ready.subscribeOnElements(element -> {
            seen.add(element);
            if (seen.size() == 1) {
                throw new IllegalStateException("not yet");
            }
            done.complete(null);
        });
        ready.add("a");
        until(() -> delayed.size() == 1); // to be tried again
        clock.advance(Duration.ofSeconds(2));
        done.get();
        until(() -> queue.len() == 0);
        ready.unsubscribe(subscription);
        until(() -> queue.stats() == null); // empty, and nobody waits
        assertEquals(List.of("a", "a"), seen);
    }

    /** Loses the replies to a command that the server has executed. */
    private static final class Deaf implements Connector {
        private final Connector inner;
        private final String command;
        private boolean isOver;

        Deaf(Connector inner, String command) {
            this.inner = inner;
            this.command = command;
        }

        @Override
        public List<Object> call(List<byte[][]> commands, Duration patience) {
            List<Object> replies = inner.call(commands, patience);
            if (!isOver && Arrays.equals(commands.get(0)[0], Internals.key(command))) {
                isOver = true;
                throw new DqException("the connection was lost");
            }
            return replies;
        }

        @Override
        public Line connect(byte[] key, Duration patience) {
            return inner.connect(key, patience);
        }

        @Override
        public Object place(byte[] key) {
            return inner.place(key);
        }

        @Override
        public void close() {}
    }

    @Test
    void anAcknowledgementWhoseAnswerWasLostCounts() {
        queue.add("a");
        queue.add("b");
        Taking deaf = new Taking(DqQueue.on(new Deaf(RedissonConnector.sharedBy(redisson), "DQ.ACK"), "orders"), () -> false);
        List<Reserved> jobs = queue.pop(2, LEASE);
        assertEquals(jobs, deaf.own(jobs));
        assertEquals(0, queue.len());
        assertEquals(List.of(), deaf.own(jobs)); // a second acknowledgement finds nothing
    }

    @Test
    void aDeliveryThatWasLostComesAgain(Clock clock) throws Exception {
        queue.add("a");
        Taking deaf = new Taking(DqQueue.on(new Deaf(RedissonConnector.sharedBy(redisson), "DQ.BPOP"), "orders"), () -> false);
        CompletableFuture<List<Reserved>> found = inAThread(() -> deaf.reserve(Internals.keys(queue), null, 1, LEASE));
        until(() -> queue.len(State.RESERVED) == 1);
        until(() -> queue.stats().waitingClients() == 1);
        clock.advance(LEASE);
        assertEquals(2, found.get().get(0).attempt());
    }
}

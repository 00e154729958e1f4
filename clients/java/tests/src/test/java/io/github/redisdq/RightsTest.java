package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.redisson.RedissonConnector;
import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The rights of docs/operations.md, as they are printed there, are enough, and none is too many. */
@ExtendWith(DqExtension.class)
@Timeout(40)
class RightsTest {
    private static final String PASSWORD = "secret";

    private final List<Runnable> closing = new ArrayList<>();

    @AfterEach
    void close() {
        closing.forEach(Runnable::run);
    }

    private static List<String> printed(String user) throws IOException {
        String line = Files.readAllLines(Path.of("../../../docs/operations.md")).stream()
                .map(String::trim)
                .filter(each -> each.startsWith("user " + user + " "))
                .findFirst()
                .orElseThrow();
        return List.of(line.substring("user ".length()).replace("CHANGE-ME", PASSWORD).split(" "));
    }

    private static void allow(DqServer server, List<String> rules) {
        try (JedisConnector admin = JedisConnector.of(URI.create(server.url()))) {
            Words words = new Words("ACL").add("SETUSER");
            words.add(rules.get(0)).add("reset");
            rules.subList(1, rules.size()).forEach(words::add);
            Object reply = admin.call(List.<byte[][]>of(words.all()), null).get(0);
            assertFalse(reply instanceof RefusedException, String.valueOf(reply));
        }
    }

    private Connector connector(String client, DqServer server, String user) {
        URI uri = URI.create(server.url().replace("//", "//" + user + ":" + PASSWORD + "@"));
        switch (client) {
            case "lettuce" -> {
                RedisClient lettuce = RedisClient.create();
                closing.add(lettuce::shutdown);
                return LettuceConnector.of(lettuce, RedisURI.create(uri));
            }
            case "redisson" -> {
                Config config = new Config();
                config.setUsername(user).setPassword(PASSWORD);
                config.useSingleServer().setAddress(server.url()).setConnectionMinimumIdleSize(1);
                RedissonClient redisson = Redisson.create(config);
                closing.add(redisson::shutdown);
                return RedissonConnector.of(redisson);
            }
            default -> {
                return JedisConnector.of(uri);
            }
        }
    }

    private static void produce(DqQueue queue) {
        assertEquals("a", queue.add("a", JobOptions.withId("a").delay(Duration.ofHours(1))));
        queue.addMany(List.of(new DqQueue.NewJob(1, JobOptions.create()), new DqQueue.NewJob("throw", JobOptions.withId("bad"))));
        queue.every(Duration.ofHours(1), 1, JobOptions.withId("each hour"));
        assertEquals(1, queue.reschedule(Duration.ofHours(2), "a"));
        assertEquals(State.DELAYED, queue.get("a").state());
        assertEquals(1, queue.deleteUnreserved("a"));
        List<String> chain = queue.chain(List.of(new DqQueue.NewJob(1, JobOptions.create().keep(Duration.ofHours(1))), new DqQueue.NewJob(2)));
        assertEquals(State.BLOCKED, queue.get(chain.get(1)).state());
        assertEquals(true, queue.signal(chain.get(1), "go"));
        assertThrows(TimedOutException.class, () -> queue.wait(chain.get(1), Integer.class, Duration.ofMillis(50)));
        assertTrue(queue.len() > 0);
    }

    private static void work(DqQueue queue) throws InterruptedException {
        CountDownLatch begun = new CountDownLatch(2);
        CountDownLatch mayEnd = new CountDownLatch(1);
        Worker worker = Worker.on(queue)
                .handler(Handler.of(job -> {
                    begun.countDown();
                    job.pause(Duration.ofMillis(700)); // some heartbeats
                    if (job.data(Object.class).equals("throw")) {
                        throw new SnoozeException(Duration.ofHours(1));
                    }
                    job.step("one", Integer.class, () -> 1);
                    if (job.steps().containsKey("go")) {
                        job.sleep("nap", Duration.ZERO);
                        job.spawn(new DqQueue.NewJob(3));
                    }
                    mayEnd.await();
                }).lease(Duration.ofMillis(900)))
                .drain(Duration.ofMillis(100))
                .build();
        worker.check();
        worker.start();
        begun.await();
        mayEnd.countDown();
        while (queue.len() > 2) { // the one that comes again each hour, and the snoozed one
            Thread.sleep(5);
        }
        worker.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"jedis", "lettuce", "redisson"})
    void whatIsPrintedIsEnough(String client, DqServer server, Clock clock) throws Exception {
        allow(server, printed("library-producer"));
        allow(server, printed("library-worker"));
        try (Connector producer = connector(client, server, "library-producer");
                Connector worker = connector(client, server, "library-worker")) {
            produce(DqQueue.on(producer, "orders"));
            work(DqQueue.on(worker, "orders"));
        }
    }

    /** Connections that wait are closed instead. */
    @ParameterizedTest
    @ValueSource(strings = {"+client|id", "+dq.unblock"})
    void withoutTheRightToEndWaitsAllGoesOn(String right, DqServer server) throws Exception {
        List<String> producing = new ArrayList<>(printed("library-producer"));
        List<String> working = new ArrayList<>(printed("library-worker"));
        assertTrue(producing.remove(right) && working.remove(right), right);
        allow(server, producing);
        allow(server, working);
        CountDownLatch told = new CountDownLatch(3);
        try (DqQueue producer = DqQueue.on(connector("jedis", server, "library-producer"), "orders");
                DqQueue queue = DqQueue.on(connector("jedis", server, "library-worker"), "orders")) {
            Worker worker = Worker.on(queue).handler(Handler.of(job -> {
                try {
                    job.pause(Duration.ofHours(1));
                } finally {
                    told.countDown();
                }
            }).lease(Duration.ofHours(1))).build();
            worker.start();
            List<CompletableFuture<JobResult>> ends = new ArrayList<>();
            for (String id : List.of("a", "b", "c")) {
                producer.add(1, JobOptions.withId(id));
                while (producer.get(id).state() != State.RESERVED) {
                    Thread.sleep(5);
                }
                ends.add(producer.end(id));
            }
            for (String id : List.of("c", "b", "a")) {
                assertEquals(1, producer.delete(id));
            }
            for (CompletableFuture<JobResult> each : ends) {
                assertFalse(each.get().isDone());
            }
            told.await(); // the next heartbeat would be in 20 minutes
            worker.close();
        }
    }

    /** The canary: without one of them it is noticed. */
    @ParameterizedTest
    @ValueSource(strings = {"+dq.touch", "+dq.nack", "+dq.ack", "+dq.bpop", "+dq.len"})
    void oneLessIsNotEnough(String right, DqServer server) throws Exception {
        List<String> rules = new ArrayList<>(printed("library-worker"));
        assertTrue(rules.remove(right), right);
        allow(server, printed("library-producer"));
        allow(server, rules);
        try (Connector producer = connector("jedis", server, "library-producer");
                Connector worker = connector("jedis", server, "library-worker")) {
            DqQueue.on(producer, "orders").add(Map.of("no", "matter"), JobOptions.create());
            DqQueue.on(producer, "orders").add("throw", JobOptions.withId("bad"));
            DqQueue queue = DqQueue.on(worker, "orders");
            ConfigurationException error = assertThrows(ConfigurationException.class, () -> {
                Worker made = Worker.on(queue).handler(Handler.of(job -> {
                    job.pause(Duration.ofMillis(700));
                    if (job.id().equals("bad")) {
                        throw new IllegalStateException("so that it is given back");
                    }
                }).lease(Duration.ofMillis(900))).build();
                made.check();
                made.run();
            });
            assertTrue(error.getMessage().contains("ACL"), error.getMessage());
        }
    }
}

package io.github.redisdq;

import static io.github.redisdq.WorkerTest.until;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.time.Duration;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.RedisProtocol;

/** A fetch that waits holds a place: here for longer than a test may take. Of two handlers one is busy. */
@ExtendWith(DqExtension.class)
@Timeout(60)
class LinksTest {
    private static final Duration LONG = Duration.ofMinutes(10);

    private final Set<String> begun = ConcurrentHashMap.newKeySet();
    private DqServer server;
    private JedisConnector admin;
    private DqQueue one;
    private DqQueue other;

    @BeforeEach
    void open(DqServer started) {
        server = started;
        admin = JedisConnector.of(URI.create(server.url()));
        one = server.queue("q");
        other = DqQueue.connect(server.url() + "/1", "q");
    }

    @AfterEach
    void close() {
        one.close();
        other.close();
        admin.close();
    }

    private String tell(String words) {
        Words said = new Words(words.split(" ")[0]);
        List.of(words.split(" ")).stream().skip(1).forEach(said::add);
        return admin.call(Collections.singletonList(said.all()), null).get(0) instanceof byte[] text ? Bytes.text(text) : "";
    }

    @Test
    void noTextShowsThePasswordOfAUrl() throws Exception {
        for (String url : List.of(
                "redis://:se cret@h", "redis://:1/secret@h", "redis://u:secret^@h", "redis://u:1/secret@h", "redis://:[secret@h")) {
            Exception error = assertThrows(IllegalArgumentException.class, () -> DqQueue.connect(url, "q"));
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            assertTrue(!trace.toString().contains("cret"), trace.toString());
        }
        JedisConnector connector = JedisConnector.of(URI.create(server.url().replace("//", "//:secret@")));
        DqQueue queue = DqQueue.on(connector, "q");
        Exception error = assertThrows(RefusedException.class, () -> queue.add(1));
        try (queue; Worker worker = worker(queue)) {
            for (Object each : List.of(queue, worker, connector, connector.place(new byte[0]), error)) {
                assertTrue(!String.valueOf(each).contains("secret"), String.valueOf(each));
            }
        }
    }

    /** HELLO is unknown to some servers and proxies. */
    @Test
    void noConnectionAsksForAProtocol() throws Exception {
        tell("CONFIG RESETSTAT");
        for (JedisClientConfig config : List.of(
                DefaultJedisClientConfig.builder().build(),
                DefaultJedisClientConfig.builder().protocol(RedisProtocol.RESP2).build(),
                DefaultJedisClientConfig.builder().protocol(RedisProtocol.RESP3).build())) {
            HostAndPort address = new HostAndPort("127.0.0.1", URI.create(server.url()).getPort());
            try (DqQueue queue = DqQueue.on(JedisConnector.of(address, config), "q"); Worker worker = worker(queue)) {
                begun.clear();
                worker.start();
                queue.add("x");
                until(() -> !begun.isEmpty());
            }
        }
        assertTrue(!tell("INFO commandstats").contains("cmdstat_hello"));
    }

    private Worker worker(DqQueue... queues) {
        return Worker.on(queues)
                .handler(Handler.of(job -> {
                    begun.add(job.id());
                    if (job.id().equals("long")) {
                        job.pause(LONG);
                    }
                }))
                .concurrency(2)
                .wait(LONG)
                .drain(Duration.ZERO)
                .build();
    }

    private void begins(DqQueue queue, String id) throws InterruptedException {
        queue.add(1, JobOptions.withId(id));
        until(() -> begun.contains(id));
    }

    private void eachBegins() throws InterruptedException {
        for (int n = 0; n < 4; n++) {
            begins(other, "other" + n);
            begins(one, "one" + n);
            begins(one, "again" + n);
        }
    }

    @Test
    void norForAServerThatIsAway() throws Exception {
        try (DqQueue nowhere = DqQueue.connect("redis://127.0.0.1:1", "q");
                Worker worker = worker(one, nowhere)) {
            worker.start();
            begins(one, "long");
            for (int n = 0; n < 20; n++) {
                begins(one, "one" + n);
            }
        }
    }

    /** The numbers of its connections, by which their waits are ended. */
    @Test
    void norWhereTheWorkerMayNotKnowThem() throws Exception {
        withoutTheRight("client|id", worker -> eachBegins());
    }

    @Test
    void norWhereItMayNotEndAWait() throws Exception {
        withoutTheRight("dq.unblock", worker -> {
            Set<Link> known = new HashSet<>();
            while (known.size() < 2) { // each learns it by its first fetch, whichever has the place first
                Predicate<Link> learns = link -> !known.contains(link) && link.batcher().isUnblockRefused();
                until(() -> worker.links.stream().anyMatch(learns));
                Link link = worker.links.stream().filter(learns).findFirst().orElseThrow();
                known.add(link);
                begins(link == worker.links.get(0) ? one : other, "first" + known.size());
            }
            eachBegins();
        });
    }

    private interface Scene {
        void play(Worker worker) throws Exception;
    }

    private void withoutTheRight(String right, Scene scene) throws Exception {
        tell("ACL SETUSER worker reset on >secret allkeys +@all -" + right);
        String url = server.url().replace("//", "//worker:secret@");
        try (DqQueue first = DqQueue.connect(url, "q");
                DqQueue second = DqQueue.connect(url + "/1", "q");
                Worker worker = worker(first, second)) {
            worker.start();
            begins(other, "long");
            scene.play(worker);
        }
    }
}

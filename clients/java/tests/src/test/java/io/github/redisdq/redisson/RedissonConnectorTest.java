package io.github.redisdq.redisson;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.ConfigurationException;
import io.github.redisdq.DqException;
import io.github.redisdq.DqQueue;
import io.github.redisdq.Handler;
import io.github.redisdq.Internals;
import io.github.redisdq.Worker;
import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Errors that Redisson would swallow, or report in its own words. */
@Timeout(120)
@ExtendWith(DqExtension.class)
class RedissonConnectorTest {
    private static final int THREADS = 8;
    private static final int ROUNDS = 5;

    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);
    private RedissonClient client;

    /** A connector that connects when it is first used. */
    private DqQueue queue(DqServer server, String database, Consumer<Config> settings) {
        Config config = new Config().setLazyInitialization(true);
        String address = "redis://127.0.0.1:" + URI.create(server.url()).getPort() + database;
        config.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(1);
        settings.accept(config);
        end();
        client = Redisson.create(config);
        return DqQueue.on(RedissonConnector.of(client), "q");
    }

    @AfterEach
    void end() {
        if (client != null) {
            client.shutdown(0, 5, TimeUnit.SECONDS);
        }
    }

    @AfterEach
    void endThreads() {
        threads.shutdownNow();
    }

    /** One thread connects, and the others wait for it. Redisson gives the others another error. */
    @Test
    void aWrongPasswordIsSaidInEachThread(DqServer server) throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            DqQueue queue = queue(server, "", config -> config.setUsername("nobody").setPassword("wrong"));
            CyclicBarrier all = new CyclicBarrier(THREADS);
            List<CompletableFuture<Void>> added = Stream.generate(() -> CompletableFuture.runAsync(() -> {
                        together(all);
                        queue.add("x");
                    }, threads))
                    .limit(THREADS)
                    .toList();
            for (CompletableFuture<Void> each : added) {
                Throwable error = assertThrows(ExecutionException.class, each::get).getCause();
                assertTrue(error instanceof DqException said && Internals.fatal(said) != null && error.getMessage().startsWith("WRONGPASS"), error.toString());
            }
        }
    }

    private static void together(CyclicBarrier all) {
        try {
            all.await();
        } catch (InterruptedException | BrokenBarrierException error) {
            throw new IllegalStateException(error);
        }
    }

    @Test
    void aDatabaseThatDoesNotExistIsSaid(DqServer server) {
        DqQueue queue = queue(server, "", config -> config.useSingleServer().setDatabase(9999));
        Worker worker = Worker.on(queue).handler(Handler.of(job -> {})).lease(Duration.ofSeconds(1)).build();
        ConfigurationException error = assertThrows(ConfigurationException.class, worker::run);
        assertTrue(error.getMessage().contains("does not have this database"), error.getMessage());
    }

    @Test
    void aDatabaseInAnAddressIsNotIgnored(DqServer server) {
        ConfigurationException error = assertThrows(ConfigurationException.class, () -> queue(server, "/3", config -> {}));
        assertTrue(error.getMessage().contains("/3: say setDatabase(3)"), error.getMessage());
        assertNotNull(queue(server, "/3", config -> config.useSingleServer().setDatabase(3)).add("x"));
    }
}

package io.github.redisdq.probe;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.redisdq.Connector;
import io.github.redisdq.DqQueue;
import io.github.redisdq.GiveUpException;
import io.github.redisdq.Handler;
import io.github.redisdq.Hooks;
import io.github.redisdq.InlineQueue;
import io.github.redisdq.JedisConnector;
import io.github.redisdq.Job;
import io.github.redisdq.LettuceConnector;
import io.github.redisdq.RedissonConnector;
import io.github.redisdq.RetryException;
import io.github.redisdq.SnoozeException;
import io.github.redisdq.Worker;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SentinelServersConfig;
import org.redisson.config.SingleServerConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;

/** The probe of the behaviour suite (clients/suite/README.md). */
public final class Probe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static final Map<String, Integer> RUNS = new ConcurrentHashMap<>();

    private final Map<String, DqQueue> queues = new HashMap<>();
    private final CountDownLatch stopped = new CountDownLatch(1);
    private final String client; // jedis, lettuce or redisson
    private final RedisClient lettuce;
    private final Map<String, RedissonClient> redissons = new HashMap<>();
    private Worker worker;

    private Probe(String client) {
        this.client = client;
        lettuce = client.equals("lettuce") ? RedisClient.create() : null;
    }

    static void emit(String event, Object... fields) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("event", event);
        for (int at = 0; at < fields.length; at += 2) {
            out.put((String) fields[at], fields[at + 1]);
        }
        try {
            String line = JSON.writeValueAsString(out);
            synchronized (OUT) {
                OUT.println(line);
                OUT.flush();
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    // --- Handlers

    private static void announce(List<Job> jobs) {
        for (Job job : jobs) {
            RUNS.merge(job.id(), 1, Integer::sum);
            emit(
                    "started", "job", job.id(), "queue", job.queue(), "attempt", job.attempt(), "kind", job.kind(),
                    "headers", job.headers(), "payload", Base64.getEncoder().encodeToString(job.payload()),
                    "due", job.due().toEpochMilli(), "batch", jobs.size());
        }
    }

    private static void work(Job job) throws Exception {
        JsonNode todo = job.data(JsonNode.class);
        boolean isOver = todo.has("times") && RUNS.get(job.id()) > todo.get("times").asInt();
        if (!todo.isObject() || isOver) {
            return;
        }
        Duration duration = Duration.ofMillis(todo.path("ms").asLong());
        String reason = todo.path("reason").asText(null);
        switch (todo.path("do").asText("")) {
            case "sleep" -> sleep(job, duration);
            case "stubborn" -> stubborn(duration);
            case "hang" -> stubborn(Duration.ofDays(1));
            case "throw" -> throw new RuntimeException(todo.path("message").asText("thrown"));
            case "retry" -> throw new RetryException(duration, reason);
            case "snooze" -> throw new SnoozeException(duration, reason);
            case "give_up" -> throw new GiveUpException(reason);
            case "hostile" -> Hostilities.act(todo.get("n").asInt());
            case "exit" -> Runtime.getRuntime().halt(3);
            case "fork" -> new ProcessBuilder("sleep", "2").start();
            case "quit_thread" -> throw new Error("not an ordinary one");
            default -> {}
        }
    }

    private static void sleep(Job job, Duration duration) throws InterruptedException {
        try {
            Thread.sleep(duration.toMillis());
        } catch (InterruptedException error) {
            emit("told", "job", job.id(), "why", job.cancelReason().name().toLowerCase(Locale.ROOT));
            throw error;
        }
    }

    private static void stubborn(Duration duration) {
        long end = System.nanoTime() + duration.toNanos();
        while (System.nanoTime() - end < 0) {
            try {
                Thread.sleep(Math.max(1, (end - System.nanoTime()) / 1_000_000));
            } catch (InterruptedException error) {
                // it takes no notice
            }
        }
    }

    private static void handle(Job job) throws Exception {
        announce(List.of(job));
        try {
            work(job);
        } finally {
            emit("ended", "job", job.id());
        }
    }

    private static void handleBatch(List<Job> jobs) {
        announce(jobs);
        for (Job job : jobs) {
            try {
                work(job);
            } catch (Exception error) {
                job.fail(error);
            }
        }
    }

    private static final class Reports implements Hooks {
        @Override
        public void before(Job job) {
            emit("before", "job", job.id());
        }

        @Override
        public void after(Job job) {
            emit("after", "job", job.id());
        }

        @Override
        public void failed(Job job, Throwable error) {
            emit("failed", "job", job.id(), "error", error.getClass().getSimpleName());
        }

        @Override
        public void lost(Job job) {
            emit("lost", "job", job.id());
        }
    }

    private static List<Handler<?>> handlers(JsonNode order) {
        List<Handler<?>> made = new ArrayList<>();
        JsonNode given = order.path("handlers").isEmpty() ? JSON.createArrayNode().addObject() : null;
        for (JsonNode each : given == null ? order.get("handlers") : List.of(given)) {
            int batch = each.path("batch").asInt();
            Handler<?> handler = batch > 0 ? Handler.ofBatch(batch, Probe::handleBatch) : Handler.of(Probe::handle);
            handler.kind(each.path("kind").asText(null)).attempts(each.path("attempts").asInt());
            List<Duration> steps = new ArrayList<>();
            each.path("backoff_ms").forEach(ms -> steps.add(Duration.ofMillis(ms.asLong())));
            handler.backoff(steps.toArray(Duration[]::new));
            if (each.hasNonNull("lease_ms")) {
                handler.lease(Duration.ofMillis(each.get("lease_ms").asLong()));
            }
            made.add(handler);
        }
        return made;
    }

    // --- Orders

    private static HostAndPort place(String text) {
        String[] parts = text.replaceFirst(".*(//|@)", "").split(":");
        return new HostAndPort(parts[0], Integer.parseInt(parts[1]));
    }

    private static Optional<String[]> credentials(String url) {
        return Optional.ofNullable(URI.create(url).getUserInfo()).map(user -> user.split(":"));
    }

    private static Connector jedis(JsonNode order) {
        DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().build();
        if (order.hasNonNull("cluster")) {
            String cluster = order.get("cluster").asText();
            return JedisConnector.cluster(Set.of(place(cluster)), credentials(cluster)
                    .map(user -> DefaultJedisClientConfig.builder().user(user[0]).password(user[1]).build())
                    .orElse(config));
        }
        if (order.hasNonNull("sentinels")) {
            Set<HostAndPort> sentinels = new java.util.HashSet<>();
            order.get("sentinels").forEach(each -> sentinels.add(place(each.asText())));
            return JedisConnector.sentinel(order.get("master").asText(), config, sentinels, config);
        }
        if (order.path("own").asBoolean()) {
            HostAndPort at = place(order.get("url").asText());
            return JedisConnector.of(at, DefaultJedisClientConfig.builder().build());
        }
        return JedisConnector.of(URI.create(order.get("url").asText()));
    }

    private Connector lettuce(JsonNode order) {
        if (order.hasNonNull("cluster")) {
            return LettuceConnector.cluster(RedisClusterClient.create(order.get("cluster").asText()));
        }
        if (order.hasNonNull("sentinels")) {
            RedisURI.Builder uri = RedisURI.builder().withSentinelMasterId(order.get("master").asText());
            for (JsonNode each : order.get("sentinels")) {
                HostAndPort at = place(each.asText());
                uri.withSentinel(at.getHost(), at.getPort());
            }
            return LettuceConnector.of(lettuce, uri.build());
        }
        return LettuceConnector.of(lettuce, RedisURI.create(order.get("url").asText()));
    }

    /** One for each place, as programs have it: a worker on two queues waits for both on one connection. */
    private Connector redisson(JsonNode order) {
        String place = List.of(order.path("cluster"), order.path("sentinels"), order.path("url")).toString();
        return RedissonConnector.of(redissons.computeIfAbsent(place, it -> Redisson.create(settings(order))));
    }

    private static Config settings(JsonNode order) {
        Config config = new Config().setLazyInitialization(true); // the server may not be there yet
        if (order.hasNonNull("cluster")) {
            String cluster = order.get("cluster").asText();
            credentials(cluster).ifPresent(user -> config.setUsername(user[0]).setPassword(user[1]));
            config.useClusterServers().addNodeAddress("redis://" + place(cluster));
        } else if (order.hasNonNull("sentinels")) {
            SentinelServersConfig sentinel = config.useSentinelServers().setMasterName(order.get("master").asText());
            order.get("sentinels").forEach(each -> sentinel.addSentinelAddress("redis://" + each.asText()));
            sentinel.setCheckSentinelsList(false);
        } else {
            SingleServerConfig single = config.useSingleServer().setAddress(order.get("url").asText()).setTimeout(30_000);
            // Redisson waits for its connections for as long as for one, so many times
            single.setConnectTimeout(1000).setConnectionMinimumIdleSize(1).setConnectionPoolSize(4);
        }
        return config;
    }

    private Connector connector(JsonNode order) {
        return switch (client) {
            case "lettuce" -> lettuce(order);
            case "redisson" -> redisson(order);
            default -> jedis(order);
        };
    }

    private void queue(JsonNode order) {
        DqQueue queue = DqQueue.on(connector(order), order.get("name").asText());
        queues.put(order.get("queue").asText(), queue.withShards(order.path("shards").asInt()));
        emit("made");
    }

    private void start(JsonNode order) {
        List<DqQueue> all = new ArrayList<>();
        order.get("queues").forEach(name -> all.add(queues.get(name.asText())));
        Worker.Builder builder = Worker.on(all.toArray(DqQueue[]::new));
        handlers(order).forEach(builder::handler);
        if (order.hasNonNull("concurrency")) {
            builder.concurrency(order.get("concurrency").asInt());
        }
        builder.prefetch(order.path("prefetch").asInt());
        if (order.hasNonNull("weights")) {
            double[] weights = new double[order.get("weights").size()];
            for (int at = 0; at < weights.length; at++) {
                weights[at] = order.get("weights").get(at).asDouble();
            }
            builder.weights(weights);
        }
        if (order.hasNonNull("drain_ms")) {
            builder.drain(Duration.ofMillis(order.get("drain_ms").asLong()));
        }
        if (order.hasNonNull("wait_ms")) {
            builder.waitFor(Duration.ofMillis(order.get("wait_ms").asLong()));
        }
        if (order.hasNonNull("lease_ms")) {
            builder.lease(Duration.ofMillis(order.get("lease_ms").asLong()));
        }
        if (order.path("hooks").asText("").equals("hostile")) {
            builder.hooks(new Hostilities());
        } else if (order.path("hooks").asBoolean()) {
            builder.hooks(new Reports());
        }
        worker = builder.build();
        emit("running");
        Worker made = worker;
        new Thread(() -> run(made), "probe").start();
    }

    private void run(Worker made) {
        try {
            made.run();
        } catch (RuntimeException error) {
            emit("error", "type", error.getClass().getSimpleName(), "message", error.getMessage());
        }
        emit("stopped");
        stopped.countDown();
    }

    /** As {@link Worker#stopOnShutdown}; but a JVM that a signal ends has another exit code than 0. */
    private void terminate() {
        if (worker != null) {
            worker.stop();
            try {
                stopped.await();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0);
        }
    }

    private void obey(JsonNode order) {
        switch (order.get("do").asText()) {
            case "queue" -> queue(order);
            case "worker" -> start(order);
            case "stop" -> worker.stop();
            case "inline" -> {
                DqQueue queue = InlineQueue.of("inline", handlers(order).toArray(Handler<?>[]::new));
                queue.add(order.get("data"), Calls.options(order));
                emit("answer", "value", null);
            }
            case "call" -> emit("answer", "value", Calls.call(queues.get(order.get("queue").asText()), order));
            default -> throw new IllegalArgumentException(order.toString());
        }
    }

    public static void main(String[] args) throws IOException {
        emit("ready", "language", "java", "version", System.getProperty("java.version"));
        Probe probe = new Probe(args[0]);
        Runtime.getRuntime().addShutdownHook(new Thread(probe::terminate));
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                probe.obey(JSON.readTree(line));
            } catch (RuntimeException | IOException error) {
                emit("refused", "error", error.toString());
            }
        }
        Runtime.getRuntime().halt(0);
    }
}

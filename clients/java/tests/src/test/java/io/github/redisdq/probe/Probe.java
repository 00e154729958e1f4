package io.github.redisdq.probe;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.redisdq.Around;
import io.github.redisdq.DqQueue;
import io.github.redisdq.Handler;
import io.github.redisdq.Hooks;
import io.github.redisdq.Inside;
import io.github.redisdq.Job;
import io.github.redisdq.JobFailedException;
import io.github.redisdq.JobInfo;
import io.github.redisdq.JobOptions;
import io.github.redisdq.RefusedException;
import io.github.redisdq.TestJob;
import io.github.redisdq.TestRun;
import io.github.redisdq.TimedOutException;
import io.github.redisdq.Worker;
import io.github.redisdq.WorkerBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;

/** The probe of the behaviour suite (clients/suite/README.md). */
public final class Probe {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    private final Map<String, DqQueue> queues = new HashMap<>();
    private final CountDownLatch stopped = new CountDownLatch(1);
    private final Connectors connectors;
    private Worker worker;

    private Probe(String client) {
        connectors = new Connectors(client);
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

    // --- Workers

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

    private static final class Deaths implements Hooks {
        @Override
        public void dead(String queue, JobInfo job) {
            emit(
                    "dead", "job", job.id(), "queue", queue, "kind", job.kind(), "headers", job.headers(), "data",
                    job.data(JsonNode.class), "attempts", job.attempts(), "reason", job.reason());
            if (job.data(JsonNode.class).path("dead").asText("").equals("hang")) {
                Acts.stubborn(Duration.ofDays(1));
            }
        }
    }

    private static List<Handler<?>> handlers(JsonNode order) {
        List<Handler<?>> made = new ArrayList<>();
        JsonNode given = order.path("handlers").isEmpty() ? JSON.createArrayNode().addObject() : null;
        for (JsonNode each : given == null ? order.get("handlers") : List.of(given)) {
            int batch = each.path("batch").asInt();
            Handler<?> handler = batch > 0 ? Handler.ofBatch(batch, Acts::handleBatch) : Handler.returning(Acts::handle);
            handler.kind(each.path("kind").asText(null)).attempts(each.path("attempts").asInt());
            List<Duration> steps = new ArrayList<>();
            each.path("backoff_ms").forEach(ms -> steps.add(Duration.ofMillis(ms.asLong())));
            handler.backoff(steps.toArray(Duration[]::new));
            if (each.hasNonNull("lease_ms")) {
                handler.lease(Duration.ofMillis(each.get("lease_ms").asLong()));
            }
            if (each.hasNonNull("fill")) {
                handler.fill(each.get("fill").get(0).asInt(), Duration.ofMillis(each.get("fill").get(1).asLong()));
            }
            if (each.hasNonNull("timeout_ms")) {
                handler.timeout(Duration.ofMillis(each.get("timeout_ms").asLong()));
            }
            JobOptions rule = JobOptions.create().tz(each.path("tz").asText(null));
            if (each.hasNonNull("cron")) {
                handler.cron(each.get("cron").asText(), Map.of(), rule);
            } else if (each.hasNonNull("every_ms")) {
                handler.every(Duration.ofMillis(each.get("every_ms").asLong()), Map.of(), rule);
            }
            handler.retryOn(Acts.types(each.path("retry_on"))).giveUpOn(Acts.types(each.path("give_up_on")));
            made.add(handler);
        }
        return made;
    }

    // --- Orders

    private void queue(JsonNode order) {
        DqQueue queue = DqQueue.on(connectors.of(order), order.get("name").asText());
        queues.put(order.get("queue").asText(), queue.withShards(order.path("shards").asInt()));
        emit("made");
    }

    private void start(JsonNode order) {
        List<DqQueue> all = new ArrayList<>();
        order.get("queues").forEach(name -> all.add(queues.get(name.asText())));
        if (order.hasNonNull("idle_ms")) {
            Inside.idleAfter(Duration.ofMillis(order.get("idle_ms").asLong()));
        }
        WorkerBuilder builder = Worker.on(all.toArray(DqQueue[]::new));
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
            builder.wait(Duration.ofMillis(order.get("wait_ms").asLong()));
        }
        if (order.hasNonNull("lease_ms")) {
            builder.lease(Duration.ofMillis(order.get("lease_ms").asLong()));
        }
        if (order.path("hooks").asText("").equals("hostile")) {
            builder.hooks(new Hostilities());
        } else if (order.path("hooks").asBoolean()) {
            builder.hooks(new Reports());
        }
        if (order.path("dead").asBoolean()) {
            builder.hooks(new Deaths());
        }
        around(order.path("around").asText("")).ifPresent(builder::around);
        worker = builder.build();
        worker.stopOnShutdown();
        emit("running");
        Worker made = worker;
        new Thread(() -> run(made), "probe").start();
    }

    private static Optional<Around> around(String said) {
        return switch (said) {
            case "true" -> Optional.of((job, next) -> {
                emit("around", "job", job.id(), "phase", "entered");
                try {
                    return next.call();
                } finally {
                    emit("around", "job", job.id(), "phase", "left");
                }
            });
            case "hostile" -> Optional.of((job, next) -> {
                throw new IllegalStateException("of what is around");
            });
            default -> Optional.empty();
        };
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

    /** Beside {@link Worker#stopOnShutdown}, as a JVM that a signal ends has another exit code than 0. */
    private void terminate() {
        if (worker != null) {
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
            case "inline" -> emit("answer", "value", shown(TestJob.of(order.get("data")).kind(order.path("kind").asText(null))
                    .run(handlers(order).toArray(Handler<?>[]::new))));
            case "call" -> call(order);
            case "health" -> emit("answer", "value", worker.isHealthy());
            default -> throw new IllegalArgumentException(order.toString());
        }
    }

    private static Map<String, Object> shown(TestRun run) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("state", run.state().name().toLowerCase(Locale.ROOT));
        out.put("result", run.result(JsonNode.class));
        out.put("reason", run.reason());
        out.put("attempts", run.attempts());
        out.put("waits", run.waits().stream().map(each -> each == null ? null : each.toMillis()).toList());
        return out;
    }

    private void call(JsonNode order) {
        DqQueue queue = queues.get(order.get("queue").asText());
        if (order.hasNonNull("tag")) {
            new Thread(() -> answer(queue, order), "call").start();
        } else {
            answer(queue, order);
        }
    }

    private static void answer(DqQueue queue, JsonNode order) {
        String tag = order.path("tag").asText(null);
        try {
            emit("answer", "tag", tag, "value", Calls.call(queue, order));
        } catch (JobFailedException error) {
            emit(
                    "refused", "tag", tag, "error", "JobFailed", "outcome", error.outcome().name().toLowerCase(Locale.ROOT),
                    "reason", error.reason(), "message", error.getMessage());
        } catch (TimedOutException error) {
            emit("refused", "tag", tag, "error", "timeout");
        } catch (RefusedException error) {
            emit("refused", "tag", tag, "error", "Refused: " + error.getMessage());
        } catch (InterruptedException | RuntimeException error) {
            emit("refused", "tag", tag, "error", error.toString());
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

package io.github.redisdq.probe;

import com.fasterxml.jackson.databind.JsonNode;
import io.github.redisdq.DqQueue;
import io.github.redisdq.GiveUpException;
import io.github.redisdq.Job;
import io.github.redisdq.JobResult;
import io.github.redisdq.RetryException;
import io.github.redisdq.SnoozeException;
import io.github.redisdq.TimedOutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What the data of a job tell its handler to do. */
final class Acts {
    private static final Map<String, Integer> RUNS = new ConcurrentHashMap<>();

    private Acts() {}

    private static final class Flaky extends RuntimeException {
        private static final long serialVersionUID = 1;

        Flaky(String message) {
            super(message);
        }
    }

    private static final class Broken extends RuntimeException {
        private static final long serialVersionUID = 1;

        Broken(String message) {
            super(message);
        }
    }

    @SuppressWarnings("unchecked") // an array
    static Class<? extends Throwable>[] types(JsonNode names) {
        List<Class<?>> types = new ArrayList<>();
        names.forEach(each -> types.add(each.asText().equals("Flaky") ? Flaky.class : Broken.class));
        return types.toArray(Class[]::new);
    }

    private static void announce(List<Job> jobs) {
        for (Job job : jobs) {
            RUNS.merge(job.id(), 1, Integer::sum);
            Probe.emit(
                    "started", "job", job.id(), "queue", job.queue(), "attempt", job.attempt(), "kind", job.kind(),
                    "headers", job.headers(), "payload", Base64.getEncoder().encodeToString(job.payload()),
                    "due", job.due().toEpochMilli(), "batch", jobs.size(), "results", shown(job.results()));
        }
    }

    private static List<Object> shown(List<JobResult> results) {
        List<Object> rows = new ArrayList<>();
        for (JobResult each : results) {
            Object value = each.isDone() ? each.value(JsonNode.class) : each.reason();
            rows.add(Arrays.asList(each.id(), each.outcome().name().toLowerCase(Locale.ROOT), value));
        }
        return rows;
    }

    private static boolean isOver(Job job, JsonNode todo) {
        return todo.has("times") && RUNS.get(job.id()) > todo.get("times").asInt();
    }

    private static Object work(Job job) throws Exception {
        JsonNode todo = job.data(JsonNode.class);
        if (!todo.isObject() || isOver(job, todo)) {
            return null;
        }
        Duration duration = Duration.ofMillis(todo.path("ms").asLong());
        String reason = todo.path("reason").asText(null);
        switch (todo.path("do").asText("")) {
            case "return" -> {
                return todo.get("value");
            }
            case "unencodable" -> {
                return Double.NaN;
            }
            case "script" -> {
                return script(job, todo.get("actions"));
            }
            case "progress" -> {
                todo.get("steps").forEach(each -> job.progress(each.get(0).asDouble(), each.get(1).asText()));
                sleep(job, duration);
            }
            case "sleep" -> sleep(job, duration);
            case "stubborn" -> stubborn(duration);
            case "hang" -> stubborn(Duration.ofDays(1));
            case "throw" -> throw error(todo);
            case "retry" -> throw new RetryException(duration, reason);
            case "snooze" -> throw new SnoozeException(duration, reason);
            case "give_up" -> throw new GiveUpException(reason);
            case "hostile" -> Hostilities.act(todo.get("n").asInt());
            case "exit" -> Runtime.getRuntime().halt(3);
            case "fork" -> new ProcessBuilder("sleep", "2").start();
            case "quit_thread" -> throw new Error("not an ordinary one");
            default -> {}
        }
        return null;
    }

    private static RuntimeException error(JsonNode todo) {
        String message = todo.path("message").asText("thrown");
        return switch (todo.path("type").asText("")) {
            case "Flaky" -> new Flaky(message);
            case "Broken" -> new Broken(message);
            default -> new RuntimeException(message);
        };
    }

    private static Object script(Job job, JsonNode actions) throws Exception {
        for (JsonNode each : actions) {
            if (each.has("return")) {
                return each.get("return");
            }
            act(job, each);
        }
        return null;
    }

    private static void act(Job job, JsonNode todo) throws Exception {
        if (todo.has("step")) {
            String name = todo.get("step").asText();
            JsonNode value = job.step(name, JsonNode.class, () -> {
                Probe.emit("stepped", "job", job.id(), "name", name);
                return todo.get("value").isNull() ? null : todo.get("value");
            });
            Probe.emit("step", "job", job.id(), "name", name, "value", value);
        } else if (todo.has("sleep")) {
            job.sleep(todo.get("sleep").asText(), Duration.ofMillis(todo.get("ms").asLong()));
        } else if (todo.has("wait")) {
            await(job, todo.get("wait").asText(), todo.get("ms"));
        } else if (todo.has("wait_for")) {
            List<String> ids = new ArrayList<>();
            todo.get("wait_for").forEach(id -> ids.add(id.asText()));
            Probe.emit("results", "job", job.id(), "results", shown(job.waitFor(ids.toArray(String[]::new))));
        } else if (todo.has("spawn")) {
            List<DqQueue.NewJob> jobs = new ArrayList<>();
            todo.get("spawn").forEach(child -> jobs.add(new DqQueue.NewJob(child.get("data"))));
            Probe.emit("results", "job", job.id(), "results", shown(job.spawn(jobs.toArray(DqQueue.NewJob[]::new))));
        } else if (todo.has("throw") && !isOver(job, todo)) {
            throw new RuntimeException(todo.get("throw").asText());
        } else if (todo.has("exit") && !isOver(job, todo)) {
            Runtime.getRuntime().halt(3);
        }
    }

    private static void await(Job job, String name, JsonNode ms) throws Exception {
        try {
            JsonNode value = ms == null
                    ? job.waitSignal(name, JsonNode.class)
                    : job.waitSignal(name, JsonNode.class, Duration.ofMillis(ms.asLong()));
            Probe.emit("waited", "job", job.id(), "name", name, "value", value);
        } catch (TimedOutException error) {
            Probe.emit("waited", "job", job.id(), "name", name, "timed_out", true);
        }
    }

    private static void sleep(Job job, Duration duration) throws InterruptedException {
        try {
            Thread.sleep(duration.toMillis());
        } catch (InterruptedException error) {
            Probe.emit("told", "job", job.id(), "why", job.cancelReason().name().toLowerCase(Locale.ROOT));
            throw error;
        }
    }

    static void stubborn(Duration duration) {
        long end = System.nanoTime() + duration.toNanos();
        while (System.nanoTime() - end < 0) {
            try {
                Thread.sleep(Math.max(1, (end - System.nanoTime()) / 1_000_000));
            } catch (InterruptedException error) {
                // it takes no notice
            }
        }
    }

    static Object handle(Job job) throws Exception {
        announce(List.of(job));
        try {
            return work(job);
        } finally {
            Probe.emit("ended", "job", job.id());
        }
    }

    static void handleBatch(List<Job> jobs) {
        announce(jobs);
        for (Job job : jobs) {
            try {
                job.succeed(work(job));
            } catch (Exception error) {
                job.fail(error);
            }
        }
    }
}

package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.otel.Telemetry;
import io.github.redisdq.testing.Clock;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.data.LongPointData;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.testing.exporter.InMemoryMetricReader;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Rare cases, which must be right all the same. */
@Timeout(60)
class EdgesTest extends OnServer {
    /** Sends again what got no reply, as some client libraries do. */
    private record Twice(Connector inner) implements Connector {
        @Override
        public List<Object> call(List<byte[][]> commands, Duration patience) {
            inner.call(commands, patience);
            return inner.call(commands, patience);
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
    void anAddThatIsSentTwiceAddsOneJob() {
        DqQueue twice = DqQueue.on(new Twice(queue.connector()), "q");
        String id = twice.add("x");
        assertEquals(1, queue.len());
        assertEquals(id, queue.get(id).id());
        assertEquals(2, twice.addMany(List.of(new DqQueue.NewJob(1, JobOptions.create()), new DqQueue.NewJob(2, JobOptions.create())))
                .stream().filter(each -> queue.get(each) != null).count());
        assertEquals(3, queue.len());
        assertNull(twice.add("x", JobOptions.withId("given")), "whose first sending cannot be told from another's");
        JobOptions replacing = JobOptions.create().ifExists(JobOptions.IfExists.ONLY_REPLACE);
        assertThrows(IllegalArgumentException.class, () -> queue.add("x", replacing));
    }

    @Test
    void aHookThatThrowsDoesNotKeepAJobFromBeingAdded() {
        DqQueue hooked = queue.withHooks(new Hooks() {
            @Override
            public void adding(String queue, Map<String, String> headers) {
                headers.put("half", "done");
                throw new NoSuchMethodError("of a hook");
            }
        }, new Hooks() {
            @Override
            @SuppressWarnings({"unchecked", "rawtypes"})
            public void adding(String queue, Map<String, String> headers) {
                headers.put("whole", "done");
                headers.put("null", null);
                ((Map) headers).put("number", 17);
            }
        });
        String id = hooked.add(1);
        assertEquals("{\"dq\":1,\"data\":1,\"headers\":{\"whole\":\"done\"}}", Bytes.text(queue.get(id).payload()));
    }

    @Test
    void manyAreDoneAtATime() {
        queue.addMany(List.of(new DqQueue.NewJob(1, JobOptions.withId("a")), new DqQueue.NewJob(2, JobOptions.withId("b"))));
        List<Reserved> jobs = queue.pop(2, null);
        assertEquals(1, queue.ackMany(Map.of("a", jobs.get(0).token(), "b", "1")));
        assertEquals(1, queue.len());
    }

    @Test
    void aPoppedJobBringsResultsAndSteps() {
        queue.add(1, JobOptions.withId("a").keep(Duration.ofHours(1)));
        queue.add(2, JobOptions.withId("b").after("a"));
        Reserved first = queue.popId("a", null);
        assertEquals(List.of(List.of(), Map.of()), List.of(first.results(), first.steps()));
        assertTrue(queue.step("a", first.token(), "paid", Bytes.of("yes")));
        queue.nack("a", first.token(), NackOptions.silent());
        Reserved again = queue.bpop(Duration.ofSeconds(5), 1, null).get(0);
        assertEquals(List.of("paid"), List.copyOf(again.steps().keySet()));
        assertEquals("yes", Bytes.text(again.steps().get("paid")));
        assertTrue(queue.ack("a", again.token(), List.of(7)));
        JobResult result = queue.pop(1, null).get(0).results().get(0);
        assertEquals(List.of("a", JobOutcome.DONE, List.of(7)), List.of(result.id(), result.outcome(), result.value(List.class)));
    }

    @Test
    void allFiguresAndTheRuleAreThere(Clock clock) {
        queue.pause(Duration.ofMinutes(1));
        queue.add("x", JobOptions.create().group("g"));
        queue.cron("0 9 * * *", "x", JobOptions.withId("r").tz("Europe/Berlin").grace(Duration.ofHours(1)).times(5));
        Stats stats = queue.stats();
        assertEquals(clock.now().plus(Duration.ofMinutes(1)), stats.pausedUntil());
        assertTrue(stats.isPaused() && stats.bytes() > 0);
        assertEquals(List.of(1L, 1L, 0L, 0L), List.of(stats.recurring(), stats.groups(), stats.blocked(), stats.done()));
        assertEquals(9, stats.totals().size());
        Rule rule = queue.get("r").rule();
        assertEquals(List.of("0 9 * * *", "Europe/Berlin"), List.of(rule.cron(), rule.tz()));
        assertEquals(List.of(Duration.ofHours(1), 5L, 0L), List.of(rule.grace(), rule.times(), rule.runs()));
        assertEquals(rule.occurrence(), queue.get("r").due());
        queue.pause();
        assertEquals(Instant.MAX, queue.stats().pausedUntil());
        queue.resume();
        assertFalse(queue.stats().isPaused());
        assertEquals(State.OTHER, State.of(Bytes.of("asleep")));
    }

    /** A span that stayed current would take over all that the thread does next. */
    @Test
    void noSpanIsLeftBehindByABatch() {
        InMemoryMetricReader metrics = InMemoryMetricReader.create();
        Telemetry telemetry = new Telemetry(OpenTelemetrySdk.builder()
                .setTracerProvider(SdkTracerProvider.builder().build())
                .setMeterProvider(SdkMeterProvider.builder().registerMetricReader(metrics).build())
                .build());
        Worker worker = Worker.on(queue).hooks(telemetry).handler(Handler.ofBatch(10, jobs -> {})).build();
        for (int n = 0; n < 3; n++) {
            queue.add(n);
        }
        assertEquals(3, worker.drain());
        assertFalse(Span.current().getSpanContext().isValid());
        String gone = queue.add(4);
        Worker.on(queue).hooks(telemetry).handler(Handler.of(job -> queue.delete(gone))).build().drain(); // the reply to the handler's end says that the job is gone
        MetricData lost = metrics.collectAllMetrics().stream()
                .filter(it -> it.getName().equals("dq.client.lost.messages"))
                .findFirst()
                .orElseThrow();
        assertEquals(1, lost.getLongSumData().getPoints().stream().mapToLong(LongPointData::getValue).sum());
    }

    @Test
    void anExecutorOfTheProgramsRunsTheHandlers() throws InterruptedException {
        CountDownLatch done = new CountDownLatch(20);
        ThreadGroup group = new ThreadGroup("mine");
        Worker worker = Worker.on(queue)
                .handler(Handler.of(job -> {
                    if (Thread.currentThread().getThreadGroup() == group) {
                        done.countDown();
                    }
                }))
                .executor(task -> new Thread(group, task).start())
                .concurrency(3)
                .build();
        worker.start();
        for (int n = 0; n < 20; n++) {
            queue.add(n);
        }
        done.await();
        worker.close();
        Worker refused = Worker.on(queue).handler(Handler.of(job -> {})).executor(task -> {
            throw new RejectedExecutionException("full");
        }).build();
        ConfigurationException error = assertThrows(ConfigurationException.class, refused::run);
        assertTrue(error.getMessage().contains("full"), error.getMessage());
    }
}

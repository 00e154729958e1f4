package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.otel.Telemetry;
import io.github.redisdq.testing.Clock;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class DqQueueTest extends OnServer {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    @Test
    void aJobsLifeByHand(Clock clock) {
        Instant due = clock.now().plus(MINUTE);
        JobOptions options = JobOptions.withId("a").delay(MINUTE).priority(5).ttr(Duration.ofSeconds(1)).attempts(3);
        options.backoff(Duration.ofSeconds(1)).ttl(Duration.ofHours(1));
        assertEquals("a", queue.add(Map.of("n", 1), options));
        assertNull(queue.add(2, options));
        JobInfo job = queue.get("a");
        assertEquals(List.of(State.DELAYED, due, 5, 3, List.of(Duration.ofSeconds(1))),
                List.of(job.state(), job.due(), job.priority(), job.maxAttempts(), job.backoff()));
        assertNull(job.token());
        assertEquals(List.of(), queue.pop(1, null));
        clock.advance(MINUTE);
        Reserved popped = queue.pop(3, null).get(0);
        assertEquals("{\"n\":1}", new String(popped.payload()));
        assertEquals(List.of("a", 1, due), List.of(popped.id(), popped.attempt(), popped.due()));
        assertEquals(clock.now().plus(MINUTE), queue.touch("a", popped.token(), MINUTE));
        assertNull(queue.touch("a", "17", null));
        assertEquals(State.READY, queue.nack("a", popped.token(), NackOptions.fail().delay(Duration.ZERO).reason("no")));
        assertEquals("no", queue.get("a").reason());
        popped = queue.bpop(Duration.ofSeconds(1), 1, null).get(0);
        Map<String, State> states = queue.nackMany(Map.of("a", popped.token(), "x", "1"), NackOptions.fatal());
        assertEquals(State.DEAD, states.get("a"));
        assertNull(states.get("x"));
        assertEquals(1, queue.kickOldest(5));
        popped = queue.popId("a", null);
        assertFalse(queue.ack("a", "17"));
        assertTrue(queue.ack("a", popped.token()));
        assertNull(queue.stats());
        assertNull(queue.get("a"));
    }

    @Test
    void stepsAndWaitsByHand() {
        queue.add(1, JobOptions.withId("a"));
        String token = queue.pop(1, null).get(0).token();
        assertTrue(queue.step("a", token, "charge", Bytes.of("7")));
        assertFalse(queue.step("a", "17", "charge", Bytes.of("8")));
        assertNotNull(queue.setProgress("a", token, "0.5 half"));
        assertEquals("0.5 half", queue.get("a").progress());
        assertEquals(Bytes.text(Bytes.of("7")), Reply.text(Reply.map(queue.get("a").fields().get("steps")).get("charge")));
        Instant end = queue.btouch(Duration.ofMillis(10), Map.of("a", token), MINUTE).get("a");
        assertEquals(end, queue.get("a").deadline());
        assertEquals(State.DELAYED, queue.nack("a", token, NackOptions.untilSignal("signed").delay(MINUTE)));
        assertEquals(true, queue.signal("a", "signed"));
        token = queue.pop(1, null).get(0).token();
        queue.add(2, JobOptions.withId("b").delay(MINUTE));
        assertEquals(State.BLOCKED, queue.nack("a", token, NackOptions.after(JobOptions.OnDead.RUN, "b")));
        assertEquals(1, queue.delete("b"));
        token = queue.pop(1, null).get(0).token();
        assertNull(queue.btouch(Duration.ofSeconds(60), Map.of("a", "17"), null).get("a"), "at once");
        assertTrue(queue.ack("a", token, List.of(1)));
    }

    @Test
    void aWaitIsNotCutOffByTheClientsTimeout() {
        Duration longerThanJedis = Duration.ofMillis(2500);
        assertEquals(List.of(), queue.bpop(longerThanJedis, 1, null));
    }

    @Test
    void rulesAreSaidAgainWithoutHarm(Clock clock) {
        queue.cron("0 9 * * MON-FRI", null, JobOptions.withId("report").tz("Europe/Berlin"));
        List<Instant> before = queue.next("report", 3);
        clock.advance(MINUTE);
        queue.cron("0 9 * * MON-FRI", null, JobOptions.withId("report").tz("Europe/Berlin"));
        assertEquals(before, queue.next("report", 3));
        queue.every(MINUTE, null, JobOptions.withId("sync").times(2));
        assertEquals(2, queue.next("sync", 5).size());
        assertThrows(IllegalArgumentException.class, () -> queue.cron("@daily", null, JobOptions.create()));
    }

    @Test
    void groups() {
        queue.add(1, JobOptions.create().group("acme"));
        assertEquals(1, queue.lenOfGroup("acme"));
        assertEquals(List.of(new Group("acme", 1, 0)), queue.groups("0", 0, null, null).found());
    }

    @Test
    void settingsAndLimits() {
        assertNull(queue.settings());
        queue.configure(new Settings().ttr(Duration.ofSeconds(7)).maxLen(1).rate(5, Duration.ofSeconds(1)).backoff(MINUTE));
        Map<String, Object> settings = queue.settings();
        assertEquals(List.of(7000L, 1L, List.of(5L, 1000L), List.of(60_000L)),
                List.of(settings.get("ttr"), settings.get("maxlen"), settings.get("rate"), settings.get("backoff")));
        queue.add(1);
        assertThrows(QueueFullException.class, () -> queue.add(2));
        queue.pause();
        assertEquals(List.of(), queue.pop(1, null));
        queue.resume();
        assertEquals(1, queue.purge());
    }

    @Test
    void shardsAreAddedUp(Clock clock) {
        DqQueue sharded = queue.withShards(5);
        List<DqQueue.NewJob> jobs = new ArrayList<>();
        for (int n = 0; n < 2500; n++) {
            jobs.add(new DqQueue.NewJob(n, JobOptions.create().delay(Duration.ofHours(1))));
        }
        List<String> ids = sharded.addMany(jobs);
        assertEquals(2500, sharded.len(State.DELAYED));
        assertEquals(2500, sharded.stats().totals().get("added"));
        Set<String> seen = new HashSet<>();
        sharded.ids(seen::add);
        assertEquals(new HashSet<>(ids), seen);
        Instant now = clock.now();
        assertEquals(2500, sharded.forecast(now, now.plus(Duration.ofHours(2)), 2)[1]);
        String[] all = ids.toArray(String[]::new);
        assertEquals(2500, sharded.reschedule(Duration.ZERO, all));
        assertEquals(2500, sharded.reschedule(new RescheduleOptions().priority(3), all));
        assertEquals(15, sharded.peek(State.READY, 3).size());
        assertEquals(2500, sharded.deleteUnreserved(all));
        assertEquals(0, sharded.delete(all));
    }

    @Test
    void drainHandlesWhatIsReadyAndBecomesSo(Clock clock) {
        List<Integer> seen = new ArrayList<>();
        Worker worker = Worker.on(queue)
                .handler(Handler.of(Integer.class, (job, n) -> {
                    seen.add(n);
                    if (n < 3) {
                        queue.add(n + 1);
                    }
                }))
                .build();
        queue.add(1);
        queue.add(9, JobOptions.create().delay(Duration.ofHours(1)));
        assertEquals(3, worker.drain());
        clock.advance(Duration.ofHours(1));
        assertEquals(1, worker.drain());
        assertEquals(List.of(1, 2, 3, 9), seen);
        queue.add("no number".getBytes(), JobOptions.withId("bad"));
        assertEquals(1, worker.drain());
        assertEquals(State.DEAD, queue.get("bad").state());
        assertTrue(queue.get("bad").reason().startsWith("payload cannot be decoded: "));
    }

    @Test
    void aJobThatWasToldBeforeItsHandlerBeganIsNotAcknowledged() {
        Handler<Void> handler = Handler.of(job -> {
            throw new AssertionError("it ran");
        });
        Worker worker = Worker.on(queue).handler(handler).build();
        Link link = worker.links().get(0);
        queue.add(1, JobOptions.withId("a"));
        Job job = link.fetch(1, Duration.ofMillis(1)).get(0);
        job.handler = handler;
        job.tell(CancelReason.STOPPING);
        new Handling(List.of(), List.of()).handle(List.of(job));
        link.batcher().tellOutcomes();
        assertEquals(List.of(State.READY, 0), List.of(queue.get("a").state(), queue.get("a").attempts()));
    }

    @Test
    void aHookThatThrowsChangesNothing() {
        Worker worker = Worker.on(queue).handler(Handler.of(job -> {})).hooks(new Hooks() {
            @Override
            public void before(Job job) {
                throw new IllegalStateException("a hook that throws changes nothing");
            }
        }).build();
        queue.add(1, JobOptions.withId("a"));
        assertEquals(1, worker.drain());
        assertNull(queue.get("a"));
    }

    @Test
    void aWorkerRunsOnceAndItsConfigurationIsLookedAt() {
        assertThrows(ConfigurationException.class, () -> Worker.on().handler(Handler.of(job -> {})));
        assertThrows(ConfigurationException.class, () -> Worker.on(queue).build());
        assertThrows(IllegalArgumentException.class, () -> Worker.on(queue).weights(1, 2));
        assertThrows(IllegalArgumentException.class, () -> Worker.on(queue).weights(0));
        assertThrows(IllegalArgumentException.class, () -> Worker.on(queue).concurrency(0));
        Worker worker = Worker.on(queue).handler(Handler.of(job -> {})).build();
        worker.close(); // never started
        worker.start();
        assertThrows(IllegalStateException.class, worker::start);
        worker.close();
    }

    @Test
    void anAttemptIsASpanLinkedToItsProducers() {
        InMemorySpanExporter exporter = InMemorySpanExporter.create();
        Telemetry telemetry = new Telemetry(OpenTelemetrySdk.builder()
                .setTracerProvider(SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(exporter)).build())
                .setPropagators(ContextPropagators.create(W3CTraceContextPropagator.getInstance()))
                .build());
        Worker worker = Worker.on(queue)
                .hooks(telemetry)
                .handler(Handler.of(job -> {
                    throw new IllegalStateException("no paper");
                }))
                .build();
        queue.withHooks(telemetry).add(1);
        assertEquals(1, worker.drain());
        List<SpanData> spans = exporter.getFinishedSpanItems();
        assertEquals(List.of("send q", "process q"), spans.stream().map(SpanData::getName).toList());
        SpanData process = spans.get(1);
        assertEquals(StatusCode.ERROR, process.getStatus().getStatusCode());
        assertFalse(process.getParentSpanContext().isValid());
        assertEquals(spans.get(0).getSpanId(), process.getLinks().get(0).getSpanContext().getSpanId());
    }

    @Test
    void mistakesAreSaidBeforeAnythingIsSent() {
        try (DqQueue nowhere = DqQueue.connect("redis://127.0.0.1:1", "q")) {
            Duration wrong = Duration.ofSeconds(-5);
            Map<String, Runnable> mistakes = Map.ofEntries(
                    Map.entry("delay: -5000 ms is not between 0 and 4398046511103", () -> nowhere.add(1, JobOptions.create().delay(wrong))),
                    Map.entry("ttr: -5000 ms is not between 1 and", () -> nowhere.add(1, JobOptions.create().ttr(wrong))),
                    Map.entry("delay and at cannot be combined",
                            () -> nowhere.add(1, JobOptions.create().delay(MINUTE).at(Instant.EPOCH))),
                    Map.entry("backoff: -5000 ms is not between 0", () -> nowhere.add(1, JobOptions.create().backoff(wrong))),
                    Map.entry("every: -5000 ms is not between 1 and", () -> nowhere.every(wrong, 1, JobOptions.withId("r"))),
                    Map.entry("a recurring job needs an id: JobOptions.withId(",
                            () -> nowhere.every(MINUTE, 1, JobOptions.create())),
                    Map.entry("tz, first, until, times, grace and jitter are for every",
                            () -> nowhere.add(1, JobOptions.create().times(1))),
                    Map.entry("reschedule needs a new delay, at or", () -> nowhere.reschedule(new RescheduleOptions(), "a")),
                    Map.entry("reschedule needs a new due time", () -> nowhere.reschedule((Instant) null, "a")),
                    Map.entry("timeout: -5000 ms is not between 0 and", () -> nowhere.bpop(wrong, 1, null)),
                    Map.entry("a pause: -5000 ms is not between 0 and", () -> nowhere.pause(wrong)),
                    Map.entry("the window of rate: -5000 ms is not between 0 and", () -> new Settings().rate(1, wrong)),
                    Map.entry("backoff: -5000 ms is not between 0 and 4",
                            () -> Handler.of(job -> {}).backoff(MINUTE, wrong)),
                    Map.entry("delay: 6311390400000 ms is not between 0 and 4398046511103",
                            () -> nowhere.add(1, JobOptions.create().delay(Duration.ofMillis(6_311_390_400_000L)))),
                    Map.entry("at: 253402300800000 ms is not", () -> nowhere.add(1, JobOptions.create().at(Instant.parse("+10000-01-01T00:00:00Z")))),
                    Map.entry("attempts: -1 is not between 0 and 4294967295", () -> nowhere.add(1, JobOptions.create().attempts(-1))),
                    Map.entry("group: 0 bytes is not between 1 and 256", () -> nowhere.add(1, JobOptions.create().group(""))),
                    Map.entry("id: 1025 bytes is not between 1 and 1024", () -> nowhere.add(1, JobOptions.withId("x".repeat(1025)))),
                    Map.entry("id: \"*\" is not an id; leave it out for a new one", () -> nowhere.add(1, JobOptions.withId("*"))),
                    Map.entry("a recurring job comes by its rule: leave out delay and at",
                            () -> nowhere.every(MINUTE, 1, JobOptions.withId("r").delay(MINUTE))),
                    Map.entry("a lease must be longer than 0", () -> Handler.of(job -> {}).lease(Duration.ZERO)));
            mistakes.forEach((said, mistake) -> {
                RuntimeException found = assertThrows(RuntimeException.class, mistake::run, said);
                assertFalse(found instanceof DqException, said);
                assertTrue(found.getMessage().startsWith(said), found.getMessage() + ", not " + said);
            });
        }
    }

    @Test
    void idsAreData() {
        for (String id : List.of("IDS", "UNRESERVED", "PRIORITY", "7", "WITHTOKENS", "RESULTS", "DELAY")) {
            assertEquals(id, queue.add(1, JobOptions.withId(id)));
        }
        assertEquals(0, queue.delete("UNRESERVED ", "none"));
        assertEquals(2, queue.reschedule(MINUTE, "PRIORITY", "7", "zz"));
        assertEquals(0, queue.get("7").priority());
        Reserved popped = queue.popId("IDS", null);
        assertEquals(State.READY, queue.nack("IDS", popped.token(), NackOptions.silent()));
        popped = queue.popId("IDS", null);
        assertTrue(queue.ack("IDS", popped.token()) && !queue.ack("IDS", popped.token()));
        popped = queue.popId("WITHTOKENS", null);
        assertTrue(queue.ack("WITHTOKENS", popped.token(), "done"));
        popped = queue.popId("RESULTS", null);
        assertEquals(1, queue.ackMany(Map.of("RESULTS", popped.token(), "none", popped.token())));
        assertEquals(2, queue.delete("UNRESERVED", "7"));
        assertEquals(2, queue.len());
    }

    @Test
    void optionsOfTheCallerStayAsTheyAre() throws Exception {
        JobOptions options = JobOptions.withId("nightly");
        queue.every(MINUTE, 1, options);
        assertNull(queue.add(2, options), "it replaces nothing");
        Map<String, NewRule> rules = Map.of("report", NewRule.every(MINUTE, 1, JobOptions.create().header("tenant", "acme")));
        queue.rules("shop", rules);
        assertEquals(List.of("report"), queue.rules("shop", rules).kept());
        JobOptions shared = JobOptions.withId("once");
        assertThrows(TimedOutException.class, () -> queue.addAndWait(1, shared, Integer.class, Duration.ofMillis(1)));
        queue.delete("once");
        queue.add(1, shared);
        assertNull(queue.get("once").keep());
    }

    @Test
    void prefixesAndLengths() {
        queue.add("x".repeat(100), JobOptions.withId("long"));
        assertEquals(102, queue.get("long", 3).payloadBytes());
        assertEquals(3, queue.get("long", 3).payload().length);
        Peeked peeked = queue.peek(State.READY, 1, null, null, 0).get(0);
        assertEquals(102, peeked.payloadBytes());
        assertEquals(0, peeked.payload().length);
        assertEquals(0, queue.unblock(1, 2));
    }

    @Test
    void aJobAfterOneThatIsGoneNamesIt() {
        JobOptions after = JobOptions.create().after("gone");
        for (Runnable each : List.<Runnable>of(
                () -> queue.add(1, after),
                () -> queue.addMany(List.of(new DqQueue.NewJob(1, after), new DqQueue.NewJob(2))),
                () -> queue.addMany(List.of(
                        new DqQueue.NewJob(1, JobOptions.withId("new")),
                        new DqQueue.NewJob(2, JobOptions.create().after("new", "gone", "gone")))))) {
            String said = assertThrows(RefusedException.class, each::run).getMessage();
            assertTrue(said.contains("; not there: gone (") && said.contains("addMany"), said);
        }
        String[] many = IntStream.range(0, 25).mapToObj(String::valueOf).toArray(String[]::new);
        var said = assertThrows(RefusedException.class, () -> queue.add(1, JobOptions.create().after(many)));
        assertTrue(said.getMessage().contains("; not there: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 15 more ("), said.getMessage());
        queue.add(1, JobOptions.withId("waits"));
        Worker.on(queue).handler(Handler.of(job -> job.waitFor("gone", "gone")).attempts(1)).build().drain();
        String reason = queue.get("waits").reason();
        assertTrue(reason.endsWith("or by spawn (waited for: gone)"), reason);
        queue.add(1, JobOptions.withId("spawns"));
        DqQueue.NewJob first = new DqQueue.NewJob(1, JobOptions.withId("first").delay(Duration.ofHours(1)));
        DqQueue.NewJob second = new DqQueue.NewJob(2, JobOptions.create().after("first", "lost"));
        Worker.on(queue).handler(Handler.of(job -> job.spawn(first, second)).attempts(1)).build().drain();
        reason = queue.get("spawns").reason();
        assertTrue(reason.endsWith("or by spawn (waited for: lost)"), reason);
    }

    @Test
    void aRefusalNamesJobArgumentAndValue() {
        JobOptions options = JobOptions.withId("TZ").tz("Mars/TZ").kind("TZ");
        var said = assertThrows(RefusedException.class, () -> queue.cron("0 9 * * *", "TZ", options));
        String text = "job 'TZ' of queue 'q': the server refused tz='Mars/TZ': ERR TZ is not the name of a known time zone";
        assertEquals(text, said.getMessage());
        assertEquals(List.of("ERR", text.substring(text.indexOf("TZ is")), "TZ", "tz", "Mars/TZ"),
                List.of(said.code(), said.said(), said.id(), said.argument(), said.value()));
        assertEquals(1, Stream.of(said.getStackTrace()).filter(each -> each.getClassName().startsWith("io.github.redisdq")).count());
        queue.configure(new Settings().maxLen(2));
        List<DqQueue.NewJob> three = List.of(new DqQueue.NewJob(1), new DqQueue.NewJob(2), new DqQueue.NewJob(3, JobOptions.withId("c").priority(1)));
        var full = assertThrows(QueueFullException.class, () -> queue.addMany(three));
        assertEquals(List.of("MAXLEN", "c"), List.of(full.code(), full.id()));
        assertTrue(full.getMessage().endsWith("; 2 of 3 jobs were added"), full.getMessage());
    }
}

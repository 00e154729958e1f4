package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Jobs and handlers without a server. */
class TestJobTest {
    private static final Duration MONTH = Duration.ofDays(30);
    private static final Duration HOUR = Duration.ofHours(1);

    private final List<String> charges = new ArrayList<>();

    private Object sold(Job job) throws Exception {
        job.step("charge", () -> charges.add("charged"));
        job.sleep("trial", MONTH);
        job.progress(0.5);
        return job.waitSignal("signed", String.class, HOUR);
    }

    @Test
    void aRunGoesOnWhereItWas() {
        TestRun run = TestJob.of(1).signal("signed", "Ada").run(Handler.returning(this::sold).kind("order"));
        assertEquals(List.of(State.DONE, "Ada", 1, List.of("charged"), List.of(MONTH)),
                List.of(run.state(), run.result(String.class), run.attempts(), charges, run.waits()));
        assertEquals(List.of("order", "order", "order"), run.jobs().stream().map(Job::kind).toList());
        TestRun late = TestJob.of(1).attempts(1).run(Handler.returning(this::sold));
        assertEquals(List.of(State.DEAD, List.of(MONTH, HOUR), 1), List.of(late.state(), late.waits(), late.attempts()));
        assertEquals("TimedOutException: job '1': no signal signed within PT1H", late.reason());
        assertEquals(State.BLOCKED, TestJob.of(1).run(Handler.of(job -> job.waitSignal("signed", String.class))).state());
    }

    @Test
    void aJobForAUnitTest() throws Exception {
        Job job = TestJob.of(Map.of("n", 1)).id("17").kind("order").header("tenant", "acme").queue("orders").attempt(3).attempts(3)
                .result("a", JobOutcome.DONE, 5).result("b", JobOutcome.DEAD, "no").job();
        assertEquals(List.of("17", "order", Map.of("tenant", "acme"), "orders", 3, true, Map.of("n", 1)),
                List.of(job.id(), job.kind(), job.headers(), job.queue(), job.attempt(), job.isLastAttempt(), job.data(Map.class)));
        assertEquals(List.of("a: done", "b: dead"), job.results().stream().map(JobResult::toString).toList());
        assertEquals(List.of(5, "no"), List.of(job.results().get(0).value(Integer.class), job.results().get(1).reason()));
        assertEquals(7, job.step("charge", Integer.class, () -> 7));
        job.setCost(3);
        assertEquals("Ada", TestJob.of(1).signal("signed", "Ada").job().waitSignal("signed", String.class));
        assertThrows(IllegalArgumentException.class, () -> job.progress(2));
        for (Handler<?> asks : List.of(
                Handler.of(each -> each.once("a", "return 1", List.of(), List.of())),
                Handler.of(each -> each.spawn(new DqQueue.NewJob(1))),
                Handler.of(each -> each.waitFor("a")),
                Handler.of(each -> Guard.call(() -> each.spawn(new DqQueue.NewJob(1)))))) {
            String said = assertThrows(DqException.class, () -> TestJob.of(1).run(asks)).getMessage();
            assertTrue(said.endsWith(" needs a server: see DqServer"), said);
        }
    }

    private static Handler<Void> failing(Exception error) {
        return Handler.of(job -> {
            throw error;
        });
    }

    record Case(Handler<?> handler, TestJob job, State state, String reason, int attempts, List<Duration> waits) {}

    static List<Case> ladders() {
        Exception no = new IllegalStateException("no");
        Duration[] steps = {Duration.ofSeconds(5), Duration.ofSeconds(7), Duration.ofSeconds(7)};
        List<Duration> servers = Collections.nCopies(99, null);
        return List.of(
                new Case(failing(no).attempts(3).backoff(steps), TestJob.of(1), State.DEAD, "no", 3, List.of(steps[0], steps[1])),
                new Case(failing(no).backoff(HOUR), TestJob.of(1).attempts(4).backoff(steps[0], steps[1]), State.DEAD, "no", 4, List.of(steps)),
                new Case(failing(no), TestJob.of(1).attempts(3), State.DEAD, "no", 3, servers.subList(0, 2)),
                new Case(failing(no), TestJob.of(1).attempts(2).backoff(), State.DEAD, "no", 2, List.of()),
                new Case(failing(no), TestJob.of(1).attempt(7).attempts(7), State.DEAD, "no", 7, List.of()),
                new Case(failing(no).giveUpOn(IllegalStateException.class), TestJob.of(1), State.DEAD, "no", 1, List.of()),
                new Case(failing(new RetryException(HOUR, "busy")), TestJob.of(1).attempts(2), State.DEAD, "busy", 2, List.of(HOUR)),
                new Case(failing(new GiveUpException("no")), TestJob.of(1), State.DEAD, "no", 1, List.of()),
                new Case(Handler.returning(job -> Double.NaN), TestJob.of(1), State.DEAD, "result cannot be encoded", 1, List.of()),
                new Case(failing(no), TestJob.of(1), State.DELAYED, "no", 100, Arrays.asList(Collections.nCopies(100, null).toArray(Duration[]::new))),
                new Case(failing(new SnoozeException(HOUR)), TestJob.of(1), State.DELAYED, "null", 0, Collections.nCopies(100, HOUR)));
    }

    @ParameterizedTest
    @MethodSource("ladders")
    void aRunWalksTheLadder(Case each) {
        TestRun run = each.job.run(each.handler);
        assertEquals(List.of(each.state, each.attempts), List.of(run.state(), run.attempts()));
        assertEquals(each.waits, run.waits());
        assertTrue(String.valueOf(run.reason()).contains(each.reason), run.reason());
    }

    @Test
    void aRunChoosesAmongHandlersByKind() {
        Handler<Integer> twice = Handler.returning(Integer.class, (job, n) -> n * 2).kind("double");
        Handler<Integer> half = Handler.returning(Integer.class, (job, n) -> n / 2).kind("half");
        assertEquals(8, TestJob.of(4).kind("double").run(half, twice).result(Integer.class));
        assertThrows(DqException.class, () -> TestJob.of(4).kind("other").run(twice));
    }

    @Test
    @SuppressWarnings("removal")
    void aQueueInMemoryNamesItsSuccessor() {
        var gone = assertThrows(UnsupportedOperationException.class, () -> InlineQueue.of("q", Handler.of(job -> {})));
        assertTrue(gone.getMessage().contains("TestJob.of(data).run(handler)"), gone.getMessage());
    }
}

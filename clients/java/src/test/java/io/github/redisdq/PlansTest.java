package io.github.redisdq;

import static io.github.redisdq.Deliveries.job;
import static io.github.redisdq.Deliveries.plain;
import static io.github.redisdq.Deliveries.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is written, heard and waited for, and when: instants are given. */
class PlansTest {
    private static final long MS = 1_000_000;

    @ParameterizedTest
    @CsvSource({"0, '', 0", "1, , 1", "0.4, rendering, 0.4 rendering", "0.12345, x, 0.123 x", "0.9996, '', 1", "0.0004, '', 0"})
    void progressInWords(double fraction, String text, String shown) {
        assertEquals(shown, Bytes.text(Progress.text(fraction, text)));
    }

    @ParameterizedTest
    @CsvSource({"NaN", "-0.1", "1.1", "Infinity"})
    void whatIsNoProgress(double fraction) {
        assertThrows(IllegalArgumentException.class, () -> Progress.text(fraction, null));
    }

    @Test
    void progressIsWrittenOnceASecond() {
        long now = Long.MAX_VALUE - 3; // System.nanoTime may run over
        Progress progress = new Progress();
        assertNull(progress.take(now));
        progress.report(Bytes.of("1"), now);
        assertEquals("1", Bytes.text(progress.take(now)));
        progress.report(Bytes.of("2"), now + 1);
        progress.report(Bytes.of("3"), now + 2);
        assertNull(progress.take(now + Progress.PAUSE_NS - 1));
        assertEquals(now + Progress.PAUSE_NS, progress.dueAt(now + 2 * Progress.PAUSE_NS));
        assertEquals("3", Bytes.text(progress.take(now + Progress.PAUSE_NS)));
        progress.putBack();
        assertEquals("3", Bytes.text(progress.take(now + Progress.PAUSE_NS)), "it was not written");
        progress.written();
        assertNull(progress.takeLast());
        progress.report(Bytes.of("4"), now);
        progress.take(now + 2 * Progress.PAUSE_NS);
        assertEquals("4", Bytes.text(progress.takeLast()), "the end may overtake what is on its way");
        progress.report(Bytes.of("5"), now);
        assertEquals("5", Bytes.text(progress.takeLast()), "whatever the time");
    }

    /** The last case: by less than has passed since the first look. What died right after it did so at 4 970 000. */
    @ParameterizedTest
    @CsvSource({"5060000, 5000000", "4000000, 3940000", "5030000, 4970000"})
    void deathsAreLookedForByAClockThatWasSetBack(long nowMs, long fromMs) {
        long begun = Long.MAX_VALUE - 3;
        Deaths.Place place = new Deaths.Place(null, null);
        place.lookAt(5_000_000, begun, begun);
        place.lookAt(nowMs, begun + 60_000 * MS, begun);
        assertEquals(fromMs, place.fromMs);
    }

    private static Job taken(long at) {
        Job job = job("1");
        job.takenAt = at;
        return job;
    }

    @Test
    void theEarIsAskedForJobsThatAreOldEnough() {
        Listening plan = new Listening();
        Job first = taken(0);
        Job young = taken(15 * MS);
        assertEquals(20 * MS, plan.dueAt(List.of(first, young), Long.MAX_VALUE));
        assertEquals(List.of(), plan.ask(List.of(first, young), 19 * MS), "nobody is old");
        assertFalse(plan.isWaiting());
        assertEquals(List.of(first, young), plan.ask(List.of(first, young), 20 * MS), "all, as one is");
        assertTrue(plan.isWaiting());
        assertEquals(Long.MAX_VALUE, plan.dueAt(List.of(first, young), Long.MAX_VALUE), "all are covered");
        Job later = taken(21 * MS);
        assertEquals(41 * MS, plan.dueAt(List.of(first, later), Long.MAX_VALUE));
        assertEquals(40 * MS, plan.dueAt(List.of(taken(1)), Long.MAX_VALUE), "not more often than that");
        plan.answered();
        assertEquals(40 * MS, plan.dueAt(List.of(first), Long.MAX_VALUE), "those that were covered are not any more");
        plan.holdOff(100 * MS);
        assertEquals(120 * MS, plan.dueAt(List.of(first), Long.MAX_VALUE));
        assertTrue(plan.refused());
        assertFalse(plan.refused(), "said once");
        assertEquals(Long.MAX_VALUE, plan.dueAt(List.of(first), Long.MAX_VALUE));
        assertEquals(List.of(), plan.ask(List.of(first), 999 * MS));
    }

    @Test
    void aPulse() {
        Liveness liveness = new Liveness();
        assertNotNull(liveness.trouble(5, 10), "not before the first answer");
        liveness.heard(5);
        assertNull(liveness.trouble(15, 10));
        assertNotNull(liveness.trouble(16, 10));
        liveness.failed("connection refused");
        assertEquals("connection refused", liveness.trouble(15, 10));
        liveness.heard(16);
        assertNull(liveness.trouble(16, 10));
    }

    @Test
    void whoWaitsIsToldAndNewOnesAreAskedFor() throws Exception {
        WaitList list = new WaitList();
        CompletableFuture<JobResult> one = list.add("a");
        CompletableFuture<JobResult> same = list.add("a");
        assertFalse(list.isMissing(), "nobody asks yet");
        assertEquals(List.of("a"), list.next(60_000));
        assertFalse(list.isMissing());
        CompletableFuture<JobResult> other = list.add("b");
        assertTrue(list.isMissing());
        assertEquals(List.of("a", "b"), list.next(60_000));
        assertFalse(list.isMissing());
        list.answered(List.of(new JobResult("a", JobOutcome.DONE, Bytes.of("7"), Codec.json())));
        assertEquals(List.of(7, 7), List.of(one.get().value(Integer.class), same.get().value(Integer.class)));
        assertEquals(List.of("b"), list.next(60_000));
        list.remove("b", other);
        CompletableFuture<JobResult> last = list.add("c");
        assertEquals(List.of("c"), list.next(60_000));
        list.close();
        assertTrue(last.isCompletedExceptionally() && list.add("d").isCompletedExceptionally());
        assertEquals(List.of(), list.next(60_000));
    }

    @Test
    void errorsThatAreFinal() {
        Handler<Void> only = plain().retryOn(IllegalStateException.class);
        Handler<Void> but = plain().giveUpOn(IllegalArgumentException.class);
        assertEquals("[DQ.NACK]", ended(only, new IllegalStateException("x")));
        assertEquals("[FATAL]", ended(only, new RuntimeException("x")));
        assertEquals("[FATAL]", ended(but, new NumberFormatException("x")));
        assertEquals("[DQ.NACK]", ended(but, new IllegalStateException("x")));
        assertEquals("[DQ.NACK]", ended(only, new RetryException(Duration.ofSeconds(1))), "it is what the handler says");
    }

    private static String ended(Handler<Void> handler, Throwable error) {
        String said = texts(Outcome.ended(job(handler, 1, ""), error)).get(0);
        return said.contains("FATAL") ? "[FATAL]" : "[DQ.NACK]";
    }

    @Test
    void aHandlerThatHadItsTime() {
        Job job = job(plain().timeout(Duration.ofMillis(1500)).backoff(Duration.ofSeconds(7)), 1, "");
        assertTrue(texts(Outcome.timedOut(job)).get(0).endsWith("DELAY 7000 REASON timeout after 1.5 s"));
        Job last = job(plain().timeout(Duration.ofSeconds(30)).attempts(1), 1, "");
        assertTrue(texts(Outcome.timedOut(last)).get(0).endsWith("FATAL REASON timeout after 30 s"));
        assertThrows(IllegalArgumentException.class, () -> plain().timeout(Duration.ZERO));
    }

    @Test
    void aResultGoesWithTheAcknowledgement() {
        Job job = job("1");
        job.succeed(List.of(1, 2));
        job.encode();
        Outcome done = Outcome.ended(job, null);
        assertTrue(texts(done).get(0).endsWith("RESULTS IDS 1 id 1882361448423751680 [1,2]"));
        assertEquals("the result", done.weaken(new RefusedException("ERR too large")));
        assertTrue(texts(done).get(0).startsWith("DQ.ACK q WITHTOKENS"));
        job.succeed(Double.NaN);
        Throwable error = Guard.call(job::encode);
        String said = texts(Outcome.ended(job, new UnencodableException(Guard.text(error), error))).get(0);
        assertTrue(said.contains("FATAL REASON result cannot be encoded: DqException: "), said);
        job.succeed("x");
        job.encode();
        Outcome cut = Outcome.ended(job, null);
        assertEquals("the result", cut.cut(new RefusedException("the connection ended")));
        assertTrue(texts(cut).get(0).endsWith("FATAL REASON result cannot be stored: 3 bytes"), texts(cut).get(0));
        assertTrue(Outcome.ended(job, null).isRefused(new RefusedException("OOM command not allowed")));
    }

    @Test
    void whatIsAroundAHandler() throws Exception {
        List<String> seen = new ArrayList<>();
        Around outer = (job, next) -> {
            seen.add("outer");
            return "<" + next.call() + ">";
        };
        Around inner = (job, next) -> {
            seen.add("inner");
            return next.call() + "!";
        };
        Handler<Void> handler = Handler.returning(job -> 7);
        assertEquals("<7!>", new Layers(List.of(outer, inner)).run(handler, List.of(job("1"))));
        assertEquals(List.of("outer", "inner"), seen);
        Around decides = (job, next) -> "no";
        assertEquals("no", new Layers(List.of(decides, inner)).run(handler, List.of(job("1"))));
        assertEquals(2, seen.size());
    }
}

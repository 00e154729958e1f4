package io.github.redisdq;

import static io.github.redisdq.Deliveries.TOKEN;
import static io.github.redisdq.Deliveries.text;
import static io.github.redisdq.Deliveries.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Test;

/** What an attempt decides by what is kept, without a server. */
class StepsTest {
    /** What the job asks of the world. */
    private static final class World implements Job.Context {
        final List<String> asked = new ArrayList<>();
        Object answer = 1L;
        boolean isLost;

        @Override
        public Object ask(Job job, Words command) {
            asked.add(text(command.all(), 0));
            return answer;
        }

        @Override
        public void lose(Job job) {
            isLost = true;
            job.tell(CancelReason.LOST);
        }

        @Override
        public void report(Job job) {}

        @Override
        public String childId(Job parent, String given, String like) {
            return given == null ? like : given;
        }

        @Override
        public Words adding(Job parent, String id, DqQueue.NewJob child) {
            return Adding.child(parent.rawKey, id, child, new Adding.To(new Shards(null, parent.queue(), 0), Codec.json(), List.of()));
        }
    }

    private final World world = new World();
    private Job job;

    /** {@code kept}: names and values, in turn. */
    private Job job(List<Object> results, String... kept) {
        List<Object> steps = Arrays.stream(kept).map(each -> (Object) Bytes.of(each)).toList();
        List<Object> row = Deliveries.row(Bytes.of("1"), 1, results, steps, Deliveries.terms(0, null));
        job = new Job(Bytes.of("q"), row, Codec.json(), world);
        job.handler = Deliveries.plain();
        return job;
    }

    private List<String> end() {
        return end(Outcome.suspended(job));
    }

    private static List<String> end(Outcome outcome) {
        return texts(outcome).stream()
                .map(each -> each.replace(Bytes.text(TOKEN), "T").replace(Outcome.ALL_OR_REFUSED, "script"))
                .toList();
    }

    private static List<Object> ended(String id, String outcome, String value) {
        return Arrays.asList(Bytes.of(id), Bytes.of(outcome), value == null ? null : Bytes.of(value));
    }

    @Test
    void aStepRunsOnceAndItsValueComesBack() throws Exception {
        assertEquals(7, job(List.of()).step("charge", Integer.class, () -> 7));
        assertEquals(List.of("DQ.STEP q id 1882361448423751680 charge 7"), world.asked);
        Job later = job(List.of(), "charge", "7", "nothing", "", "dq:wait:x", "over");
        assertEquals(7, later.step("charge", Integer.class, () -> {
            throw new AssertionError("it ran again");
        }));
        assertNull(later.step("nothing", String.class, () -> "again"));
        assertEquals(1, world.asked.size());
        assertEquals(List.of("charge", "nothing"), List.copyOf(later.steps().keySet()));
    }

    @Test
    void whatAStepThrowsIsTheHandlersError() {
        Job job = job(List.of());
        assertThrows(CancellationException.class, () -> job.step("charge", () -> {
            throw new CancellationException();
        }));
        assertEquals(List.of(), world.asked);
    }

    @Test
    void aJobThatIsLostKeepsNothing() {
        world.answer = null;
        Job job = job(List.of());
        CancelledException error = assertThrows(CancelledException.class, () -> job.step("charge", Integer.class, () -> 7));
        assertEquals("lost", error.getMessage());
        assertTrue(world.isLost);
        assertThrows(CancelledException.class, () -> job.sleep("nap", Duration.ofDays(1)));
    }

    @Test
    void namesAreUsedOnceAndAreNotOurs() throws Exception {
        Job job = job(List.of());
        job.step("a", Integer.class, () -> 1);
        for (String name : List.of("a", "dq:a", "", "x".repeat(257))) {
            assertThrows(RuntimeException.class, () -> job.step(name, Integer.class, () -> 2), name);
            assertThrows(RuntimeException.class, () -> job.sleep(name, Duration.ofDays(1)), name);
            assertThrows(RuntimeException.class, () -> job.waitSignal(name, String.class), name);
        }
        assertFalse(job.isSuspended());
    }

    @Test
    void aSleepEndsTheAttemptOnce() {
        Job job = job(List.of());
        assertThrows(SuspendedError.class, () -> job.sleep("nap", Duration.ofSeconds(3)));
        assertEquals(List.of("EVAL script 1 q 6 DQ.STEP q id T nap  8 DQ.NACK q id TOKEN T SILENT DELAY 3000"), end());
        assertTrue(job.isSuspended());
        assertThrows(SuspendedError.class, () -> job.step("after", Integer.class, () -> 1), "it has ended");
        assertThrows(SuspendedError.class, job::check);
        assertThrows(SuspendedError.class, () -> job.progress(1));
        job(List.of(), "nap", "").sleep("nap", Duration.ofSeconds(3));
    }

    @Test
    void aSignalIsAwaited() {
        assertThrows(SuspendedError.class, () -> job(List.of()).waitSignal("signed", String.class));
        assertEquals(List.of("DQ.NACK q id TOKEN T SILENT AWAIT signed"), end());
        assertEquals("Ada", job(List.of(), "signed", "\"Ada\"").waitSignal("signed", String.class));
        assertNull(job(List.of(), "signed", "").waitSignal("signed", String.class));
    }

    @Test
    void aSignalIsAwaitedForSoLong() throws Exception {
        Duration second = Duration.ofSeconds(1);
        assertThrows(SuspendedError.class, () -> job(List.of()).waitSignal("s", String.class, second));
        String nack = "DQ.NACK q id TOKEN T SILENT AWAIT s DELAY 1000";
        assertEquals(List.of("EVAL script 1 q 6 DQ.STEP q id T dq:wait:s waiting 10 " + nack), end());
        assertEquals("x", job(List.of(), "dq:wait:s", "waiting", "s", "\"x\"").waitSignal("s", String.class, second));
        assertEquals(List.of(), world.asked);
        Job late = job(List.of(), "dq:wait:s", "waiting");
        assertThrows(TimedOutException.class, () -> late.waitSignal("s", String.class, second));
        assertEquals(List.of("DQ.STEP q id 1882361448423751680 dq:wait:s over"), world.asked);
        Job over = job(List.of(), "dq:wait:s", "over", "s", "\"x\"");
        assertThrows(TimedOutException.class, () -> over.waitSignal("s", String.class, second), "it came too late");
        assertEquals(1, world.asked.size());
    }

    @Test
    void otherJobsAreAwaited() throws Exception {
        assertThrows(SuspendedError.class, () -> job(List.of()).waitFor("b", "a"));
        assertEquals(List.of("DQ.NACK q id TOKEN T SILENT AFTER 2 b a ONDEAD RUN"), end());
        List<Object> rows = List.of(ended("b", "dead", "no room"), ended("a", "done", "1"), ended("c", "deleted", null));
        List<JobResult> found = job(rows).waitFor("b", "a", "c");
        assertEquals(List.of("b: dead", "a: done", "c: deleted"), found.stream().map(JobResult::toString).toList());
        assertEquals("no room", found.get(0).reason());
        assertEquals(1, found.get(1).value(Integer.class));
        assertNull(found.get(2).reason());
        String kept = world.asked.get(0).split("dq:after:1 ")[1];
        assertEquals("[[\"b\",\"dead\",\"bm8gcm9vbQ==\"],[\"a\",\"done\",\"MQ==\"],[\"c\",\"deleted\",null]]", kept);
        Job later = job(List.of(), "dq:after:1", kept);
        assertEquals(found, later.waitFor("b", "a", "c"));
        assertThrows(SuspendedError.class, () -> later.waitFor("d"), "the second one");
        assertEquals(List.of("DQ.NACK q id TOKEN T SILENT AFTER 1 d ONDEAD RUN"), end());
        assertEquals(List.of(), job(List.of()).waitFor());
    }

    @Test
    void jobsAreSpawnedByWhatWaitsForThem() {
        Job job = job(List.of());
        DqQueue.NewJob named = new DqQueue.NewJob(2, JobOptions.withId("two").attempts(3));
        assertThrows(SuspendedError.class, () -> job.spawn("parts", JobOptions.OnDead.DIE, List.of(new DqQueue.NewJob(1), named)));
        String nack = "DQ.NACK q id TOKEN T SILENT AFTER 2 id/parts/0 two ONDEAD DIE";
        assertEquals(List.of("EVAL script 1 q 4 DQ.ADD q id/parts/0 1 6 DQ.ADD q two 2 ATTEMPTS 3 12 " + nack), end());
    }

    @Test
    void whatTheServerRefusesHasFailed() {
        assertThrows(SuspendedError.class, () -> job(List.of()).waitFor("never there"));
        RefusedException said = new RefusedException("ERR job never there is not in the queue");
        Outcome end = Outcome.suspended(job);
        assertTrue(end.isRefused(said) && end.isRefused(new RefusedException("MAXLEN queue is full")));
        assertEquals("the wait", end.weaken(said));
        assertEquals("DQ.NACK q id TOKEN T REASON ERR job never there is not in the queue", end(end).get(0));
    }

    @Test
    void whatASleepAnswers() {
        assertThrows(SuspendedError.class, () -> job(List.of()).sleep("nap", Duration.ofSeconds(3)));
        Outcome end = Outcome.suspended(job);
        assertEquals(Outcome.Answer.LOST, end.answered(null));
        assertEquals(Outcome.Answer.SETTLED, end.answered(Bytes.of("delayed")));
        end.sending();
        assertEquals(Outcome.Answer.SETTLED, end.answered(null), "the first one may have done it");
    }

    @Test
    void aBatchCannotWait() {
        Job job = job(List.of());
        job.handler = Handler.ofBatch(2, jobs -> {});
        assertThrows(IllegalStateException.class, () -> job.sleep("nap", Duration.ofSeconds(3)));
        assertFalse(job.isSuspended());
    }

    @Test
    void theLastProgressGoesWithTheEnd() {
        Job job = job(List.of());
        job.progress(0.25, "a");
        job.progress(1, "all");
        Outcome end = Outcome.ended(job, null);
        assertEquals(List.of("DQ.TOUCH q id TOKEN T PROGRESS 1 all", "DQ.ACK q WITHTOKENS IDS 1 id T"),
                texts(end).stream().map(each -> each.replace(Bytes.text(TOKEN), "T")).toList());
        assertEquals(1L, end.answer(List.of(new RefusedException("ERR whatever"), 1L)));
        assertNotNull(end.answer(Arrays.asList(null, 1L)));
    }
}

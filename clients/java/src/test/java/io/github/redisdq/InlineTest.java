package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Handlers without a server. */
@Timeout(30)
class InlineTest {
    private final List<String> seen = new ArrayList<>();

    @Test
    void aHandlerRunsInAddAndItsResultIsThere() throws Exception {
        DqQueue queue = InlineQueue.of("q", Handler.returning(Integer.class, (job, n) -> n * n));
        assertEquals("a", queue.add(3, JobOptions.withId("a").delay(Duration.ofDays(1))));
        assertEquals(9, queue.result("a", Integer.class));
        assertEquals(9, queue.wait("a", Integer.class, Duration.ofSeconds(10)));
        assertEquals(16, queue.addAndWait(4, JobOptions.create(), Integer.class, Duration.ofSeconds(10)));
        assertThrows(JobFailedException.class, () -> queue.wait("never there", Integer.class, Duration.ofSeconds(10)));
    }

    @Test
    void whatAHandlerThrowsComesOut() {
        DqQueue queue = InlineQueue.of("q", Handler.of(job -> {
            throw new IllegalStateException("no");
        }));
        assertThrows(IllegalStateException.class, () -> queue.add(1, JobOptions.withId("a")));
        JobFailedException error = assertThrows(JobFailedException.class, () -> queue.result("a", Integer.class));
        assertEquals("IllegalStateException: no", error.reason());
        assertThrows(RefusedException.class, queue::stats);
    }

    @Test
    void stepsAndSleepsGoOnAndASignalWakes() throws Exception {
        DqQueue queue = InlineQueue.of("q", Handler.returning(job -> {
            seen.add("begins");
            int charge = job.step("charge", Integer.class, () -> {
                seen.add("charges");
                return 7;
            });
            job.sleep("trial", Duration.ofDays(30));
            return charge + job.waitSignal("paid", Integer.class);
        }));
        queue.add(1, JobOptions.withId("a"));
        assertEquals(List.of("begins", "charges", "begins"), seen);
        assertThrows(TimedOutException.class, () -> queue.wait("a", Integer.class, Duration.ofMillis(30)));
        assertEquals(true, queue.signal("a", "paid", 5));
        assertEquals(12, queue.result("a", Integer.class));
        assertNull(queue.signal("a", "paid", 6));
    }

    @Test
    void jobsWaitForOneAnother() {
        DqQueue queue = InlineQueue.of("q", Handler.returning(String.class, (job, data) -> {
            seen.add(data + job.results());
            if (data.equals("bad")) {
                throw new GiveUpException("no");
            }
            if (!data.equals("fork")) {
                return data;
            }
            return job.spawn(new DqQueue.NewJob("x"), new DqQueue.NewJob("bad")).toString();
        }));
        List<String> ids = queue.chain(List.of(new DqQueue.NewJob("a"), new DqQueue.NewJob("b")));
        assertEquals(List.of("a[]", "b[" + ids.get(0) + ": done]"), seen);
        queue.add("late", JobOptions.withId("late").after("never there"));
        assertEquals("late[never there: unknown]", seen.get(2));
        queue.add("fork", JobOptions.withId("f"));
        assertEquals("[f/1/0: done, f/1/1: dead]", queue.result("f", String.class));
        assertEquals(2, queue.addMany(List.of(new DqQueue.NewJob("m"), new DqQueue.NewJob("n"))).size());
    }
}

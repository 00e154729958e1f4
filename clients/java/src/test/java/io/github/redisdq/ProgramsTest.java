package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqServer;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Rules beside their handlers, and the hook of dead jobs. What workers do with them is in the behaviour suite. */
class ProgramsTest extends OnServer {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private final List<String> ran = new ArrayList<>();

    private Handler<?> counting() {
        return Handler.of(Map.class, (job, data) -> ran.add(job.kind() + " of " + data.get("of")));
    }

    @Test
    void aRuleHasTheKindOfItsHandlerAndItsOwnData(Clock clock) {
        JobOptions options = JobOptions.create().tz("Europe/Berlin").times(3).keep(MINUTE);
        Worker worker = Worker.on(queue)
                .handler(Handler.of(job -> ran.add("nightly")).kind("nightly").attempts(2).cron("30 2 * * *", null, options))
                .handler(counting().every(MINUTE, Map.of("of", "orders"), JobOptions.withId("each minute")).kind("count"))
                .build();
        assertEquals(0, worker.drain());
        JobInfo nightly = queue.get("nightly");
        assertEquals(List.of("nightly", MINUTE, "30 2 * * *", "Europe/Berlin", 3L),
                List.of(nightly.label(), nightly.keep(), nightly.rule().cron(), nightly.rule().tz(), nightly.rule().times()));
        clock.advance(MINUTE);
        worker.drain();
        clock.advance(Duration.ofDays(1));
        worker.drain();
        assertEquals(List.of("count of orders", "nightly"), ran.stream().distinct().toList());
    }

    @Test
    void aRuleThatIsOverEndsNoWorker() {
        JobOptions over = JobOptions.withId("over").until(Instant.parse("2001-01-01T00:00:00Z"));
        assertEquals(0, Worker.on(queue).handler(counting().every(MINUTE, null, over)).build().drain());
        assertNull(queue.get("over"));
    }

    @Test
    void aRuleThatFindsNoRoomEndsNoWorker() {
        queue.configure(new Settings().maxLen(1));
        queue.add(Map.of("of", "all"));
        Handler<?> handler = counting().every(MINUTE, null, JobOptions.withId("late"));
        assertEquals(1, Worker.on(queue).handler(handler).build().drain());
        assertNull(queue.get("late"));
        Worker.on(queue).handler(handler).build().drain();
        assertNotNull(queue.get("late"));
    }

    @Test
    void whatIsNoRuleBesideAHandler() {
        Handler<?> unnamed = counting().every(MINUTE, null, JobOptions.create());
        assertThrows(IllegalArgumentException.class, () -> Worker.on(queue).handler(unnamed).build());
        Handler<?> other = counting().kind("a").every(MINUTE, null, JobOptions.create().kind("b"));
        assertThrows(IllegalArgumentException.class, () -> Worker.on(queue).handler(other).build());
        Handler<?> bad = counting().kind("bad").cron("* * * * *", null, JobOptions.create().tz("Europe/Berln"));
        Worker worker = Worker.on(queue).handler(bad).build();
        String text = assertThrows(ConfigurationException.class, worker::drain).getMessage();
        assertTrue(text.contains("job 'bad' of queue 'q': the server refused tz='Europe/Berln'"), text);
    }

    // --- The hook of dead jobs

    private static final class Dead implements Hooks {
        final List<JobInfo> jobs = new ArrayList<>();

        @Override
        public void dead(String queue, JobInfo job) {
            jobs.add(job);
            if (jobs.size() % 2 == 1) {
                throw new IllegalStateException("of a hook");
            }
        }

        List<String> ids() {
            return jobs.stream().map(JobInfo::id).sorted().toList();
        }
    }

    private static void fail(Job job) {
        throw new GiveUpException("no such order");
    }

    private Worker hearing(Hooks hooks) {
        return Worker.on(queue).handler(Handler.of(ProgramsTest::fail).kind("sell").lease(MINUTE)).hooks(hooks).build();
    }

    @Test
    void theHookOfDeadJobsHasTheirRecords(Clock clock) {
        Dead dead = new Dead();
        queue.add(Map.of("order", 17), JobOptions.withId("a").kind("sell").header("by", "ann").label("other"));
        queue.cron("0 3 * * *", Map.of("n", 1), JobOptions.withId("daily").kind("sell"));
        Worker worker = hearing(dead);
        worker.drain();
        clock.advance(Duration.ofDays(1));
        worker.drain();
        JobInfo job = dead.jobs.get(0);
        assertEquals(List.of("a", "no such order", "sell", Map.of("by", "ann"), "other"),
                List.of(job.id(), job.reason(), job.kind(), job.headers(), job.label()));
        assertEquals(Map.of("order", 17), job.data(Map.class));
        assertTrue(dead.jobs.get(1).id().startsWith("daily@"), dead.ids().toString());
        assertEquals(2, dead.jobs.size());
    }

    private List<String> add(int count, JobOptions options) {
        List<DqQueue.NewJob> jobs = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            jobs.add(new DqQueue.NewJob(n, options));
        }
        return queue.addMany(jobs).stream().sorted().toList();
    }

    @Test
    void manyDeathsAreToldOnceThoughFewMayWait(Clock clock) {
        Dead dead = new Dead();
        Worker worker = hearing(dead);
        List<String> all = new ArrayList<>(add(2 * Deaths.MOST + 500, JobOptions.create().kind("sell")));
        assertEquals(all.size(), worker.drain());
        assertEquals(all, dead.ids(), "of their ends");
        all.addAll(add(2 * Deaths.MOST + 500, JobOptions.create().kind("sell").attempts(1)));
        queue.pop(3 * Deaths.MOST, MINUTE);
        clock.advance(MINUTE);
        worker.drain();
        worker.drain();
        assertEquals(all.stream().sorted().toList(), dead.ids(), "of their leases, all in one instant");
    }

    @Test
    @Timeout(60)
    void aSecondStopEndsAlsoItsDrain() throws InterruptedException {
        CountDownLatch hangs = new CountDownLatch(1);
        CountDownLatch called = new CountDownLatch(1);
        CountDownLatch handling = new CountDownLatch(1);
        Worker worker = Worker.on(queue)
                .handler(Handler.of(ProgramsTest::fail).kind("dies"))
                .handler(Handler.of(job -> {
                    handling.countDown();
                    Guard.call(hangs::await);
                }))
                .hooks(new Hooks() {
                    @Override
                    public void dead(String queue, JobInfo job) {
                        called.countDown();
                        Guard.call(hangs::await);
                    }
                })
                .concurrency(2)
                .drain(Duration.ofHours(1))
                .build();
        String log = log(() -> {
            worker.start();
            add(1001, JobOptions.create().kind("dies"));
            called.await();
            WorkerTest.until(() -> queue.len(State.DEAD) == 1001);
            queue.add(1);
            handling.await();
            worker.stop();
            worker.close();
        });
        hangs.countDown();
        assertTrue(log.contains("stopped without the hook dead: it has not ended, and is called no more; deaths that are left: 1001"), log);
    }

    @Test
    void aRightThatIsMissedIsMissedOnce(DqServer server) throws Exception {
        try (DqQueue admin = server.queue("admin")) {
            List<String> words = List.of("ACL", "SETUSER", "reader", "reset", "on", ">secret", "allkeys", "+@all", "-dq.get");
            admin.connector().call(List.<byte[][]>of(words.stream().map(String::getBytes).toArray(byte[][]::new)), null);
        }
        add(3, JobOptions.create().kind("sell"));
        try (DqQueue limited = DqQueue.connect(server.url().replace("//", "//reader:secret@"), "q")) {
            Worker worker = Worker.on(limited).handler(Handler.of(ProgramsTest::fail)).hooks(new Dead()).build();
            String log = log(worker::drain);
            assertEquals(2, log.split("the hook dead ", -1).length, log);
            assertTrue(log.contains("DQ.GET is refused"), log);
        }
    }

    private Connector counting(AtomicInteger connects) {
        return (Connector) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Connector.class}, (self, method, words) -> {
            connects.addAndGet(method.getName().equals("connect") ? 1 : 0);
            return method.invoke(queue.connector(), words);
        });
    }

    @Test
    void aLookOpensNoConnection() {
        AtomicInteger connects = new AtomicInteger();
        Worker worker = Worker.on(DqQueue.on(counting(connects), "q")).handler(counting()).hooks(new Dead()).build();
        worker.drain();
        int before = connects.get();
        worker.drain();
        assertEquals(before, connects.get());
    }

    @Test
    @Timeout(60)
    void deathsThatFoundNoRoomAreFoundLater(Clock clock) throws InterruptedException {
        CountDownLatch hangs = new CountDownLatch(1);
        CountDownLatch called = new CountDownLatch(1);
        List<String> told = Collections.synchronizedList(new ArrayList<>());
        Hooks hooks = new Hooks() {
            @Override
            public void dead(String queue, JobInfo job) {
                called.countDown();
                Guard.call(hangs::await);
                told.add(job.id());
            }
        };
        Duration often = Duration.ofSeconds(1); // it looks each lease
        Worker worker = Worker.on(queue).handler(Handler.of(ProgramsTest::fail).kind("sell").lease(often)).hooks(hooks).build();
        List<String> all = new ArrayList<>(add(Deaths.MOST + 500, JobOptions.create().kind("sell").attempts(1)));
        queue.pop(all.size(), MINUTE);
        worker.start();
        clock.advance(MINUTE);
        called.await();
        all.addAll(add(500, JobOptions.create().kind("sell")));
        WorkerTest.until(() -> queue.len(State.DEAD) == all.size());
        hangs.countDown();
        WorkerTest.until(() -> told.size() >= all.size());
        worker.close();
        assertEquals(all.stream().sorted().toList(), told.stream().sorted().toList());
    }
}

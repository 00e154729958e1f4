package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqServer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Results, jobs after others, steps and signals, on a server whose clock the test moves. */
@Timeout(60)
class FlowsTest extends OnServer {
    private static final Duration LONG = Duration.ofSeconds(30);

    private static JobOptions kept(String id) {
        return JobOptions.withId(id).keep(Duration.ofHours(1));
    }

    @Test
    void aResultIsKeptAndRead() {
        Handler<Integer> handler = Handler.returning(Integer.class, (job, n) -> {
            if (n < 0) {
                throw new GiveUpException("too small");
            }
            return n == 0 ? null : List.of(n, n + 1);
        });
        queue.addMany(List.of(new DqQueue.NewJob(7, kept("a")), new DqQueue.NewJob(0, kept("b")), new DqQueue.NewJob(-1, kept("c"))));
        assertNull(queue.result("a", List.class), "it is not done");
        assertEquals(3, Worker.on(queue).handler(handler).build().drain());
        assertEquals(List.of(7, 8), queue.result("a", List.class));
        assertNull(queue.result("b", List.class));
        JobFailedException error = assertThrows(JobFailedException.class, () -> queue.result("c", List.class));
        assertEquals(List.of("c", JobOutcome.DEAD, "too small"), List.of(error.id(), error.outcome(), error.reason()));
        assertNull(queue.result("never there", List.class));
        JobInfo info = queue.get("a");
        assertEquals(List.of(State.DONE, "[7,8]", Duration.ofHours(1)),
                List.of(info.state(), Bytes.text(info.result()), info.keep()));
    }

    @Test
    void aBlockedJobShowsWhatItWaitsFor() {
        queue.add(1, JobOptions.withId("a"));
        queue.add(2, JobOptions.withId("b").after("a").onDead(JobOptions.OnDead.RUN));
        queue.add(4, JobOptions.withId("d").group("g"));
        queue.add(5, JobOptions.withId("e").afterGroup("g").cost(7));
        JobInfo b = queue.get("b");
        assertEquals(List.of(List.of("a"), "run", 1, Map.of()), List.of(b.after(), b.onDead(), b.cost(), b.steps()));
        JobInfo e = queue.get("e");
        assertEquals(List.of(List.of(), "g", 7), List.of(e.after(), e.afterGroup(), e.cost()));
        assertNull(e.onDead());
    }

    @Test
    void aJobThatSleepsIsOursUntilItsHandlerHasReturned() throws Exception {
        Set<State> seen = ConcurrentHashMap.newKeySet();
        Handler<Integer> handler = Handler.returning(Integer.class, (job, n) -> {
            try {
                job.sleep("nap", Duration.ZERO);
            } finally {
                for (int look = 0; look < 300; look++) {
                    seen.add(queue.get("j").state());
                }
            }
            return n;
        });
        try (Worker worker = Worker.on(queue).handler(handler).concurrency(2).build()) {
            worker.start();
            assertEquals(7, queue.addAndWait(7, JobOptions.withId("j"), Integer.class, LONG));
        }
        assertEquals(Set.of(State.RESERVED), seen);
    }

    @Test
    void aReplyComesToWhoWaits() throws Exception {
        try (Worker worker = Worker.on(queue).handler(Handler.returning(Integer.class, (job, n) -> n * n)).build()) {
            worker.start();
            for (int n = 1; n < 20; n++) {
                assertEquals(n * n, queue.addAndWait(n, JobOptions.create(), Integer.class, LONG));
            }
            assertEquals(Duration.ofMinutes(1), queue.get(queue.peek(State.DONE, 1).get(0).id()).keep());
        }
        queue.add(1, JobOptions.withId("waits").delay(LONG));
        Duration moment = Duration.ofMillis(20);
        var late = assertThrows(TimedOutException.class, () -> queue.wait("waits", Integer.class, moment));
        assertEquals(List.of("waits", moment), List.of(late.id(), late.timeout()));
        JobFailedException unknown =
                assertThrows(JobFailedException.class, () -> queue.wait("never there", Integer.class, LONG));
        assertTrue(unknown.outcome() == JobOutcome.UNKNOWN && unknown.getMessage().contains("KEEP"), unknown.getMessage());
        CompletableFuture<JobResult> end = queue.end("waits");
        while (!serverAwaits()) {
            Thread.sleep(2);
        }
        assertTrue(queue.cancel("waits"));
        assertEquals(JobOutcome.DELETED, end.get(30, TimeUnit.SECONDS).outcome());
        assertFalse(queue.cancel("waits"));
        CompletableFuture<JobResult> open = queue.end(queue.add(1, JobOptions.create().delay(LONG)));
        queue.close();
        assertThrows(ExecutionException.class, () -> open.get(30, TimeUnit.SECONDS), "the queue was closed");
    }

    private boolean serverAwaits() {
        byte[][] list = new Words("CLIENT").add("LIST").all();
        String clients = Reply.text(queue.connector().call(List.<byte[][]>of(list), null).get(0));
        return clients.lines().anyMatch(each -> each.contains("cmd=dq.await") && each.contains("flags=b"));
    }

    @Test
    void aWaitForAKeyOfAnotherTypeSaysSo(DqServer server) {
        JedisConnector other = JedisConnector.of(java.net.URI.create(server.url()));
        other.call(List.<byte[][]>of(new Words("SET").add("text").add("x").all()), null);
        other.close();
        try (DqQueue wrong = server.queue("text")) {
            RefusedException error = assertThrows(RefusedException.class, () -> wrong.wait("a", String.class, LONG));
            assertEquals(List.of("WRONGTYPE", "a"), List.of(error.code(), error.id()));
        }
    }

    @Test
    void jobsAfterOneAnother() {
        List<String> seen = new ArrayList<>();
        Worker worker = Worker.on(queue).handler(Handler.returning(String.class, (job, data) -> {
            seen.add(data + job.results());
            return data;
        })).build();
        List<String> ids = queue.chain(List.of(new DqQueue.NewJob("a"), new DqQueue.NewJob("b"), new DqQueue.NewJob("c")));
        assertEquals(List.of(State.READY, State.BLOCKED), List.of(queue.get(ids.get(0)).state(), queue.get(ids.get(2)).state()));
        assertEquals(3, worker.drain());
        assertEquals(List.of("a[]", "b[" + ids.get(0) + ": done]", "c[" + ids.get(1) + ": done]"), seen);
        JobOptions both = JobOptions.create().after("x", "y").onDead(JobOptions.OnDead.DIE);
        queue.addMany(List.of(
                new DqQueue.NewJob("x", JobOptions.withId("x")), new DqQueue.NewJob("y", JobOptions.withId("y")),
                new DqQueue.NewJob("z", both)));
        assertEquals(1, queue.len(State.BLOCKED));
        assertEquals(3, worker.drain());
        JobOptions group = JobOptions.create().afterGroup("g");
        queue.add("m", JobOptions.create().group("g"));
        queue.add("report", group);
        assertEquals(2, worker.drain());
        assertEquals("report[]", seen.get(seen.size() - 1));
        assertThrows(IllegalArgumentException.class, () -> queue.add(1, JobOptions.create().after("a").afterGroup("g")));
        assertThrows(IllegalArgumentException.class, () -> queue.chain(List.of(new DqQueue.NewJob(1, both))));
        assertEquals(List.of(), queue.chain(List.of()));
    }

    /** All jobs of one flow are in one shard. */
    @Test
    void aChainOfAShardedQueue() {
        DqQueue sharded = queue.withShards(7);
        List<String> ids = sharded.chain(List.of(new DqQueue.NewJob(1), new DqQueue.NewJob(2), new DqQueue.NewJob(3)));
        assertEquals(1, ids.stream().map(id -> Bytes.text(sharded.key(id))).distinct().count());
        String after = sharded.add(4, JobOptions.create().after(ids.get(2)));
        assertEquals(Bytes.text(sharded.key(ids.get(2))), Bytes.text(sharded.key(after)));
        String elsewhere = Ids.next(id -> !Arrays.equals(sharded.key(id), sharded.key(after)));
        assertThrows(IllegalArgumentException.class, () -> sharded.add(5, JobOptions.withId(elsewhere).after(after)));
        assertThrows(IllegalArgumentException.class, () -> sharded.add(5, JobOptions.create().after(after, elsewhere)));
        assertThrows(IllegalArgumentException.class, () -> sharded.add(5, JobOptions.create().afterGroup("g")));
        assertEquals(4, Worker.on(sharded).handler(Handler.of(job -> {})).build().drain());
    }

    /** So are jobs that a handler spawns, under ids by which they are found. */
    @Test
    void childrenInAShardedQueue() {
        DqQueue sharded = queue.withShards(7);
        Handler<String> handler = Handler.returning(String.class, (job, data) -> {
            if (data.equals("child")) {
                return 1;
            }
            JobOptions options = JobOptions.create().keep(LONG);
            String elsewhere = Ids.next(id -> !Arrays.equals(sharded.key(id), sharded.key(job.id())));
            DqQueue.NewJob stray = new DqQueue.NewJob("child", JobOptions.withId(elsewhere));
            assertThrows(IllegalArgumentException.class, () -> job.spawn("stray", JobOptions.OnDead.RUN, List.of(stray)));
            DqQueue.NewJob[] children = new DqQueue.NewJob[9];
            Arrays.fill(children, new DqQueue.NewJob("child", options));
            return job.spawn(children).stream().map(JobResult::id).toList();
        });
        for (int round = 0; round < 5; round++) {
            String parent = sharded.add("parent", JobOptions.withId("parent:" + round).keep(LONG));
            assertEquals(11, Worker.on(sharded).handler(handler).build().drain());
            List<?> children = sharded.result(parent, List.class);
            assertEquals(9, children.size());
            children.forEach(child -> assertEquals(State.DONE, sharded.get((String) child).state()));
        }
    }

    @Test
    void manyJobsThatAreAlikeGoTogether() {
        DqQueue sharded = queue.withShards(3);
        List<DqQueue.NewJob> jobs = new ArrayList<>();
        for (int n = 0; n < 4000; n++) {
            jobs.add(new DqQueue.NewJob(n, JobOptions.withId("j" + n).priority(3).delay(LONG)));
        }
        List<String> ids = sharded.addMany(jobs);
        assertEquals(List.of("j0", "j3999"), List.of(ids.get(0), ids.get(3999)));
        assertEquals(4000, sharded.len());
        assertEquals("17", Bytes.text(sharded.get("j17").payload()));
        assertEquals(3, sharded.get("j3999").priority());
        jobs.add(new DqQueue.NewJob(1, JobOptions.withId("new").priority(3).delay(LONG)));
        ids = sharded.addMany(jobs);
        assertNull(ids.get(17), "it is there");
        assertEquals("new", ids.get(4000));
        byte[] large = new byte[400_000];
        assertEquals(5, queue.addMany(Arrays.asList(new DqQueue.NewJob(large), new DqQueue.NewJob(large), new DqQueue.NewJob(large),
                new DqQueue.NewJob(large), new DqQueue.NewJob(large))).size());
        queue.configure(new Settings().maxLen(5));
        assertThrows(QueueFullException.class, () -> queue.addMany(List.of(new DqQueue.NewJob(1), new DqQueue.NewJob(2))));
    }

    @Test
    void thirtyDaysPassInAMoment(Clock clock) {
        List<String> seen = new ArrayList<>();
        Worker worker = Worker.on(queue).handler(Handler.returning(job -> {
            int charge = job.step("charge", Integer.class, () -> {
                seen.add("charged");
                return 17;
            });
            job.sleep("trial", Duration.ofDays(30));
            seen.add("reminded");
            return charge + job.waitSignal("paid", Integer.class);
        })).build();
        queue.add(1, kept("a").attempts(1));
        assertEquals(1, worker.drain());
        assertEquals(0, worker.drain(), "it sleeps");
        clock.advance(Duration.ofDays(29));
        assertEquals(0, worker.drain());
        clock.advance(Duration.ofDays(1));
        assertEquals(1, worker.drain());
        assertEquals("paid", Bytes.text((byte[]) queue.get("a").fields().get("awaits")));
        assertEquals(true, queue.signal("a", "paid", 5));
        assertEquals(false, queue.signal("a", "paid", 6));
        assertEquals(1, worker.drain());
        assertEquals(List.of("charged", "reminded", "reminded"), seen);
        assertEquals(22, queue.result("a", Integer.class));
        assertNull(queue.signal("a", "paid", 7), "it is done");
    }

    @Test
    void aSignalThatNeverComes(Clock clock) {
        Worker worker = Worker.on(queue).handler(Handler.returning(job -> {
            try {
                return job.waitSignal("signed", String.class, Duration.ofDays(3));
            } catch (TimedOutException error) {
                return "nobody signed";
            }
        })).build();
        queue.add(1, kept("a"));
        assertEquals(1, worker.drain());
        clock.advance(Duration.ofDays(3));
        assertEquals(1, worker.drain());
        assertEquals("nobody signed", queue.result("a", String.class));
    }

    /** A handler that catches the SuspendedError: its attempt has ended all the same. */
    @Test
    void aHandlerThatSwallowsTheEndOfItsAttempt() {
        List<String> hooks = new ArrayList<>();
        Worker worker = Worker.on(queue).hooks(new Hooks() {
            @Override
            public void after(Job job) {
                hooks.add("after");
            }

            @Override
            public void failed(Job job, Throwable error) {
                hooks.add("failed");
            }

            @Override
            public void suspended(Job job) {
                hooks.add("suspended");
            }
        }).handler(Handler.returning(job -> {
            try {
                job.sleep("nap", Duration.ofDays(1));
            } catch (SuspendedError error) {
                assertThrows(SuspendedError.class, () -> job.step("late", Integer.class, () -> 1));
            }
            return "done";
        })).build();
        queue.add(1, JobOptions.withId("a"));
        assertEquals(1, worker.drain());
        assertEquals(List.of("suspended"), hooks);
        assertEquals(List.of(State.DELAYED, 0), List.of(queue.get("a").state(), queue.get("a").attempts()));
    }

    /** Executed twice, the script would take the money twice; with a stale token it takes none. */
    @Test
    void aScriptRunsOnceInTheLifeOfAJob(DqServer server) throws Exception {
        String script = "redis.call('INCRBY', KEYS[1], ARGV[1]) redis.call('DECRBY', KEYS[2], ARGV[1])";
        List<Boolean> ran = new ArrayList<>();
        Worker worker = Worker.on(queue).handler(Handler.of(job -> {
            ran.add(job.once("move", script, List.of("to", "from"), List.of("5")));
            if (job.attempt() == 1) {
                throw new RetryException(Duration.ofMillis(100));
            }
        })).build();
        queue.add(1, JobOptions.withId("a"));
        assertEquals(1, worker.drain());
        queue.reschedule(Instant.EPOCH, "a");
        assertEquals(1, worker.drain());
        assertEquals(List.of(true, false), ran);
        JedisConnector other = JedisConnector.of(java.net.URI.create(server.url()));
        List<Object> sums = other.call(List.of(new Words("GET").add("to").all(), new Words("GET").add("from").all()), null);
        other.close();
        assertEquals(List.of("5", "-5"), sums.stream().map(Reply::text).toList());
        queue.add(1, JobOptions.withId("b"));
        assertEquals(1, Worker.on(queue).handler(Handler.of(job -> {
            queue.delete("b");
            assertThrows(CancelledException.class, () -> job.once("move", script, List.of("to", "from"), List.of("5")));
        })).build().drain());
    }

    @Test
    void whatADeliveryCostsIsSaidAfterwards(DqServer server) throws Exception {
        queue.configure(new Settings().rate(10, Duration.ofMinutes(1)));
        Worker worker = Worker.on(queue).concurrency(1).handler(Handler.of(job -> job.setCost(10))).build();
        queue.add(1, JobOptions.withId("a"));
        queue.add(1, JobOptions.withId("b"));
        assertEquals(List.of(1, 0), List.of(worker.drain(), worker.drain()));
        server.clock().advance(Duration.ofMinutes(1));
        String token = queue.pop(1, null).get(0).token();
        assertEquals(List.of(true, false), List.of(queue.setCost("b", token, 2), queue.setCost("b", "17", 2)));
    }

    @Test
    void aScriptThatFailsHasNoStep() throws Exception {
        String script = "if ARGV[1] ~= '' then return redis.error_reply(ARGV[1]) end redis.call('LPUSH', KEYS[1], 1)";
        List<Object> ran = new ArrayList<>();
        Worker worker = Worker.on(queue).handler(Handler.of(job -> {
            if (job.attempt() == 1) {
                ran.add(assertThrows(RefusedException.class, () -> job.once("mine", script, List.of("l"), List.of("MYERR no"))).getMessage());
                assertThrows(RefusedException.class, () -> job.once("theirs", script, List.of("q"), List.of("")));
            } else {
                ran.add(job.once("mine", script, List.of("l"), List.of("")));
            }
            if (job.attempt() < 3) {
                throw new RetryException(Duration.ofMillis(100));
            }
        })).build();
        queue.add(1, JobOptions.withId("a"));
        for (int attempt = 0; attempt < 3; attempt++) {
            queue.reschedule(Instant.EPOCH, "a");
            assertEquals(1, worker.drain());
        }
        assertEquals(List.of("MYERR no", true, false), ran);
    }
}

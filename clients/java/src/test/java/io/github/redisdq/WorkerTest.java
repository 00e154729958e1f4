package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A worker at work: what it hears, shows, and does not lose. */
@Timeout(60)
class WorkerTest extends OnServer {
    private static final Duration LONG = Duration.ofSeconds(60);

    /** What it waits for in vain is named by the line that calls it, before the class's timeout names none. */
    static void until(BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(50);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError("waited in vain");
            }
            Thread.sleep(5);
        }
    }

    /**
     * The fetch has taken an acknowledgement along, and hangs: the batcher must not finish before that has been sent.
     */
    @Test
    void anAcknowledgementThatAFetchTookIsToldWhileTheWorkerStops() throws Exception {
        CountDownLatch taken = new CountDownLatch(1);
        CountDownLatch goesOn = new CountDownLatch(1);
        WorkerBuilder builder = Worker.on(queue).handler(Handler.of(job -> {})).concurrency(1).drain(Duration.ZERO);
        builder.ends = () -> new Ends() {
            @Override
            Deque<Outcome> take(int count) {
                Deque<Outcome> outcomes = super.take(count);
                if (count == Integer.MAX_VALUE && !outcomes.isEmpty()) {
                    taken.countDown();
                    Guard.call(goesOn::await);
                }
                return outcomes;
            }
        };
        Worker worker = builder.build();
        queue.add(1);
        worker.start();
        taken.await();
        Thread batcher = Thread.getAllStackTraces().keySet().stream()
                .filter(each -> each.getName().equals("dq-batcher") && each.isAlive())
                .findFirst()
                .orElseThrow();
        worker.stop();
        until(() -> !batcher.isAlive()
                || Arrays.stream(batcher.getStackTrace()).anyMatch(each -> each.getMethodName().equals("finish")));
        goesOn.countDown();
        worker.join();
        assertEquals(0, queue.len(), "the acknowledgement was lost");
    }

    /** One of the program sees its own jobs only: here are no hooks, no codec, no server. */
    @Test
    void aMadeUpJobTakesTheWholePathAndNobodySeesIt() {
        assertEquals("", log(() -> {
            until(Worker::warmUp);
            until(() -> Thread.getAllStackTraces().keySet().stream().noneMatch(each -> each.getName().equals("dq-warm-up")));
        }));
        assertEquals(0, queue.len());
    }

    @Test
    void anInterruptIsLeftToWhoStartsTheWorker() {
        Thread.currentThread().interrupt();
        assertFalse(Worker.warmUp());
        assertTrue(Thread.interrupted());
    }

    @Test
    void theLogSaysWhatBeganFailedWasCancelledAndStopped() throws Exception {
        PrintStream before = System.err;
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
        try (Worker worker = Worker.on(queue).concurrency(3).handler(Handler.of(job -> {
            if (job.id().equals("bad")) {
                throw new IllegalStateException("no paper");
            }
            job.pause(LONG);
        })).build()) {
            worker.start();
            queue.add(1, JobOptions.withId("bad").attempts(1));
            queue.add(1, JobOptions.withId("long"));
            until(() -> queue.get("bad").state() == State.DEAD && queue.get("long").state() == State.RESERVED);
            assertTrue(queue.cancel("long"));
            until(() -> log.toString(StandardCharsets.UTF_8).contains("cancelled"));
        } finally {
            System.setErr(before);
        }
        List<String> lines = log.toString(StandardCharsets.UTF_8).lines().toList();
        assertEquals(
                List.of("INFO started: queue q, concurrency 3", "WARN job bad of q, attempt 1 failed",
                        "INFO job long of q, attempt 1 was cancelled", "INFO stopped: queue q, no job was given back"),
                lines.stream().filter(each -> each.startsWith("["))
                        .map(each -> each.replaceFirst("^\\[.*?\\] (\\w+) io.github.redisdq.Worker - ", "$1 ")).toList());
        assertEquals(1, lines.stream().filter(each -> each.contains("at io.github.redisdq.")).count(), lines.toString());
    }

    /** The server refuses the result, and closes the connection in the middle of the command. */
    @Test
    void aResultTooLargeForTheServerIsLeftOut(DqServer server) throws Exception {
        limit(server, "1mb");
        Worker worker = Worker.on(queue)
                .handler(Handler.returning(Integer.class, (job, n) -> n % 7 == 0 ? "x".repeat(5 << 20) : null))
                .concurrency(2)
                .build();
        for (int n = 0; n < 20; n++) {
            queue.add(n);
        }
        try (worker) {
            worker.start();
            until(() -> queue.len() == 0);
        } finally {
            limit(server, "512mb");
        }
    }

    private static void limit(DqServer server, String most) {
        JedisConnector connector = JedisConnector.of(java.net.URI.create(server.url()));
        connector.call(java.util.Collections.singletonList(new Words("CONFIG").add("SET").add("proto-max-bulk-len").add(most).all()), null);
        connector.close();
    }

    @Test
    void aHandlerThatTakesTooLongFailsAtOnce() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        AtomicReference<Throwable> failed = new AtomicReference<>();
        Worker worker = Worker.on(queue)
                .hooks(new Hooks() {
                    @Override
                    public void failed(Job job, Throwable error) {
                        failed.set(error);
                    }
                })
                .handler(Handler.of(job -> {
                    while (mayEnd.getCount() > 0) {
                        Guard.call(mayEnd::await); // takes no notice
                    }
                }).timeout(Duration.ofMillis(300)).backoff(LONG))
                .concurrency(1)
                .build();
        worker.start();
        queue.add(1, JobOptions.withId("a"));
        until(() -> queue.get("a").state() == State.DELAYED);
        assertEquals("timeout after 0.3 s", queue.get("a").reason());
        assertNull(failed.get(), "its handler runs on");
        mayEnd.countDown();
        until(() -> failed.get() != null);
        assertTrue(failed.get() instanceof TimedOutException, String.valueOf(failed.get()));
        worker.close();
        assertEquals(1, queue.get("a").attempts());
    }

    @Test
    void aLimitOfTimeHoldsWhereATestDrains() {
        Handler<?> handler = Handler.of(job -> job.pause(LONG)).timeout(Duration.ofMillis(20)).backoff(LONG);
        queue.add(1, JobOptions.withId("a"));
        assertEquals(1, Worker.on(queue).handler(handler).build().drain());
        assertEquals("timeout after 0.02 s", queue.get("a").reason());
    }

    @Test
    void middlewareIsAroundABatchToo() {
        Around doubles = new Around() {
            @Override
            public Object handle(Job job, Next next) {
                throw new AssertionError("of one job");
            }

            @Override
            public Object handleBatch(List<Job> jobs, Next next) throws Exception {
                Object nothing = next.call();
                jobs.forEach(job -> job.succeed(2 * (int) job.value));
                return nothing;
            }
        };
        Worker worker = Worker.on(queue).around(doubles)
                .handler(Handler.ofBatch(5, jobs -> jobs.forEach(job -> job.succeed(job.data(Integer.class)))))
                .build();
        queue.addMany(List.of(
                new DqQueue.NewJob(1, JobOptions.withId("a").keep(LONG)), new DqQueue.NewJob(2, JobOptions.withId("b").keep(LONG))));
        assertEquals(2, worker.drain());
        assertEquals(List.of(2, 4), List.of(queue.result("a", Integer.class), queue.result("b", Integer.class)));
    }

    private static HttpResponse<String> ask(int port) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port)).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    }

    private static boolean answers(int port, int status) {
        try {
            return ask(port).statusCode() == status;
        } catch (IOException | InterruptedException error) {
            return false;
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @Test
    void healthByHttp() throws Exception {
        int port = freePort();
        Worker worker = Worker.on(queue).handler(Handler.of(job -> {})).health("127.0.0.1:" + port).build();
        assertFalse(worker.isHealthy(), "not before the first answer");
        worker.start();
        queue.add(1);
        until(() -> answers(port, 200));
        assertEquals("ok\n", ask(port).body());
        assertTrue(worker.isHealthy());
        Worker second = Worker.on(queue).handler(Handler.of(job -> {})).health("127.0.0.1:" + port).build();
        ConfigurationException taken = assertThrows(ConfigurationException.class, second::start);
        assertTrue(taken.getMessage().contains(String.valueOf(port)), taken.getMessage());
        worker.close();
        assertFalse(worker.isHealthy());
        assertThrows(IOException.class, () -> ask(port));
        int other = freePort();
        try (DqQueue nowhere = DqQueue.connect("redis://127.0.0.1:1", "q");
                Worker sick = Worker.on(nowhere).handler(Handler.of(job -> {})).health("127.0.0.1:" + other).build()) {
            sick.start();
            until(() -> answers(other, 503));
            assertNotNull(ask(other).body());
        }
    }

    @Test
    void healthByAFile(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("healthy");
        try (Worker worker = Worker.on(queue).handler(Handler.of(job -> {})).wait(Duration.ofMillis(50)).health(file.toString()).build()) {
            worker.start();
            until(() -> Files.exists(file));
            FileTime old = FileTime.fromMillis(1);
            Files.setLastModifiedTime(file, old);
            until(() -> !lastModified(file).equals(old));
        }
        Worker wrong = Worker.on(queue).handler(Handler.of(job -> {})).health(folder + "/none/healthy").build();
        assertThrows(ConfigurationException.class, wrong::start);
    }

    private static FileTime lastModified(Path file) {
        try {
            return Files.getLastModifiedTime(file);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Its last lease ended, and it has one attempt left: perhaps it killed its worker. */
    @Test
    void whatMayKillItsWorkerRunsAlone(Clock clock) throws Exception {
        queue.add("k", JobOptions.withId("k").attempts(2));
        queue.add("over", JobOptions.withId("over").attempts(1));
        for (int n = 0; n < 9; n++) {
            queue.add("k", JobOptions.create().attempts(2));
        }
        assertEquals(11, queue.pop(11, LONG).size());
        clock.advance(LONG);
        assertEquals(State.DEAD, queue.get("over").state());
        for (int n = 0; n < 50; n++) {
            queue.add(n);
        }
        List<Integer> beside = new CopyOnWriteArrayList<>();
        Worker worker = Worker.on(queue)
                .handler(Handler.of(job -> {
                    if (job.attempt() == 2) {
                        beside.add(queue.len(State.RESERVED));
                    }
                }))
                .concurrency(10)
                .prefetch(3)
                .build();
        try (worker) {
            worker.start();
            until(() -> queue.len() == 0);
        }
        assertEquals(Collections.nCopies(10, 1), beside);
    }
}

package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A worker with hostile code in one place. After each thing that it throws, the worker does a hundred good jobs. */
final class HostileScene {
    /** Where the program's code is called. */
    enum Place {
        HANDLER,
        BATCH,
        FAIL,
        DECODE,
        ADDING,
        BEFORE,
        AFTER,
        FAILED,
        LOST,
        AROUND,
        STEP,
        RESULT
    }

    private static final int GOOD = 100;
    private static final String BAD_RESULT = "of a bad job";
    private static final int THREADS = 2;

    private final Place place;
    private final DqQueue queue;
    private final AtomicInteger done = new AtomicInteger();
    private final AtomicInteger threadsThatDied = new AtomicInteger();
    private volatile Hostile.Thrower thrower = () -> {};
    private volatile CountDownLatch hasRun;

    HostileScene(Place place, String url) {
        this.place = place;
        queue = DqQueue.connect(url, "hostile").withCodec(new Reads()).withHooks(new Joins());
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void sneak(Throwable error) throws T {
        throw (T) error;
    }

    private void act(Place here, boolean isBad) {
        if (here == place && isBad) {
            hasRun.countDown();
            try {
                thrower.run();
            } catch (Throwable error) {
                HostileScene.<RuntimeException>sneak(error);
            }
        }
    }

    private static boolean isBad(Job job) {
        return job.id().startsWith("bad");
    }

    private final class Reads implements Codec {
        @Override
        public byte[] encode(Object data) {
            act(Place.RESULT, BAD_RESULT.equals(data));
            return Codec.json().encode(data);
        }

        @Override
        public <T> T decode(byte[] payload, Type type) {
            act(Place.DECODE, payload.length > 0 && payload[1] == 'b');
            return Codec.json().decode(payload, type);
        }
    }

    private final class Joins implements Hooks {
        @Override
        public void adding(String queue, Map<String, String> headers) {
            act(Place.ADDING, hasRun != null);
            Thread.interrupted(); // this thread is the test's
        }

        @Override
        public void before(Job job) {
            act(Place.BEFORE, isBad(job));
        }

        @Override
        public void after(Job job) {
            act(Place.AFTER, isBad(job));
        }

        @Override
        public void failed(Job job, Throwable error) {
            act(Place.FAILED, isBad(job));
        }

        @Override
        public void lost(Job job) {
            act(Place.LOST, isBad(job));
        }
    }

    private void handle(Job job) throws Exception {
        job.data(String.class);
        if (!isBad(job)) {
            done.incrementAndGet();
            return;
        }
        if (place == Place.LOST) {
            queue.add("bad", JobOptions.withId(job.id()).ifExists(JobOptions.IfExists.REPLACE).delay(Duration.ofDays(1)));
            while (!job.isLost()) {
                Thread.yield();
            }
            return;
        }
        act(Place.HANDLER, true);
        if (place == Place.FAIL) {
            try {
                act(Place.FAIL, true);
            } catch (Throwable error) {
                job.fail(error);
            }
        }
        if (place == Place.FAILED) {
            throw new IllegalStateException("so that it has failed");
        }
    }

    private Object handleAndReturn(Job job) throws Exception {
        handle(job);
        if (place == Place.STEP && isBad(job)) {
            job.step("bad", () -> act(Place.STEP, true));
        }
        return place == Place.RESULT && isBad(job) ? BAD_RESULT : null;
    }

    private Object around(Job job, Around.Next next) throws Exception {
        act(Place.AROUND, isBad(job));
        return next.call();
    }

    private void handleBatch(List<Job> jobs) throws Exception {
        for (Job job : jobs) {
            act(Place.BATCH, isBad(job));
            handle(job);
        }
    }

    private Worker worker() {
        Handler<Void> handler = place == Place.BATCH ? Handler.ofBatch(7, this::handleBatch) : Handler.returning(this::handleAndReturn);
        return Worker.on(queue)
                .handler(handler.lease(Duration.ofMillis(600)))
                .hooks(new Joins())
                .around(this::around)
                .concurrency(THREADS)
                .executor(task -> {
                    Thread thread = new Thread(() -> {
                        try {
                            task.run();
                        } finally {
                            threadsThatDied.incrementAndGet();
                        }
                    });
                    thread.setDaemon(true);
                    thread.setUncaughtExceptionHandler((dead, error) -> {}); // which could not be printed
                    thread.start();
                })
                .build();
    }

    /** Throws an AssertionError where the worker does not survive. */
    void play() throws InterruptedException {
        Worker worker = worker();
        worker.start();
        int count = 0;
        for (Map.Entry<String, Hostile.Thrower> each : Hostile.all().entrySet()) {
            String bad = "bad:" + count++;
            thrower = each.getValue();
            hasRun = new CountDownLatch(1);
            if (queue.add("bad", JobOptions.withId(bad)) == null) {
                throw new AssertionError("it was not added: " + each.getKey());
            }
            await(each.getKey(), () -> hasRun.getCount() == 0);
            thrower = () -> {};
            addGood();
            int all = count * GOOD;
            await(each.getKey(), () -> all <= done.get() && queue.len(State.READY) == 0 && queue.len(State.RESERVED) == 0);
            if (all < done.get() && place != Place.BATCH) { // where the rest of a batch fails with it
                throw new AssertionError("good jobs ran twice: " + each.getKey());
            }
            queue.purge();
            done.set(all);
        }
        worker.close();
        queue.close();
    }

    private void addGood() {
        List<DqQueue.NewJob> good = new ArrayList<>();
        for (int n = 0; n < GOOD; n++) {
            good.add(new DqQueue.NewJob("good", JobOptions.create()));
        }
        queue.addMany(good);
    }

    private interface Condition {
        boolean isSo();
    }

    private void await(String what, Condition condition) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        while (!condition.isSo()) {
            if (System.nanoTime() - end > 0) {
                throw new AssertionError("waited in vain: " + what + " in " + place);
            }
            if (threadsThatDied.get() > 0) {
                throw new AssertionError("the worker lost a thread: " + what + " in " + place);
            }
            Thread.sleep(1);
        }
    }
}

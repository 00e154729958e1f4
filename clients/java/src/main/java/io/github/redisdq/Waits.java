package io.github.redisdq;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Waits for the ends of jobs of one queue object: on one connection for each key, opened for the first wait. */
final class Waits {
    private static final Duration WAIT = Duration.ofSeconds(15);
    private static final Duration SLACK = Duration.ofSeconds(5);
    private static final long IDLE_MS = 60_000; // after which its connections and threads end
    private static final long AGAIN_MS = 50; // how soon to try again to end a wait that the server does not have yet

    private final Connector connector;
    private final Codec codec;
    private final Map<String, OfKey> keys = new HashMap<>();
    private boolean isClosed;

    Waits(Connector connector, Codec codec) {
        this.connector = connector;
        this.codec = codec;
    }

    /** Completes when the job has ended. {@link CompletableFuture#cancel} ends the wait. */
    CompletableFuture<JobResult> end(byte[] key, String id) {
        WaitList list;
        CompletableFuture<JobResult> future;
        synchronized (this) {
            if (isClosed) {
                throw new DqException("the queue was closed");
            }
            list = keys.computeIfAbsent(Bytes.text(key), it -> new OfKey(key)).list;
            future = list.add(id);
        }
        future.whenComplete((result, error) -> list.remove(id, future));
        return future;
    }

    /** Called when nobody has waited for a while. Returns true if that is still so, and closes the connections. */
    private synchronized boolean ends(OfKey idle) {
        if (idle.list.isEmpty()) {
            keys.values().remove(idle);
            idle.close();
        }
        return idle.list.isEmpty();
    }

    synchronized void close() {
        isClosed = true;
        keys.values().forEach(OfKey::close);
    }

    private final class OfKey {
        private final byte[] key;
        private final WaitList list = new WaitList();
        private final Wire waiting;
        private final Wire control;

        OfKey(byte[] key) {
            this.key = key;
            waiting = new Wire(connector, key, WAIT.plus(SLACK), () -> {});
            control = new Wire(connector, key, SLACK, () -> {});
            begin(this::listen, "dq-waits");
            begin(this::withdraw, "dq-waits-control");
        }

        private static void begin(Guard.Call loop, String name) {
            Thread thread = new Thread(() -> Guard.call(loop), name);
            thread.setDaemon(true);
            thread.start();
        }

        void close() {
            list.close();
            waiting.cut();
            control.cut();
        }

        private void listen() throws InterruptedException {
            int failures = 0;
            while (true) {
                List<String> ids = list.next(IDLE_MS);
                if (!ids.isEmpty()) {
                    failures = ask(ids) ? 0 : failures + 1;
                    TimeUnit.NANOSECONDS.sleep(failures == 0 ? 0 : Trouble.pause(failures).toNanos());
                } else if (ends(this)) {
                    return;
                }
            }
        }

        /** Sends one DQ.AWAIT. False: it is to be tried again. */
        private boolean ask(List<String> ids) {
            Words words = new Words("DQ.AWAIT").add(key).add(WAIT.toSeconds()).counted(ids);
            try {
                list.answered(JobResult.all(waiting.ask(words), codec));
                return true;
            } catch (RuntimeException error) {
                waiting.close();
                list.lost();
                if (isForGood(error)) {
                    list.fail(error instanceof RefusedException said ? Refusal.of(said, words, null, "") : error);
                }
                return isForGood(error);
            }
        }

        /** Has new jobs asked for at once: ends the DQ.AWAIT that lacks them. */
        private void withdraw() throws InterruptedException {
            while (list.awaitMissing()) {
                try {
                    waiting.unblockOrClose(control);
                    list.pause(AGAIN_MS);
                } catch (RuntimeException error) {
                    control.close();
                    list.pause(Trouble.pause(1).toMillis());
                }
            }
        }

        private boolean isForGood(RuntimeException error) {
            return Trouble.fatal(error) != null || error instanceof RefusedException said && Trouble.isRefusal(said);
        }
    }
}

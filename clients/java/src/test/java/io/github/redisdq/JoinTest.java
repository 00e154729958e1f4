package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Jobs and one after all of them, in one call, once though its answer is lost. */
@ExtendWith(DqExtension.class)
@Timeout(60)
class JoinTest {
    private static final Duration HOUR = Duration.ofHours(1);

    private Losing connector;
    private DqQueue queue;

    /** Loses the answer to the next transaction. */
    private static final class Losing implements Connector {
        final Connector inner;
        Callable<?> meanwhile; // null: no transaction is lost
        boolean arrives;
        RefusedException refuses; // what the next question is answered
        Runnable then = () -> {}; // what happens once a question has been answered

        Losing(Connector inner) {
            this.inner = inner;
        }

        @Override
        public List<Object> call(List<byte[][]> commands, Duration patience) {
            RefusedException said = refuses;
            refuses = null;
            if (said != null) {
                return new ArrayList<>(Collections.nCopies(commands.size(), said));
            }
            List<Object> replies = inner.call(commands, patience);
            Runnable once = then;
            then = () -> {};
            once.run();
            return replies;
        }

        @Override
        public Line connect(byte[] key, Duration patience) {
            Line line = inner.connect(key, patience);
            return new Line() {
                @Override
                public void send(List<byte[][]> commands) {
                    Callable<?> then = Bytes.text(commands.get(0)[0]).equals("MULTI") ? meanwhile : null;
                    meanwhile = then == null ? meanwhile : null;
                    if (then == null || arrives) {
                        line.send(commands);
                    }
                    if (then != null) {
                        commands.forEach(each -> Guard.call(arrives ? line::read : () -> {}));
                        Guard.call(then::call);
                        throw new DqException("the connection is lost");
                    }
                }

                @Override
                public Object read() {
                    return line.read();
                }

                @Override
                public void cut() {
                    line.cut();
                }
            };
        }

        @Override
        public Object place(byte[] key) {
            return inner.place(key);
        }

        @Override
        public void close() {
            inner.close();
        }
    }

    @BeforeEach
    void open(DqServer server) {
        connector = new Losing(JedisConnector.of(URI.create(server.url())));
        queue = DqQueue.on(connector, "q");
        queue.add(0, JobOptions.create().delay(HOUR)); // a queue without jobs forgets how many were added
    }

    @AfterEach
    void close() {
        queue.close();
    }

    private int work(boolean fails) {
        return Worker.on(queue).handler(Handler.of(job -> {
            if (fails) {
                throw new GiveUpException("no");
            }
        })).build().drain();
    }

    private static DqQueue.NewJob part() {
        return new DqQueue.NewJob(1);
    }

    private String join(JobOptions last) {
        return queue.join(List.of(part()), new DqQueue.NewJob(2, last));
    }

    /** How many jobs a join adds whose first answer is lost. {@code arrives}: whether the server gets the transaction. */
    private long lossy(boolean arrives, Callable<?> meanwhile, Runnable join) {
        long before = queue.stats().totals().get("added");
        connector.arrives = arrives;
        connector.meanwhile = meanwhile;
        join.run();
        assertNull(connector.meanwhile);
        return queue.stats().totals().get("added") - before;
    }

    private void assertUnknown(JobOptions last) {
        assertUnknown(List.of(part()), last);
    }

    private void assertUnknown(List<DqQueue.NewJob> jobs, JobOptions last) {
        DqException error = assertThrows(DqException.class, () -> queue.join(jobs, new DqQueue.NewJob(2, last)));
        assertEquals("the connection is lost: it is not known whether the jobs were added", error.getMessage());
    }

    @Test
    void aJoinIsInOneShardAndHasAllResults() {
        DqQueue sharded = queue.withShards(7);
        List<String> seen = new ArrayList<>();
        JobOptions slow = JobOptions.create().priority(1);
        String last = sharded.join(
                List.of(new DqQueue.NewJob("a"), new DqQueue.NewJob("b", slow), new DqQueue.NewJob("c")),
                new DqQueue.NewJob("last", JobOptions.create().onDead(JobOptions.OnDead.RUN)));
        assertEquals(4, Worker.on(sharded).handler(Handler.returning(String.class, (job, data) -> {
            seen.add(data + job.results().size());
            return data;
        })).build().drain());
        assertEquals(List.of("a0", "c0", "b0", "last3"), seen);
        assertEquals("last", sharded.result(last, String.class));
        for (int n = 0; n < 50; n++) {
            DqQueue.NewJob stray = new DqQueue.NewJob(1, JobOptions.withId("stray" + n));
            if (!sharded.shards.key("x").equals(sharded.shards.key("stray" + n))) {
                assertThrows(IllegalArgumentException.class, () -> sharded.join(List.of(stray), new DqQueue.NewJob(2, JobOptions.withId("x"))));
            }
        }
    }

    @Test
    void whatAJoinDoesNotTake() {
        DqQueue.NewJob last = new DqQueue.NewJob(2);
        assertThrows(IllegalArgumentException.class, () -> queue.join(List.of(), last));
        assertThrows(IllegalArgumentException.class, () -> join(JobOptions.create().after("a")));
        assertThrows(IllegalArgumentException.class, () -> join(JobOptions.create().afterGroup("a")));
        List<DqQueue.NewJob> many = new ArrayList<>(Collections.nCopies(1001, part()));
        DqQueue.NewJob anyway = new DqQueue.NewJob(2, JobOptions.create().onDead(JobOptions.OnDead.RUN));
        assertThrows(IllegalArgumentException.class, () -> queue.join(many, anyway));
        assertTrue(queue.get(queue.join(many, new DqQueue.NewJob(2, JobOptions.withId("x".repeat(1024))))).afterGroup().startsWith("join:"));
        many.set(0, new DqQueue.NewJob(1, JobOptions.create().group("g")));
        many.set(1, new DqQueue.NewJob(1, JobOptions.create().group("h")));
        assertThrows(IllegalArgumentException.class, () -> queue.join(many, last));
    }

    @Test
    void nobodyKnowsIfAJobOfTheSameIdIsStillToRun() {
        JobOptions last = JobOptions.withId("last");
        join(last);
        for (boolean arrives : List.of(true, false)) {
            assertEquals(arrives ? 1 : 0, lossy(arrives, () -> null, () -> assertUnknown(last)));
        }
    }

    @Test
    void nobodyKnowsIfAJobOfTheSameIdComesBeforeTheSecondSending() {
        Callable<?> meanwhile = () -> {
            connector.then = () -> queue.add(2, JobOptions.withId("last")); // as the first sending may come late
            return null;
        };
        assertEquals(2, lossy(false, meanwhile, () -> assertUnknown(JobOptions.withId("last"))));
    }

    @Test
    void jobsThatRanAndWentAreNotAddedAgain(Clock clock) {
        for (JobOptions last : List.of(
                JobOptions.create().keep(Duration.ZERO),
                JobOptions.withId("last").keep(Duration.ofMillis(1)),
                JobOptions.create().ttl(Duration.ofMillis(1)).delay(HOUR))) {
            Callable<?> meanwhile = () -> {
                work(false);
                return clock.advance(Duration.ofSeconds(1));
            };
            assertEquals(2, lossy(true, meanwhile, () -> assertUnknown(last)));
        }
    }

    @Test
    void othersThatRanAreNotAddedAgain() {
        DqQueue.NewJob kept = new DqQueue.NewJob(1, JobOptions.create().keep(HOUR));
        Callable<?> meanwhile = () -> {
            work(false);
            return queue.delete("last");
        };
        assertEquals(2, lossy(true, meanwhile, () -> assertUnknown(List.of(kept), JobOptions.withId("last"))));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void jobsThatOthersHavePushedOutAreNotAddedAgain(boolean fails) {
        queue.configure(fails ? new Settings().deadLen(1) : new Settings().doneLen(1));
        Callable<?> meanwhile = () -> {
            work(fails);
            queue.add(3, JobOptions.create().keep(HOUR));
            return work(fails);
        };
        assertEquals(3, lossy(true, meanwhile, () -> assertUnknown(JobOptions.create().onDead(JobOptions.OnDead.DIE))));
    }

    @Test
    void aChainOrAGroupAndWhatIsAfterItIsAsAJoin() {
        List<Function<JobOptions, List<String>>> adds = List.of(
                last -> queue.chain(List.of(part(), new DqQueue.NewJob(2, last))),
                last -> queue.addMany(List.of(
                        new DqQueue.NewJob(1, JobOptions.create().group("g")), new DqQueue.NewJob(2, last.copy().afterGroup("g")))));
        for (Function<JobOptions, List<String>> add : adds) {
            for (boolean arrives : List.of(false, true)) {
                JobOptions kept = JobOptions.create().keep(HOUR);
                assertEquals(2, lossy(arrives, () -> null, () -> assertEquals(HOUR, queue.get(add.apply(kept).get(1)).keep())));
                assertEquals(2, work(false));
            }
            assertEquals(2, lossy(true, () -> work(false), () -> assertThrows(DqException.class, () -> add.apply(JobOptions.create()))));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"LOADING", "CLUSTERDOWN", "MOVED", "TRYAGAIN", "READONLY"})
    void aRefusedQuestionSaysNothingOfTheTransaction(String code) {
        assertEquals(2, lossy(true, () -> {
            connector.refuses = new RefusedException(code + " not now");
            return work(false);
        }, () -> join(JobOptions.create())));
    }

    @Test
    void aFullQueueSaysHowManyWereAdded() {
        queue.configure(new Settings().maxLen(2));
        var full = assertThrows(QueueFullException.class, () -> join(JobOptions.create()));
        assertTrue(full.getMessage().endsWith("MAXLEN queue is full; 1 of 2 jobs were added"), full.getMessage());
        full = assertThrows(QueueFullException.class, () -> join(JobOptions.create()));
        assertTrue(full.getMessage().endsWith("MAXLEN queue is full"), full.getMessage());
    }
}

package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.DqQueue;
import io.github.redisdq.JobInfo;
import io.github.redisdq.State;
import io.github.redisdq.TestJob;
import io.github.redisdq.TestRun;
import io.github.redisdq.Worker;
import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How a program that uses dq is tested. The extension comes with the library. */
@ExtendWith(DqExtension.class)
class ShopTest {
    private static final class Declined extends RuntimeException {
        private static final long serialVersionUID = 1;

        Declined() {
            super("try again later");
        }
    }

    private final class World implements Shop.World {
        @Override
        public void mail(String to, String text) {
            mails.add(to + ": " + text);
            mailed.countDown();
        }

        @Override
        public void pay(int order, int amount) {
            if (declines-- > 0) {
                throw new Declined();
            }
            payments.add(order);
        }
    }

    private final List<String> mails = Collections.synchronizedList(new ArrayList<>());
    private final List<Integer> payments = new ArrayList<>();
    private final CountDownLatch mailed = new CountDownLatch(1);
    private int declines;
    private DqQueue queue;
    private Shop shop;

    @BeforeEach
    void open(DqServer server) {
        queue = server.queue("shop");
        shop = new Shop(queue, new World());
    }

    @AfterEach
    void close() {
        queue.close();
    }

    @Test
    void aReminderIn30Days(Clock clock) {
        shop.startTrial("ann");
        shop.startTrial("bob");
        shop.subscribe("bob");
        Worker worker = shop.worker().build();
        clock.advance(Duration.ofDays(29));
        assertEquals(0, worker.drain());
        clock.advance(Duration.ofDays(1));
        assertEquals(1, worker.drain());
        assertEquals(List.of("ann: Your trial ends tomorrow."), mails);
    }

    @Test
    void aPaymentIsTriedAgainAfterAMinuteAnHourAndADay(Clock clock) {
        declines = 3;
        shop.order(17, 20);
        Worker worker = shop.worker().build();
        worker.drain();
        for (Duration step : List.of(Duration.ofMinutes(1), Duration.ofHours(1), Duration.ofDays(1))) {
            assertEquals(List.of(), payments);
            clock.advance(step.dividedBy(10).multipliedBy(9));
            assertEquals(0, worker.drain());
            clock.advance(step.dividedBy(10));
            assertEquals(1, worker.drain());
        }
        assertEquals(List.of(17), payments);
    }

    @Test
    void aPaymentThatIsDeclinedFourTimesIsDead(Clock clock) {
        declines = 4;
        shop.order(17, 20);
        Worker worker = shop.worker().build();
        worker.drain();
        while (clock.next().isPresent()) {
            worker.drain();
        }
        JobInfo job = queue.get("charge:17");
        assertEquals(State.DEAD, job.state());
        assertEquals("Declined: try again later", job.reason());
    }

    @Test
    void aDeployInTheMiddleOfAJob() throws InterruptedException {
        shop.export(100_000);
        try (Worker worker = shop.worker().drain(Duration.ZERO).build()) {
            worker.start();
            assertTrue(mailed.await(30, TimeUnit.SECONDS));
        }
        JobInfo job = queue.get("export");
        assertEquals(State.READY, job.state()); // at once, not when its lease ends
        assertEquals(0, job.attempts());
    }

    @Test
    void aHandlerWithoutAServer() {
        declines = 2;
        TestRun run = TestJob.of(new Shop.Payment(17, 20)).run(shop.charge());
        assertEquals(List.of(State.DONE, 3, List.of(17)), List.of(run.state(), run.attempts(), payments));
        assertEquals(List.of(Duration.ofMinutes(1), Duration.ofHours(1)), run.waits());
        assertEquals("nothing to pay", TestJob.of(new Shop.Payment(18, 0)).run(shop.charge()).reason());
    }
}

package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Kinds of jobs, declared once. */
class KindTest extends OnServer {
    private static final Duration LONG = Duration.ofSeconds(30);

    record Order(int number, Instant placed) {}

    record Receipt(String text, Instant at) {}

    private static final Kind<Order, Receipt> CHARGE =
            Kind.of("charge", Order.class, Receipt.class, it -> it.attempts(5).keep(Duration.ofHours(1)));
    private static final Kind<Order, Void> SHIP = Kind.of("ship", Order.class);

    private final Order order = new Order(17, Instant.parse("2026-11-30T09:00:00.5Z"));

    private static Receipt charge(Job job, Order order) {
        return new Receipt("receipt " + order.number(), order.placed());
    }

    @Test
    void whoAddsAndWhoHandlesHaveTheSameTypes() throws Exception {
        String id = CHARGE.add(queue, order, it -> it.priority(7).keep(LONG));
        JobInfo info = queue.get(id);
        assertEquals(List.of("charge", 7, 5, LONG), List.of(info.label(), info.priority(), info.maxAttempts(), info.keep()));
        queue.join(List.of(CHARGE.job(order), CHARGE.job(order, it -> it.id("b"))), SHIP.job(order));
        try (Worker worker = Worker.on(queue).handler(CHARGE.returning(KindTest::charge)).handler(SHIP.handler((job, it) -> {})).build()) {
            worker.start();
            Receipt receipt = CHARGE.addAndWait(queue, order, LONG);
            assertEquals(new Receipt("receipt 17", order.placed()), receipt);
            assertEquals(receipt, CHARGE.wait(queue, id, LONG));
            assertEquals(receipt, CHARGE.result(queue, id));
        }
        assertEquals(Duration.ofHours(1), queue.get("b").keep());
    }

    @Test
    void whatCannotBeAKind() {
        assertThrows(IllegalArgumentException.class, () -> Kind.of("", Order.class));
        assertThrows(IllegalArgumentException.class, () -> Kind.of("k", Order.class, Void.class, it -> it.ttl(Duration.ZERO)));
    }

    @Test
    void theKindThatWasMeantIsNamed() {
        Nearest nearest = new Nearest(List.of("double", "send_receipt", "ab"));
        for (String[] each : new String[][] {{"doubles", "double"}, {"SendReceipt", "send_receipt"}, {"ba", "ab"}}) {
            assertEquals("; did it mean " + each[1] + "?", nearest.hint(each[0]));
        }
        for (String each : List.of("dowels", "other", "", "double".repeat(100_000))) {
            assertEquals("", nearest.hint(each));
        }
        queue.add(1, JobOptions.withId("slip").kind("charg"));
        String said = log(Worker.on(queue).handler(CHARGE.returning(KindTest::charge)).build()::drain);
        assertTrue(said.contains("no handler for kind charg: gave back job slip of q, attempt 1; did it mean charge?"), said);
    }
}

package io.github.redisdq;

import static io.github.redisdq.Deliveries.job;
import static io.github.redisdq.Deliveries.plain;
import static io.github.redisdq.Deliveries.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How ends are told, and what their answers mean, without a server. */
class EndsTest {
    private final Ends ends = new Ends();
    private final List<Job> lost = new ArrayList<>();
    private final Held held = new Held(Leases.of(List.of(plain()), null), lost::add, job -> {});
    private final Deque<Object> replies = new ArrayDeque<>(List.of(1L)); // to CLIENT ID

    private final Wire wire = new Wire(
            new Connector() {
                @Override
                public List<Object> call(List<byte[][]> commands, Duration patience) {
                    throw new DqException("there is no server");
                }

                @Override
                public Line connect(byte[] key, Duration patience) {
                    return new Line() {
                        @Override
                        public void send(List<byte[][]> commands) {}

                        @Override
                        public Object read() {
                            return replies.removeFirst();
                        }

                        @Override
                        public void cut() {}
                    };
                }

                @Override
                public Object place(byte[] key) {
                    return this;
                }

                @Override
                public void close() {}
            },
            Bytes.of("q"),
            Duration.ZERO,
            () -> {});

    private Outcome put(Job job) {
        Outcome outcome = Outcome.ended(job, null);
        ends.put(outcome);
        return outcome;
    }

    private RefusedException hear(Object... answers) {
        Deque<Outcome> told = ends.take(Integer.MAX_VALUE);
        Ends.commands(told);
        wire.open();
        replies.addAll(List.of(answers));
        return ends.hear(wire, told, held, said -> {});
    }

    @Test
    void endsThatAreAlikeShareACommand() {
        List<Job> jobs = List.of(job("1"), job("2"), job("3"), job("4"), job("5"));
        jobs.get(3).result = Bytes.of("7");
        jobs.forEach(this::put);
        Deque<Outcome> told = ends.take(Integer.MAX_VALUE);
        String each = " id 1882361448423751680";
        assertEquals(
                List.of(
                        "DQ.ACK q WITHTOKENS IDS 3" + each.repeat(3),
                        "DQ.ACK q RESULTS IDS 1" + each + " 7",
                        "DQ.ACK q WITHTOKENS IDS 1" + each),
                Ends.commands(told).stream().map(words -> text(words, 0)).toList());
        ends.putBack(told, null);
        assertNull(hear(List.of(1L, 0L, 1L), List.of(1L), List.of(0L)));
        assertEquals(List.of(), lost, "they were sent twice");
        jobs.forEach(this::put);
        assertNull(hear(List.of(1L, 0L, 1L), List.of(1L), List.of(0L)));
        assertEquals(List.of(jobs.get(1), jobs.get(4)), lost);
        assertEquals(List.of(), ends.unanswered());
    }

    @Test
    void whatIsRefusedTogetherIsSentAgain() {
        RefusedException busy = new RefusedException("LOADING");
        put(job("1"));
        put(job("2"));
        assertSame(busy, hear(busy));
        assertEquals(2, ends.pending());
        assertNull(hear(List.of(1L, 1L)));
        assertEquals(List.of(), lost);
    }
}

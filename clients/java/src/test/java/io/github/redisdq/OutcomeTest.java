package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the worker decides, without a server. */
class OutcomeTest {
    private static final byte[] TOKEN = Bytes.of("1882361448423751680");

    private static Job job(Handler<?> handler, int attempt, String payload, Object terms) {
        List<Object> row = List.of(Bytes.of("id"), Bytes.of(payload), TOKEN, (long) attempt, 2000L, 1000L, terms);
        Job job = new Job(Bytes.of("q"), row, Codec.json(), null);
        job.handler = handler;
        return job;
    }

    /** {@code wait}: what its own ladder would wait; null: it has none. */
    private static List<Object> terms(long maxAttempts, Long wait) {
        return Arrays.asList(60_000L, maxAttempts, wait);
    }

    private static Job job(Handler<?> handler, int attempt, String payload) {
        return job(handler, attempt, payload, terms(0, null));
    }

    private static Job job(String payload) {
        return job(plain(), 1, payload);
    }

    private static Handler<Void> plain() {
        return Handler.of(job -> {});
    }

    private static String text(byte[][] words, int from) {
        return Stream.of(words).skip(from).map(Bytes::text).collect(Collectors.joining(" "));
    }

    private static String ended(Job job, Throwable error) {
        return text(Outcome.ended(job, error).command(), 5);
    }

    @Test
    void successIsAcknowledgedWithTheToken() {
        assertEquals("DQ.ACK q WITHTOKENS id 1882361448423751680", text(Outcome.ended(job(""), null).command(), 0));
        assertEquals(Outcome.Answer.SETTLED, Outcome.ended(job(""), null).answered(1L));
        assertEquals(Outcome.Answer.LOST, Outcome.ended(job(""), null).answered(0L));
        assertEquals(Outcome.Answer.LOST, Outcome.ended(job(""), new Error()).answered(null));
    }

    @Test
    void whatWasSentAgainMayHaveBeenDoneTheFirstTime() {
        for (Throwable end : Arrays.asList(null, new Error())) {
            Outcome outcome = Outcome.ended(job(""), end);
            outcome.sending(); // and the connection was lost
            outcome.sending();
            outcome.heard();
            assertEquals(Outcome.Answer.SETTLED, outcome.answered(end == null ? 0L : null));
            Outcome refusedFirst = Outcome.ended(job(""), end);
            refusedFirst.sending();
            refusedFirst.heard(); // READONLY, say
            refusedFirst.sending();
            refusedFirst.heard();
            assertEquals(Outcome.Answer.LOST, refusedFirst.answered(end == null ? 0L : null));
        }
    }

    @Test
    void theLadderOfTheJobGoesFirst() {
        Job job = job(plain().backoff(Duration.ofSeconds(7)), 1, "", terms(0, 1000L));
        assertEquals("REASON RuntimeException: no", ended(job, new RuntimeException("no")));
    }

    @Test
    void theLadderOfTheHandlerIsNextAndItsLastStepRepeats() {
        Handler<Void> handler = plain().backoff(Duration.ofSeconds(1), Duration.ofSeconds(5));
        Map.of(1, "1000", 2, "5000", 9, "5000").forEach((attempt, delay) ->
                assertEquals("DELAY " + delay + " REASON Error", ended(job(handler, attempt, ""), new Error())));
    }

    @Test
    void withoutALadderTheWaitDoublesToAnHour() {
        Map.of(1, 1, 2, 2, 5, 16, 13, 3600, 10_000, 3600).forEach((attempt, seconds) -> {
            double delay = plain().delay(attempt).toMillis() / 1000.0;
            assertTrue(seconds <= delay && delay <= seconds * 1.25 + 0.001, attempt + ": " + delay);
        });
    }

    @Test
    void attemptsOfTheHandlerEndAJobWithoutItsOwn() {
        Handler<Void> handler = plain().attempts(2);
        assertTrue(ended(job(handler, 1, ""), new Error()).startsWith("DELAY"));
        assertTrue(ended(job(handler, 2, ""), new Error()).startsWith("FATAL"));
        assertTrue(ended(job(handler, 2, "", terms(9, null)), new Error()).startsWith("DELAY"));
        assertTrue(job(handler, 2, "").isLastAttempt() && !job(handler, 1, "").isLastAttempt());
        assertEquals(9, job(handler, 2, "", terms(9, null)).maxAttempts());
        assertFalse(job("").isLastAttempt());
    }

    @Test
    void whatAHandlerMaySay() {
        Duration minute = Duration.ofMinutes(1);
        assertEquals("DELAY 60000 REASON busy", ended(job(plain(), 1, "", terms(0, 1L)), new RetryException(minute, "busy")));
        assertEquals("SILENT DELAY 60000", ended(job(""), new SnoozeException(minute)));
        assertEquals("FATAL REASON bad", ended(job(""), new GiveUpException("bad")));
        assertEquals("SILENT DELAY 100", ended(job(""), new SnoozeException(Duration.ZERO)));
        assertEquals("DELAY 100 REASON RetryException", ended(job(""), new RetryException(Duration.ZERO)));
        assertEquals("FATAL REASON payload cannot be decoded: no", ended(job(""), new PayloadException("no", null)));
    }

    @Test
    void aDelayThatIsNoneIsAsIfItWasNotSaid() {
        Handler<Void> handler = plain().backoff(Duration.ofSeconds(7));
        for (Duration wrong : Arrays.asList(null, Duration.ofSeconds(-1), ChronoUnit.FOREVER.getDuration())) {
            assertEquals("DELAY 7000 REASON RetryException", ended(job(handler, 1, ""), new RetryException(wrong)));
            assertEquals("REASON busy", ended(job(handler, 1, "", terms(0, 1L)), new RetryException(wrong, "busy")));
            assertEquals("DELAY 7000 REASON busy", ended(job(handler, 1, ""), new SnoozeException(wrong, "busy")), "it counts");
        }
    }

    /** Each step leaves out one thing, until nothing is left. */
    @Test
    void whatTheServerRefusesIsLeftOut() {
        Duration century = Duration.ofDays(36_500);
        Outcome retry = Outcome.ended(job(plain(), 1, "", terms(0, 1L)), new RetryException(century, "busy"));
        assertEquals("the delay", retry.weaken());
        assertEquals("REASON busy", text(retry.command(), 5));
        assertEquals("the reason", retry.weaken());
        assertEquals("", text(retry.command(), 5));
        assertNull(retry.weaken());
        Outcome snooze = Outcome.ended(job(""), new SnoozeException(century));
        assertEquals("the delay", snooze.weaken());
        assertTrue(text(snooze.command(), 5).matches("DELAY 1\\d\\d\\d"), "a failure, and no hot loop");
        Outcome ladder = Outcome.ended(job(plain().backoff(Duration.ofSeconds(7)), 1, ""), new RetryException(century, "busy"));
        ladder.weaken();
        assertEquals("DELAY 7000 REASON busy", text(ladder.command(), 5));
        Outcome wrongLadder = Outcome.ended(job(plain().backoff(century), 1, ""), new Error());
        assertEquals("the delay", wrongLadder.weaken());
        assertTrue(text(wrongLadder.command(), 5).matches("DELAY 1\\d\\d\\d REASON Error"));
        Outcome last = Outcome.ended(job(plain().attempts(1), 1, ""), new SnoozeException(century));
        last.weaken();
        assertEquals("FATAL", text(last.command(), 5));
        assertNull(Outcome.ended(job(""), null).weaken());
    }

    /** Somebody else's, kept and thrown again: it must not come back at once for ever. */
    @Test
    void whoWasNotToldToEndHasFailed() {
        Job other = job("");
        other.tell(CancelReason.LOST);
        CancelledException kept = assertThrows(CancelledException.class, other::check);
        assertTrue(ended(job(""), kept).startsWith("DELAY 1"));
        Job one = job("");
        Job two = job("");
        new Job.Run(List.of(one, two)).end();
        one.tell(CancelReason.STOPPING);
        assertEquals("SILENT DELAY 1000", ended(two, kept), "of a batch of which one was told");
    }

    @Test
    void whoIsToldToStopIsGivenBackUncounted() {
        Job job = job("");
        job.tell(CancelReason.STOPPING);
        assertEquals("SILENT", ended(job, new InterruptedException()));
        assertEquals("DQ.ACK", Bytes.text(Outcome.ended(job, null).command()[0]));
        assertThrows(CancelledException.class, job::check);
    }

    @Test
    void reasonsAreCutBetweenCharacters() {
        byte[][] nack = Outcome.ended(job(""), new RuntimeException("ä".repeat(100_000))).command();
        byte[] reason = nack[nack.length - 1];
        assertTrue(reason.length <= 1024 && new String(reason, java.nio.charset.StandardCharsets.UTF_8).endsWith("ä"));
    }

    @Test
    void oneHeartbeatForAllJobsOfAQueue() {
        byte[][] touch = Outcome.forAll("DQ.TOUCH", List.of(job(""), job("")), new Words().value("TTR", 3000));
        assertEquals("DQ.TOUCH q IDS 2 id 1882361448423751680 id 1882361448423751680 TTR 3000", text(touch, 0));
    }

    @Test
    void whatWaitingCannotMendIsSaid() {
        Map.of(
                        "ERR unknown command 'DQ.BPOP', with args", "loadmodule",
                        "NOAUTH Authentication required.", "none was given",
                        "WRONGPASS invalid username-password pair", "the right ones",
                        "NOPERM no permissions", "ACL",
                        "WRONGTYPE Operation against a key", "another type",
                        "ERR syntax error", "older")
                .forEach((said, word) -> assertTrue(
                        Trouble.fatal(new ServerException(said)).getMessage().contains(word), said));
    }

    @ParameterizedTest
    @ValueSource(strings = {"MISCONF Redis is configured", "UNBLOCKED force unblock", "LOADING Redis", "READONLY", "CLUSTERDOWN"})
    void whatPassesIsWaitedFor(String said) {
        assertNull(Trouble.fatal(new ServerException(said)));
        assertNull(Trouble.fatal(new DqException("connection reset")));
    }

    @Test
    void handlersByKind() {
        Handler<Void> one = plain().kind("one");
        Handler<Void> other = plain();
        Handlers handlers = new Handlers(List.of(one, other));
        assertSame(one, handlers.choose(job("{\"dq\":1,\"kind\":\"one\",\"data\":1}")));
        assertSame(other, handlers.choose(job("{\"dq\":1,\"kind\":\"two\",\"data\":1}")));
        assertSame(other, handlers.choose(job("{}")));
        assertNull(handlers.choose(job("{\"dq\":2,\"kind\":\"one\",\"data\":1}")));
        assertNull(new Handlers(List.of(one)).choose(job("{}")));
        assertEquals(1, handlers.size());
        assertThrows(ConfigurationException.class, () -> new Handlers(List.of(plain(), plain())));
        assertThrows(ConfigurationException.class, () -> new Handlers(List.of(one, plain().kind("one"))));
        assertThrows(ConfigurationException.class, () -> new Handlers(List.of()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{", "[]", "{\"dq\":1}", "{\"dq\":\"1\",\"kind\":\"a\",\"data\":1}",
        "{\"dq\":true,\"kind\":\"a\",\"data\":1}", "{\"dq\":1,\"data\":1}", "{\"a\":\"dq\"}", "{\"dq\":1.5,\"kind\":\"a\",\"data\":1}"})
    void whatIsNoEnvelope(String payload) {
        assertNull(Envelope.read(Bytes.of(payload)));
    }

    @Test
    void dataKindAndHeaders() {
        byte[] payload = Envelope.write(Codec.json(), Map.of("a", "ä"), "close", Map.of("x", "y"));
        assertEquals("{\"dq\":1,\"kind\":\"close\",\"data\":{\"a\":\"ä\"},\"headers\":{\"x\":\"y\"}}", Bytes.text(payload));
        Job job = job(Bytes.text(payload));
        assertEquals("close", job.kind());
        assertEquals(Map.of("x", "y"), job.headers());
        assertEquals(Map.of("a", "ä"), job.data(Map.class));
        assertThrows(PayloadException.class, () -> job("no JSON").data(Map.class));
        assertThrows(PayloadException.class, () -> job("").data(Map.class));
        assertThrows(DqException.class, () -> Envelope.write(Codec.json(), new byte[1], "close", Map.of()));
    }

    @Test
    void numbersAndBytesOfDataStayAsTheyAre() {
        String data = "[1e400,0.12345678901234567890,{\"ä\":\"\\u0000€\"},-17]";
        byte[] payload = Envelope.write(Codec.json(), rawJson(data), "k", Map.of("x", "y"));
        assertEquals(data, Bytes.text(Envelope.read(payload).data()));
        assertEquals("1.5", Bytes.text(Envelope.read(Bytes.of("{ \"dq\" : 1, \"data\" : 1.5 , \"kind\":\"k\"}")).data()));
        BigDecimal exact = new BigDecimal("0.12345678901234567890");
        assertEquals(exact, job(Bytes.text(Codec.json().encode(exact))).data(BigDecimal.class));
        for (String wrong : List.of("", "1 2", "{", "NaN")) {
            assertThrows(DqException.class, () -> Envelope.write(textCodec(), wrong, "k", Map.of()), wrong);
        }
    }

    private static Object rawJson(String json) {
        return new Object() {
            @com.fasterxml.jackson.annotation.JsonValue
            @com.fasterxml.jackson.annotation.JsonRawValue
            public String json() {
                return json;
            }
        };
    }

    private static Codec textCodec() {
        return new Codec() {
            @Override
            public byte[] encode(Object data) {
                return Bytes.of((String) data);
            }

            @Override
            public <T> T decode(byte[] payload, Type type) {
                return null;
            }
        };
    }

    @Test
    void whatIsNoNumberIsRefused() {
        List<Object> wrong = List.of(Double.NaN, Float.POSITIVE_INFINITY, new double[] {1, Double.NaN},
                new float[] {Float.NaN}, List.of(Double.NEGATIVE_INFINITY), Map.of("a", Double.NaN));
        for (Object data : wrong) {
            DqException plain = assertThrows(DqException.class, () -> Codec.json().encode(data));
            assertTrue(plain.getMessage().contains("is not a number"), plain.getMessage());
            assertThrows(DqException.class, () -> Envelope.write(Codec.json(), data, "kind", Map.of()));
        }
    }

    record Order(int number) {}

    @Test
    void noHandlerGetsNull() {
        for (String payload : List.of("null", " null ", "{\"dq\":1,\"kind\":\"k\",\"data\":null}")) {
            for (Class<?> type : List.of(Order.class, String.class, Map.class, int.class, Object.class)) {
                assertThrows(PayloadException.class, () -> job(payload).data(type), payload + " as " + type);
            }
            assertNull(job(payload).data(Void.class));
            assertTrue(job(payload).data(com.fasterxml.jackson.databind.JsonNode.class).isNull());
        }
        Job job = new Job(Bytes.of("q"), List.of(Bytes.of("id"), Bytes.of("x"), TOKEN, 1L, 2L, 1L), textCodec(), null);
        assertThrows(PayloadException.class, () -> job.data(String.class), "of a codec of the program's");
    }

    /** The codec of the queue, not the library's own. */
    @Test
    void theCodecReadsWhatItWroteInAnEnvelope() {
        Codec snake = new JsonCodec(JsonMapper.builder().propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE).build());
        byte[] payload = Envelope.write(snake, new Named("Ann"), "k", Map.of());
        Job job = new Job(Bytes.of("q"), List.of(Bytes.of("id"), payload, TOKEN, 1L, 2L, 1L), snake, null);
        assertEquals(new Named("Ann"), job.data(Named.class));
    }

    record Named(String firstName) {}

    @Test
    void leasesAreThoseOfHandlersElseOfJobsElseOfTheWorker() {
        Duration own = Duration.ofSeconds(20);
        Duration said = Duration.ofSeconds(5);
        Terms usual = new Terms(60_000, 0, false);
        Terms short2s = new Terms(2000, 0, false);
        Leases none = Leases.of(List.of(plain()), null);
        assertEquals("", text(none.words().all(), 0));
        assertEquals(List.of(60_000L, 2000L), List.of(none.ms(usual), none.ms(short2s)));
        Leases worker = Leases.of(List.of(plain()), own);
        assertEquals("LEASE 20000", text(worker.words().all(), 0));
        assertEquals(List.of(20_000L, 2000L), List.of(worker.ms(usual), worker.ms(short2s)));
        Leases handler = Leases.of(List.of(plain().lease(said)), own);
        assertEquals("TTR 5000", text(handler.words().all(), 0));
        assertEquals(List.of(5000L, 5000L), List.of(handler.ms(usual), handler.ms(short2s)));
        Leases mixed = Leases.of(List.of(plain().lease(said), plain().kind("k")), own);
        assertEquals("LEASE 20000", text(mixed.words().all(), 0));
        assertEquals(said, mixed.shortest());
    }

    @Test
    void idsGrowWithTimeAndAreUuids() {
        String one = Ids.next();
        assertEquals(7, UUID.fromString(one).version());
        assertTrue(System.currentTimeMillis() - (UUID.fromString(one).getMostSignificantBits() >>> 16) < 60_000);
        String last = one;
        for (int n = 0; n < 10_000; n++) {
            String next = Ids.next();
            assertTrue(last.compareTo(next) < 0, last + " before " + next);
            last = next;
        }
        assertTrue(Ids.isOurs(one) && !Ids.isOurs("17") && !Ids.isOurs(UUID.randomUUID().toString()));
    }

    @Test
    void idsOfAnyBytesSurvive() {
        byte[] all = new byte[256];
        for (int at = 0; at < all.length; at++) {
            all[at] = (byte) at;
        }
        assertArrayEquals(all, Bytes.of(Bytes.text(all)));
        assertEquals("ä€😀", Bytes.text(Bytes.of("ä€😀")));
        assertArrayEquals("😀\uD83D".getBytes(java.nio.charset.StandardCharsets.UTF_8), Bytes.of("😀\uD83D"));
    }

    @Test
    void durationsAndInstantsAreRoundedUp() {
        assertEquals(Long.MAX_VALUE, Times.ms(ChronoUnit.FOREVER.getDuration()));
        assertEquals(Long.MAX_VALUE, Times.ms(Instant.MAX));
        assertEquals(1, Times.ms(Duration.ofNanos(1)));
        assertEquals(1, Times.ms(Duration.ofMillis(1)));
        assertEquals(2, Times.ms(Duration.ofNanos(1_000_001)));
        assertEquals(6, Times.ms(Instant.ofEpochMilli(5).plusNanos(1)));
    }

    @Test
    void aBatchIsInterruptedWhenAllOfItIsLostAndNotAfterItsEnd() {
        Job one = job("");
        Job two = job("");
        Job.Run run = new Job.Run(List.of(one, two));
        one.tell(CancelReason.LOST);
        one.tell(CancelReason.STOPPING);
        assertFalse(Thread.currentThread().isInterrupted());
        assertTrue(one.isLost() && !two.isCancelled());
        two.tell(CancelReason.LOST);
        assertTrue(Thread.currentThread().isInterrupted());
        run.end();
        assertFalse(Thread.currentThread().isInterrupted());
        Job three = job("");
        Job.Run other = new Job.Run(List.of(three));
        other.end();
        three.tell(CancelReason.STOPPING);
        assertFalse(Thread.currentThread().isInterrupted());
        assertNotNull(three.cancelReason());
    }
}

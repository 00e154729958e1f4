package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the worker decides, without a server. */
class OutcomeTest {
    private static final byte[] TOKEN = Bytes.of("1882361448423751680");

    private static Job job(Handler<?> handler, int attempt, String payload) {
        List<Object> row = List.of(Bytes.of("id"), Bytes.of(payload), TOKEN, (long) attempt, 2000L, 1000L);
        Job job = new Job(Bytes.of("q"), row, Codec.json(), null);
        job.handler = handler;
        return job;
    }

    private static Job job(String payload) {
        return job(plain(), 1, payload);
    }

    private static Handler<Void> plain() {
        return Handler.of(job -> {});
    }

    private static Object queued(byte[] token, long maxAttempts, Long... ladder) {
        return List.of(
                Bytes.of("token"), token, Bytes.of("max-attempts"), maxAttempts, Bytes.of("backoff"), Arrays.asList(ladder));
    }

    private static String text(byte[][] words, int from) {
        return Stream.of(words).skip(from).map(Bytes::text).collect(Collectors.joining(" "));
    }

    private static String afterGet(Job job, Throwable error, Object reply) {
        Outcome outcome = Outcome.ended(job, error);
        assertEquals("DQ.GET q id", text(outcome.command, 0));
        assertEquals(Outcome.Verdict.OPEN, outcome.answered(reply));
        return text(outcome.command, 5);
    }

    @Test
    void successIsAcknowledgedWithTheToken() {
        assertEquals("DQ.ACK q WITHTOKENS id 1882361448423751680", text(Outcome.ended(job(""), null).command, 0));
        assertEquals(Outcome.Verdict.SETTLED, Outcome.ended(job(""), null).answered(1L));
        assertEquals(Outcome.Verdict.LOST, Outcome.ended(job(""), null).answered(0L));
    }

    @Test
    void theLadderOfTheJobGoesFirst() {
        Job job = job(plain().backoff(Duration.ofSeconds(7)), 1, "");
        assertEquals("REASON RuntimeException: no", afterGet(job, new RuntimeException("no"), queued(TOKEN, 0, 1000L)));
    }

    @Test
    void theLadderOfTheHandlerIsNextAndItsLastStepRepeats() {
        Handler<Void> handler = plain().backoff(Duration.ofSeconds(1), Duration.ofSeconds(5));
        Map.of(1, "1000", 2, "5000", 9, "5000").forEach((attempt, delay) -> assertEquals(
                "DELAY " + delay + " REASON Error", afterGet(job(handler, attempt, ""), new Error(), queued(TOKEN, 0))));
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
        assertTrue(afterGet(job(handler, 1, ""), new Error(), queued(TOKEN, 0)).startsWith("DELAY"));
        assertTrue(afterGet(job(handler, 2, ""), new Error(), queued(TOKEN, 0)).startsWith("FATAL"));
        assertTrue(afterGet(job(handler, 2, ""), new Error(), queued(TOKEN, 9)).startsWith("DELAY"));
    }

    @Test
    void aFailureOfAJobThatSomebodyElseHasIsLost() {
        assertEquals(Outcome.Verdict.LOST, Outcome.ended(job(""), new Error()).answered(queued(Bytes.of("1"), 0)));
        assertEquals(Outcome.Verdict.LOST, Outcome.ended(job(""), new Error()).answered(null));
    }

    @Test
    void whatAHandlerMaySay() {
        Duration minute = Duration.ofMinutes(1);
        assertEquals("DELAY 60000 REASON busy", afterGet(job(""), Say.retryIn(minute, "busy"), queued(TOKEN, 0, 1L)));
        assertEquals("SILENT DELAY 60000", text(Outcome.ended(job(""), Say.snooze(minute)).command, 5));
        assertEquals("FATAL REASON bad", text(Outcome.ended(job(""), Say.giveUp("bad")).command, 5));
        assertEquals("SILENT DELAY 100", text(Outcome.ended(job(""), Say.snooze(Duration.ZERO)).command, 5));
        assertEquals("DELAY 100 REASON Retry", afterGet(job(""), Say.retryIn(Duration.ZERO), queued(TOKEN, 0)));
    }

    @Test
    void whoIsToldToStopIsGivenBackUncounted() {
        Job job = job("");
        job.tell(Told.STOPPING);
        assertEquals("SILENT", text(Outcome.ended(job, new InterruptedException()).command, 5));
        assertEquals("DQ.ACK", Bytes.text(Outcome.ended(job, null).command[0]));
        assertThrows(Say.Cancelled.class, job::check);
    }

    @Test
    void reasonsAreCutBetweenCharacters() {
        byte[] reason = Outcome.reason(new RuntimeException("ä".repeat(1000)));
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
                        "NOAUTH Authentication required.", "password",
                        "WRONGPASS invalid username-password pair", "password",
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
        Handler<Void> other = plain().lease(Duration.ofMinutes(1));
        Handlers handlers = new Handlers(List.of(one, other));
        assertSame(one, handlers.choose(job("{\"dq\":1,\"kind\":\"one\",\"data\":1}")));
        assertSame(other, handlers.choose(job("{\"dq\":1,\"kind\":\"two\",\"data\":1}")));
        assertSame(other, handlers.choose(job("{}")));
        assertNull(handlers.choose(job("{\"dq\":2,\"kind\":\"one\",\"data\":1}")));
        assertNull(new Handlers(List.of(one)).choose(job("{}")));
        assertEquals(Duration.ofMinutes(1), handlers.lease());
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
        one.tell(Told.LOST);
        one.tell(Told.STOPPING);
        assertFalse(Thread.currentThread().isInterrupted());
        assertTrue(one.isLost() && !two.isCancelled());
        two.tell(Told.LOST);
        assertTrue(Thread.currentThread().isInterrupted());
        run.end();
        assertFalse(Thread.currentThread().isInterrupted());
        Job three = job("");
        Job.Run other = new Job.Run(List.of(three));
        other.end();
        three.tell(Told.STOPPING);
        assertFalse(Thread.currentThread().isInterrupted());
        assertNotNull(three.told());
    }
}

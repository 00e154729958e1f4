package io.github.redisdq;

import static io.github.redisdq.Deliveries.TOKEN;
import static io.github.redisdq.Deliveries.commands;
import static io.github.redisdq.Deliveries.job;
import static io.github.redisdq.Deliveries.plain;
import static io.github.redisdq.Deliveries.terms;
import static io.github.redisdq.Deliveries.text;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.SocketTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the worker decides, without a server. */
class OutcomeTest {
    private static final RefusedException REFUSED = new RefusedException("ERR no");

    /** The only command of an end. */
    private static byte[][] command(Outcome outcome) {
        List<byte[][]> commands = Deliveries.commands(outcome);
        assertEquals(1, commands.size());
        return commands.get(0);
    }

    private static String ended(Job job, Throwable error) {
        return text(command(Outcome.ended(job, error)), 5);
    }

    @Test
    void successIsAcknowledgedWithTheToken() {
        assertEquals("DQ.ACK q WITHTOKENS IDS 1 id 1882361448423751680", text(command(Outcome.ended(job(""), null)), 0));
        assertEquals(Outcome.Answer.SETTLED, Outcome.ended(job(""), null).answered(List.of(1L)));
        assertEquals(Outcome.Answer.LOST, Outcome.ended(job(""), null).answered(List.of(0L)));
        assertEquals(Outcome.Answer.LOST, Outcome.ended(job(""), new Error()).answered(null));
    }

    @Test
    void whatWasSentAgainMayHaveBeenDoneTheFirstTime() {
        for (Throwable end : Arrays.asList(null, new Error())) {
            Outcome outcome = Outcome.ended(job(""), end);
            outcome.sending(); // and the connection was lost
            outcome.sending();
            outcome.heard();
            assertEquals(Outcome.Answer.SETTLED, outcome.answered(end == null ? List.of(0L) : null));
            Outcome refusedFirst = Outcome.ended(job(""), end);
            refusedFirst.sending();
            refusedFirst.heard(); // READONLY, say
            refusedFirst.sending();
            refusedFirst.heard();
            assertEquals(Outcome.Answer.LOST, refusedFirst.answered(end == null ? List.of(0L) : null));
        }
    }

    @Test
    void onlyWhatTheServerCutsIsNotSentAThirdTime() {
        Job job = job("");
        job.succeed("x".repeat(2 << 20));
        job.encode();
        Outcome outcome = Outcome.ended(job, null);
        for (Throwable error : List.of(new TimeoutException(), new DqException("", new SocketTimeoutException()), new DqException("cut", null))) {
            outcome.sending();
            assertFalse(outcome.endsConnections(error));
        }
        assertFalse(outcome.endsConnections(new DqException("it was not sent", null)));
        outcome.sending();
        assertTrue(outcome.endsConnections(new DqException("cut", null)));
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
    void withoutALadderTheServersHolds() {
        assertEquals("REASON RuntimeException: no", ended(job(plain(), 5, ""), new RuntimeException("no")));
    }

    @Test
    void theLeastOfTheLimitsEndsAJob() {
        Handler<Void> handler = plain().attempts(2);
        assertEquals("REASON Error", ended(job(handler, 1, ""), new Error()));
        assertTrue(ended(job(handler, 2, ""), new Error()).startsWith("FATAL"));
        assertTrue(ended(job(handler, 2, "", terms(9, null)), new Error()).startsWith("FATAL"));
        assertTrue(job(handler, 2, "").isLastAttempt() && !job(handler, 1, "").isLastAttempt());
        assertEquals(2, job(handler, 2, "", terms(9, null)).maxAttempts());
        assertEquals(1, job(handler, 2, "", terms(1, null)).maxAttempts());
        assertEquals(9, job(plain(), 2, "", terms(9, null)).maxAttempts());
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

    @Test
    void whatNoHandlerTakesOrNoWorkerSurvives() {
        String kind = "{\"dq\":1,\"kind\":\"y\",\"data\":1}";
        assertEquals("DELAY 120000 REASON unknown kind \"y\"", text(commands(Outcome.unknown(job(plain(), 2, kind))).get(1), 5));
        assertEquals("id " + text(new byte[][] {TOKEN}, 0) + " dq:unknown 1", text(commands(Outcome.unknown(job(plain(), 2, kind))).get(0), 2));
        assertEquals("FATAL REASON unknown kind \"y\"", text(command(Outcome.unknown(job(plain(), 14, kind))), 5));
        assertEquals("FATAL REASON attempts used up; its workers were lost", text(command(Outcome.usedUp(job(""))), 5));
    }

    @Test
    void deliveriesToWorkersThatDoNotKnowTheKindAreNoAttemptsOfTheHandler() {
        for (String each : List.of("6 5 0 8", "8 5 0 8", "2 5 0 4", "7 5 7 7", "7 -1 0 3", "7 x 0 3", "7 9999999999 0 3")) {
            String[] words = each.split(" ");
            Object steps = List.of(Bytes.of("other"), Bytes.of("9"), Bytes.of("dq:unknown"), Bytes.of(words[1]));
            List<Object> row = Deliveries.row(Bytes.of(""), Integer.parseInt(words[0]), List.of(), steps, terms(Long.parseLong(words[2]), null));
            Job job = new Job(Bytes.of("q"), row, Codec.json(), null);
            job.handler = plain().attempts(3);
            assertEquals(words[3], String.valueOf(job.maxAttempts()), each);
        }
    }

    /** Each step leaves out one thing, until nothing is left. */
    @Test
    void whatTheServerRefusesIsLeftOut() {
        Duration century = Duration.ofDays(36_500);
        Outcome retry = Outcome.ended(job(plain(), 1, "", terms(0, 1L)), new RetryException(century, "busy"));
        assertEquals("the delay", retry.weaken(REFUSED));
        assertEquals("REASON busy", text(command(retry), 5));
        assertEquals("the reason", retry.weaken(REFUSED));
        assertEquals("", text(command(retry), 5));
        assertNull(retry.weaken(REFUSED));
        Outcome snooze = Outcome.ended(job(""), new SnoozeException(century));
        assertEquals("the delay", snooze.weaken(REFUSED));
        assertEquals("", text(command(snooze), 5), "a failure");
        Outcome ladder = Outcome.ended(job(plain().backoff(Duration.ofSeconds(7)), 1, ""), new RetryException(century, "busy"));
        ladder.weaken(REFUSED);
        assertEquals("DELAY 7000 REASON busy", text(command(ladder), 5));
        Outcome wrongLadder = Outcome.ended(job(plain().backoff(century), 1, ""), new Error());
        assertEquals("the delay", wrongLadder.weaken(REFUSED));
        assertEquals("REASON Error", text(command(wrongLadder), 5));
        Outcome last = Outcome.ended(job(plain().attempts(1), 1, ""), new SnoozeException(century));
        last.weaken(REFUSED);
        assertEquals("FATAL", text(command(last), 5));
        assertNull(Outcome.ended(job(""), null).weaken(REFUSED));
    }

    /**
     * An exception of another job that a handler kept and throws again: its job must not come back uncounted for ever.
     */
    @Test
    void whoWasNotToldToEndHasFailed() {
        Job other = job("");
        other.tell(CancelReason.LOST);
        CancelledException kept = assertThrows(CancelledException.class, other::check);
        assertTrue(ended(job(""), kept).startsWith("REASON "));
        Job one = job("");
        Job two = job("");
        run(one, two).end();
        one.tell(CancelReason.STOPPING);
        assertEquals("SILENT DELAY 1000", ended(two, kept), "of a batch of which one was told");
    }

    @Test
    void whoIsToldToStopIsGivenBackUncounted() {
        Job job = job("");
        job.tell(CancelReason.STOPPING);
        assertEquals("SILENT", ended(job, new InterruptedException()));
        assertEquals("DQ.ACK", Bytes.text(command(Outcome.ended(job, null))[0]));
        assertThrows(CancelledException.class, job::check);
    }

    @Test
    void reasonsAreCutBetweenCharacters() {
        byte[][] nack = command(Outcome.ended(job(""), new RuntimeException("ä".repeat(100_000))));
        byte[] reason = nack[nack.length - 1];
        assertTrue(reason.length <= 1024 && new String(reason, java.nio.charset.StandardCharsets.UTF_8).endsWith("ä"));
    }

    @Test
    void oneHeartbeatForAllJobsOfAQueue() {
        Words touch = new Words("DQ.TOUCH").add("q").add(Job.all(List.of(job(""), job(""))));
        assertEquals("DQ.TOUCH q IDS 2 id 1882361448423751680 id 1882361448423751680", text(touch.all(), 0));
    }

    @Test
    void whatWaitingCannotMendIsSaid() {
        Map.of(
                        "ERR unknown command 'DQ.BPOP', with args", "loadmodule",
                        "NOAUTH Authentication required.", "none was given",
                        "WRONGPASS invalid username-password pair", "the right ones",
                        "ERR AUTH <password> called without any password configured for the default user", "out of the URL",
                        "NOPERM no permissions", "ACL",
                        "WRONGTYPE Operation against a key", "another type",
                        "ERR syntax error", "older")
                .forEach((said, word) -> assertTrue(
                        Trouble.fatal(new RefusedException(said)).getMessage().contains(word), said));
    }

    @ParameterizedTest
    @ValueSource(strings = {"MISCONF Redis is configured", "UNBLOCKED force unblock", "LOADING Redis", "READONLY", "CLUSTERDOWN"})
    void whatPassesIsWaitedFor(String said) {
        assertNull(Trouble.fatal(new RefusedException(said)));
        assertNull(Trouble.fatal(new DqException("connection reset")));
        assertEquals("", new RefusedException("READONLY").said());
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

    private static Run run(Job... batch) {
        Run run = new Run(batch.length);
        List.of(batch).forEach(job -> job.begins(run));
        return run;
    }

    @Test
    void aBatchIsInterruptedWhenAllOfItIsLostAndNotAfterItsEnd() {
        Job one = job("");
        Job two = job("");
        Run run = run(one, two);
        one.tell(CancelReason.LOST);
        one.tell(CancelReason.STOPPING);
        assertFalse(Thread.currentThread().isInterrupted());
        assertTrue(one.isLost() && !two.isCancelled());
        two.tell(CancelReason.LOST);
        assertTrue(Thread.currentThread().isInterrupted());
        run.end();
        assertFalse(Thread.currentThread().isInterrupted());
        Job three = job("");
        Run other = run(three);
        other.end();
        three.tell(CancelReason.STOPPING);
        assertFalse(Thread.currentThread().isInterrupted());
        assertNotNull(three.cancelReason());
    }
}

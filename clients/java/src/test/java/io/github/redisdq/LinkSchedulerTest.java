package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which link fetches next, and whose fetch is to end for it: instants are given. */
class LinkSchedulerTest {
    private static final long MS = 1_000_000;
    private static final long START = Long.MAX_VALUE - 300 * MS; // System.nanoTime may run over
    private static final long NEVER = START + Long.MAX_VALUE / 2;

    private final LinkScheduler<String> scheduler = wanted(List.of("a", "b"));

    private static <L> LinkScheduler<L> wanted(List<L> links) {
        LinkScheduler<L> scheduler = new LinkScheduler<>(links.size());
        links.forEach(link -> scheduler.want(link, START));
        return scheduler;
    }

    private static long at(long ms) {
        return START + ms * MS;
    }

    private void begin(String link, long ms) {
        assertEquals(link, scheduler.first(at(ms)));
        scheduler.begin(link, at(ms));
    }

    private void end(String link, long ms, boolean isEmpty) {
        scheduler.end(link, at(ms), isEmpty);
        scheduler.want(link, at(ms));
    }

    private void recallOfA() {
        begin("a", 0);
        assertNull(scheduler.recall(at(24)));
        assertEquals(at(25), scheduler.lookAt(at(24), NEVER));
        assertEquals("a", scheduler.recall(at(25)));
    }

    @Test
    void oneThatWasRecalledAndFoundNothingIsLater() {
        recallOfA();
        end("a", 26, true);
        begin("b", 26);
        assertNull(scheduler.recall(at(275)), "it is nobody's turn");
        assertEquals(at(276), scheduler.lookAt(at(275), NEVER));
        assertEquals("b", scheduler.recall(at(276)));
    }

    @Test
    void oneThatWasRecalledAndFoundSomethingIsNot() {
        recallOfA();
        end("a", 26, false);
        begin("b", 26);
        assertEquals("a", scheduler.first(at(26)));
    }

    @Test
    void norIsOneThatWantsToFetchMuchLater() {
        recallOfA();
        scheduler.end("a", at(26), true);
        scheduler.want("a", at(280));
        begin("b", 280);
        assertEquals("a", scheduler.first(at(280)));
    }

    @Test
    void whoFindsNothingUnrecalledIsNotLater() {
        begin("a", 0);
        end("a", 24, true);
        begin("b", 24);
        end("b", 25, true);
        begin("a", 25);
    }

    @ParameterizedTest
    @CsvSource({"false", "true"})
    void oneThatDoesNotComeBackIsRecalledAgain(boolean isEmpty) {
        recallOfA();
        assertEquals(at(50), scheduler.lookAt(at(25), NEVER));
        assertNull(scheduler.recall(at(49)));
        assertEquals("a", scheduler.recall(at(50)));
        end("a", 51, isEmpty);
        begin("b", 51);
    }

    @Test
    void oneIsEnough() {
        LinkScheduler<Integer> three = wanted(List.of(1, 2, 3));
        three.begin(three.first(START), START);
        three.begin(three.first(START), START);
        assertEquals(1, three.recall(at(100)));
        assertNull(three.recall(at(124)), "the first makes room");
        assertEquals(2, three.recall(at(125)), "it did not come back");
        three.end(2, at(126), true);
        assertEquals(3, three.first(at(126)));
    }

    @Test
    void nobodyLooksOutWhereTimeBringsNothing() {
        assertEquals(NEVER, scheduler.lookAt(START, NEVER), "all places are taken by jobs");
        begin("a", 0);
        assertEquals(at(10), scheduler.lookAt(START, at(10)), "somebody does already");
        begin("b", 0);
        assertEquals(NEVER, scheduler.lookAt(START, NEVER), "all links fetch");
        LinkScheduler<String> one = wanted(List.of("a"));
        one.begin("a", START);
        assertNull(one.recall(at(1000)));
        one.end("a", at(1000), true);
        one.want("a", at(1000));
        assertEquals("a", one.first(at(1000)));
    }

    /** Links that find nothing, unless they are recalled, and then take some milliseconds. */
    private static final class Scene {
        private static final int LATEST_MS = 3;

        private final Random random;
        private final int size;
        private final LinkScheduler<Integer> scheduler;
        private final Map<Integer, Long> begun = new HashMap<>();
        private final Map<Integer, Integer> claims = new HashMap<>();
        private final Map<Integer, Long> comesBack = new HashMap<>();
        private final Map<Integer, Long> ended = new HashMap<>();
        private int places;

        Scene(Random random) {
            this.random = random;
            size = 1 + random.nextInt(12);
            places = 1 + random.nextInt(size + 2);
            scheduler = wanted(IntStream.range(0, size).boxed().toList());
            IntStream.range(0, size).forEach(link -> ended.put(link, 0L));
        }

        void run() {
            long most = 250 + size * (25 + LATEST_MS) + 10;
            for (long ms = 0; ms < 5000; ms++) {
                end(ms);
                begin(ms);
                recall(ms);
                for (int link : ended.keySet()) {
                    boolean isOut = claims.containsKey(link);
                    assertTrue(isOut || ms - ended.get(link) <= most, link + " of " + size + " waits at " + ms);
                }
            }
        }

        private void end(long ms) {
            for (int link : List.copyOf(comesBack.keySet())) {
                if (comesBack.get(link) <= ms) {
                    comesBack.remove(link);
                    places += claims.remove(link);
                    ended.put(link, ms);
                    scheduler.end(link, at(ms), true);
                    scheduler.want(link, at(ms));
                }
            }
        }

        private void begin(long ms) {
            for (Integer link = scheduler.first(at(ms)); link != null && places > 0; link = scheduler.first(at(ms))) {
                claims.put(link, Math.max(1, places / size));
                places -= claims.get(link);
                begun.put(link, ms);
                scheduler.begin(link, at(ms));
            }
        }

        private void recall(long ms) {
            Integer late = scheduler.recall(at(ms));
            if (late != null) {
                assertEquals(0, places, "there is room");
                assertTrue((ms - begun.get(late)) * MS >= LinkScheduler.hold(size), "it has hardly begun");
                comesBack.putIfAbsent(late, ms + random.nextInt(LATEST_MS + 1));
                assertEquals(1, comesBack.size(), "one would do");
            }
            assertTrue(scheduler.lookAt(at(ms), NEVER) - at(ms) > 0, "it spins");
        }
    }

    @Test
    void eachHasItsTurn() {
        for (int seed = 0; seed < 100; seed++) {
            new Scene(new Random(seed)).run();
        }
    }
}

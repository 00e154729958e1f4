package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** One command: its words, the second of which is the key. */
final class Words {
    static final long LATEST = (1L << 42) - 1; // the bound of the server's instants
    /** Of options that are not a job's. */
    private static final Map<String, long[]> BOUNDS = Map.of(
            "LEASE", new long[] {1, LATEST},
            "EVERY", new long[] {1, LATEST},
            "HISTORY", new long[] {0, 100},
            "WEIGHT", new long[] {1, 1000},
            "COUNT", new long[] {1, Long.MAX_VALUE},
            "TIMES", new long[] {1, Long.MAX_VALUE});

    private static final Map<String, byte[]> OPTIONS = new ConcurrentHashMap<>();
    static final byte[] IDS = optionOf("IDS");

    private final List<byte[]> words;

    Words(String command) {
        this();
        add(command);
    }

    /** With room for that many words, and a few more. */
    Words(String command, int count) {
        words = new ArrayList<>(count + 16);
        add(command);
    }

    Words() {
        words = new ArrayList<>();
    }

    Words add(byte[] word) {
        words.add(word);
        return this;
    }

    Words add(String word) {
        return add(Bytes.of(word));
    }

    Words add(long number) {
        return add(Bytes.of(number));
    }

    Words add(Words more) {
        words.addAll(more.words);
        return this;
    }

    /** A word of the server's own, which is told from what users gave, though that reads the same. */
    Words option(String name) {
        return add(optionOf(name));
    }

    private static byte[] optionOf(String name) {
        return OPTIONS.computeIfAbsent(name, Bytes::of);
    }

    static boolean isOption(byte[] word) {
        return OPTIONS.get(Bytes.text(word)) == word;
    }

    /** Ids, none of which is read as a word. */
    Words counted(Collection<String> ids) {
        return add(IDS).add(ids.size()).ids(ids);
    }

    Words ids(Collection<String> ids) {
        ids.forEach(this::add);
        return this;
    }

    /** Appends an option, if it is given: an empty BACKOFF is one. What is out of its bounds is refused, by its name. */
    Words value(String name, Object value) {
        long[] bounds = Said.BOUNDS.getOrDefault(name, BOUNDS.get(name));
        if (value instanceof Duration duration) {
            long least = bounds == null ? 0 : bounds[0];
            option(name).add(check(name.toLowerCase(Locale.ROOT), Times.ms(duration), " ms", least, LATEST));
        } else if (value instanceof Instant instant) {
            option(name).add(check(name.toLowerCase(Locale.ROOT), Times.ms(instant), " ms", 0, LATEST));
        } else if (value instanceof List<?> steps) {
            option(name).add(check("backoff", steps.size(), " steps", 0, 1024));
            steps.forEach(step -> add(wait("backoff", (Duration) step)));
        } else if (value != null) {
            if (bounds != null && value instanceof Number number) {
                check(name.toLowerCase(Locale.ROOT), number.longValue(), "", bounds[0], bounds[1]);
            } else if (bounds != null) {
                check(name.toLowerCase(Locale.ROOT), Bytes.of(value.toString()).length, " bytes", bounds[0], bounds[1]);
            }
            option(name).add(value.toString());
        }
        return this;
    }

    /** So many jobs in a window; 0: no limit. */
    Words rate(String name, long jobs, Duration window) {
        return value(name, jobs).add(jobs == 0 ? 0 : wait("the window of " + name.toLowerCase(Locale.ROOT), window));
    }

    static long check(String name, long value, String unit, long first, long last) {
        if (value < first || last < value) {
            throw new IllegalArgumentException(name + ": " + value + unit + " is not between " + first + " and " + last);
        }
        return value;
    }

    /** A name that is kept with jobs; null: none. */
    static void checkName(String what, String name) {
        if (name != null) {
            check(what, Bytes.of(name).length, " bytes", 1, 256);
        }
    }

    static long wait(String name, Duration duration) {
        return check(name, Times.ms(duration), " ms", 0, LATEST);
    }

    Words flag(String name, boolean isSet) {
        return isSet ? add(name) : this;
    }

    byte[][] all() {
        return words.toArray(byte[][]::new);
    }

    byte[] key() {
        return words.get(1);
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof Words it) || words.size() != it.words.size()) {
            return false;
        }
        for (int at = 0; at < words.size(); at++) {
            if (!Arrays.equals(words.get(at), it.words.get(at))) {
                return false;
            }
        }
        return true;
    }

    @Override
    public int hashCode() {
        return Arrays.deepHashCode(all());
    }
}

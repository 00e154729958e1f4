package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;

/** One command: its words, the second of which is the key. */
final class Words {
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

    Words ids(Collection<String> ids) {
        ids.forEach(this::add);
        return this;
    }

    /** The number of jobs, then each with its token. */
    Words deliveries(List<Job> jobs) {
        add("IDS").add(jobs.size());
        jobs.forEach(job -> add(job.rawId).add(job.rawToken));
        return this;
    }

    Words value(String name, Object value) {
        if (value instanceof Duration duration) {
            add(name).add(duration.isNegative() ? wait(name.toLowerCase(Locale.ROOT), duration) : Times.ms(duration));
        } else if (value instanceof Instant instant) {
            add(name).add(Times.ms(instant));
        } else if (value != null) {
            add(name).add(value.toString());
        }
        return this;
    }

    static long wait(String name, Duration duration) {
        if (duration.isNegative()) {
            throw new IllegalArgumentException(name + " must be 0 or more, not " + duration);
        }
        return Times.ms(duration);
    }

    Words flag(String name, boolean isSet) {
        return isSet ? add(name) : this;
    }

    /** Appends BACKOFF. Null: the option is not sent; empty: no backoff. */
    Words ladder(List<Duration> steps) {
        if (steps != null) {
            add("BACKOFF").add(steps.size());
            steps.forEach(step -> add(wait("a step of backoff", step)));
        }
        return this;
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

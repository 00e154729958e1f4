package io.github.redisdq;

import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Which known kind an unknown one is like. To compare one with all others takes long: it remembers what it found. */
final class Nearest {
    private static final int MOST_SHOWN = 100; // of a kind, which may be as long as a payload
    private static final int MOST_KNOWN = 100;

    private final Collection<String> kinds;
    private final Map<String, String> found = new ConcurrentHashMap<>();

    Nearest(Collection<String> kinds) {
        this.kinds = kinds;
    }

    /** What a log says of the kind that was meant, perhaps nothing. */
    String hint(String kind) {
        String given = cut(kind);
        if (found.size() >= MOST_KNOWN) {
            found.clear();
        }
        return found.computeIfAbsent(given, it -> {
            String meant = closest(it);
            return meant == null ? "" : "; did it mean " + meant + "?";
        });
    }

    /** A kind as it is compared and shown. */
    static String cut(String kind) {
        return kind == null || kind.length() <= MOST_SHOWN ? kind : kind.substring(0, MOST_SHOWN);
    }

    private String closest(String given) {
        int least = Math.max(1, given.length() / 3) + 1;
        String best = null;
        for (String each : kinds) {
            if (Math.abs(each.length() - given.length()) < least) { // else their distance is that, or more
                int far = distance(given.toLowerCase(Locale.ROOT), each.toLowerCase(Locale.ROOT));
                best = far < least ? each : best;
                least = Math.min(far, least);
            }
        }
        return best;
    }

    /** How many letters differ; two that have changed places are one mistake. */
    private static int distance(String one, String other) {
        int[] before = new int[0];
        int[] row = new int[other.length() + 1];
        for (int at = 0; at < row.length; at++) {
            row[at] = at;
        }
        for (int i = 1; i <= one.length(); i++) {
            int[] next = new int[row.length];
            next[0] = i;
            for (int j = 1; j < row.length; j++) {
                int changed = row[j - 1] + (one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1);
                next[j] = Math.min(changed, Math.min(row[j], next[j - 1]) + 1);
                boolean isSwapped = i > 1 && j > 1 && one.charAt(i - 1) == other.charAt(j - 2) && one.charAt(i - 2) == other.charAt(j - 1);
                next[j] = isSwapped ? Math.min(next[j], before[j - 2] + 1) : next[j];
            }
            before = row;
            row = next;
        }
        return row[other.length()];
    }
}

package io.github.redisdq;

import java.util.ArrayList;
import java.util.List;

/** Says which jobs of an AFTER the queue does not hold, and what to do. */
final class Unheld {
    private static final String SAID = "AFTER names a job that the queue does not hold";
    private static final int MOST_NAMES = 10;

    private Unheld() {
    }

    /** The error with the ids of {@code after} that are not there; as it was if nobody can say which. */
    static RefusedException explained(RefusedException said, Shards shards, List<String> after) {
        List<String> missing = is(said) ? missing(shards, after.stream().distinct().toList()) : List.of();
        if (missing.isEmpty()) {
            return said;
        }
        String text = said.getMessage() + "; not there: " + some(missing)
                + " (it may have ended before: keep it for a while with keep, or add it in the same addMany)";
        return Frames.trimmed(new RefusedException(text, said.answer(), said.id(), said.argument(), said.value()));
    }

    /** The server's words when a handler waits for jobs. */
    static String explained(RefusedException said, List<String> waitedFor) {
        return !is(said) || waitedFor.isEmpty() ? said.getMessage() : said.getMessage()
                + ": it has ended, or was never added. Add it with keep, or by spawn (waited for: " + some(waitedFor) + ")";
    }

    private static boolean is(RefusedException said) {
        return String.valueOf(said.getMessage()).contains(SAID);
    }

    private static List<String> missing(Shards shards, List<String> ids) {
        List<String> missing = new ArrayList<>();
        try {
            List<Object> found = shards.all(ids.stream()
                    .map(id -> new Words("DQ.GET").add(shards.key(id)).add(id).add("PREFIX").add(0)).toList(), null);
            for (int at = 0; at < found.size(); at++) {
                if (found.get(at) == null) {
                    missing.add(ids.get(at));
                }
            }
        } catch (RuntimeException error) {
            return List.of();
        }
        return missing;
    }

    private static String some(List<String> ids) {
        int left = ids.size() - MOST_NAMES;
        return String.join(", ", ids.subList(0, Math.min(ids.size(), MOST_NAMES))) + (left > 0 ? " and " + left + " more" : "");
    }
}

package io.github.redisdq;

import java.util.List;

/**
 * A job's own terms, or else those of its queue's settings: its TTR, how often it may be delivered (0: no limit), and
 * whether it has a backoff.
 */
record Terms(long ttrMs, int maxAttempts, boolean hasLadder) {
    /** The server's default TTR. A job that has it counts as one that was given none. */
    static final long USUAL_TTR_MS = 60_000;

    static Terms of(List<Object> terms) {
        if (terms.size() < 3) {
            return new Terms(USUAL_TTR_MS, 0, false);
        }
        return new Terms(Reply.number(terms.get(0)), (int) Reply.number(terms.get(1)), terms.get(2) != null);
    }
}

package io.github.redisdq;

import java.util.List;

/** What a delivery tells of its job: the job's TTR, the deliveries that it is allowed (0: no limit), whether it has a ladder. */
record Terms(long ttrMs, int maxAttempts, boolean hasLadder) {
    /** The server's, of jobs that were given none. */
    static final long USUAL_TTR_MS = 60_000;

    static Terms of(List<Object> terms) {
        if (terms.size() < 3) {
            return new Terms(USUAL_TTR_MS, 0, false);
        }
        return new Terms(Reply.number(terms.get(0)), (int) Reply.number(terms.get(1)), terms.get(2) != null);
    }
}

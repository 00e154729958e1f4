package io.github.redisdq;

/** Whether the server has answered lately. Instants are by System.nanoTime, and given as arguments. */
final class Liveness {
    private boolean wasHeard;
    private boolean isTroubled;
    private long heardAt;
    private String trouble = "the server has not answered yet";

    synchronized void heard(long at) {
        wasHeard = true;
        isTroubled = false;
        heardAt = at;
    }

    synchronized void failed(String why) {
        isTroubled = true;
        trouble = why;
    }

    /** Why it is not healthy; null: the last reply is no longer ago than the next one may take. */
    synchronized String trouble(long now, long mostNs) {
        if (!wasHeard || isTroubled) {
            return trouble;
        }
        long ago = now - heardAt;
        return ago <= mostNs ? null : "the server has not answered for " + ago / 1_000_000_000 + " s";
    }
}

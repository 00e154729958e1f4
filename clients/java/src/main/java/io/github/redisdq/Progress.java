package io.github.redisdq;

import java.math.BigDecimal;
import java.math.RoundingMode;

/** What a handler reported of its progress, and when it may be sent: at most once a second. */
final class Progress {
    static final long PAUSE_NS = 1_000_000_000;
    private static final int DECIMALS = 3;
    private static final int MOST_BYTES = 1024;

    private byte[] pending;
    private byte[] onItsWay; // sent, without a reply yet
    private boolean wasWritten;
    private long writtenAt;
    private long reportedAt;

    static byte[] text(double fraction, String text) {
        if (!(fraction >= 0 && fraction <= 1)) {
            throw new IllegalArgumentException("progress is from 0 to 1, not " + fraction);
        }
        BigDecimal rounded = BigDecimal.valueOf(fraction).setScale(DECIMALS, RoundingMode.HALF_UP).stripTrailingZeros();
        String shown = rounded.toPlainString();
        return Bytes.cut(text == null || text.isEmpty() ? shown : shown + " " + text, MOST_BYTES);
    }

    synchronized void report(byte[] text, long at) {
        pending = text;
        reportedAt = at;
    }

    synchronized boolean isPending() {
        return pending != null;
    }

    /** When the report may be sent, or {@code otherwise}, if that is earlier, or there is no report. */
    synchronized long dueAt(long otherwise) {
        if (pending == null) {
            return otherwise;
        }
        long due = wasWritten ? writtenAt + PAUSE_NS : reportedAt;
        return due - otherwise > 0 ? otherwise : due;
    }

    /** The report to send now, or null. */
    synchronized byte[] take(long now) {
        if (pending == null || wasWritten && writtenAt + PAUSE_NS - now > 0) {
            return null;
        }
        wasWritten = true;
        writtenAt = now;
        onItsWay = pending;
        pending = null;
        return onItsWay;
    }

    synchronized void written() {
        onItsWay = null;
    }

    /** Keeps a report that may not have arrived. */
    synchronized void putBack() {
        pending = takeLast();
        writtenAt -= PAUSE_NS;
    }

    /** The report to send with the job's end, which may reach the server before one that is on its way; or null. */
    synchronized byte[] takeLast() {
        byte[] last = pending == null ? onItsWay : pending;
        pending = null;
        onItsWay = null;
        return last;
    }
}

/** A job to be added; without a due (unix-ms) it is due at once. */
record Job(int number, String payload, Long dueMs) {
    private static final long HOUR_MS = 3_600_000;
    static final int PAYLOAD_BYTES = 64;

    static Job far(int number, int size) {
        return at(System.currentTimeMillis() + HOUR_MS + number, number, size);
    }

    static Job at(long dueMs, int number, int size) {
        return new Job(number, payload(dueMs, number, size), dueMs);
    }

    static Job due(int number) {
        return new Job(number, payload(0, number, PAYLOAD_BYTES), null);
    }

    private static String payload(long dueMs, int number, int size) {
        String head = dueMs + " " + number + " ";
        return head + "x".repeat(Math.max(0, size - head.length()));
    }
}

package io.github.redisdq;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/**
 * Ids of jobs that were given none. They are made here, so that an ADD that a client library sends twice adds one job.
 */
final class Ids {
    private static final Pattern OURS = Pattern.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
    private static final int COUNT_BITS = 12;
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final ByteBuffer DRAWN = ByteBuffer.allocate(4096).limit(0); // drawn together, as a draw costs more than an id
    private static final AtomicLong LAST = new AtomicLong(); // milliseconds, and a count within each

    private Ids() {}

    /** A UUID of version 7. As text, those of one process grow, and all of them grow with time. */
    static String next() {
        long now = System.currentTimeMillis() << COUNT_BITS;
        long mark = LAST.updateAndGet(last -> Math.max(last + 1, now));
        long high = mark >>> COUNT_BITS << 16 | 0x7000 | mark & (1 << COUNT_BITS) - 1;
        return new UUID(high, random() & 0x3FFFFFFFFFFFFFFFL | 0x8000000000000000L).toString();
    }

    private static long random() {
        synchronized (DRAWN) {
            if (!DRAWN.hasRemaining()) {
                RANDOM.nextBytes(DRAWN.clear().array());
            }
            return DRAWN.getLong();
        }
    }

    /** The first new id that fits. */
    static String next(Predicate<String> isRight) {
        String id = next();
        while (!isRight.test(id)) {
            id = next();
        }
        return id;
    }

    /** The id of a job to be added, as it was given. */
    static String checked(String id) {
        if (id.equals("*")) {
            throw new IllegalArgumentException("id: \"*\" is not an id; leave it out for a new one");
        }
        Words.check("id", Bytes.of(id).length, " bytes", 1, 1024);
        return id;
    }

    /** Whether the library made this id: it grows with the others. */
    static boolean isOurs(String id) {
        return OURS.matcher(id).matches();
    }
}

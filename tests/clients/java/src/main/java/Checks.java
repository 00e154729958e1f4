import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** What the probes share: a runner of checks, each told its server's port by PORT_CHECK. */
final class Checks {
    interface Check {
        void run() throws Exception;
    }

    private boolean failed;

    Checks check(String name, Check check) {
        try {
            check.run();
            System.out.println("ok " + name);
        } catch (Exception | AssertionError error) {
            failed = true;
            System.out.println("FAILED " + name + ": " + error);
            error.printStackTrace();
        }
        return this;
    }

    void end() {
        System.exit(failed ? 1 : 0);
    }

    static int port(String check) {
        return Integer.parseInt(System.getenv("PORT_" + check.toUpperCase()));
    }

    /** Lists and bytes as text, so that they can be compared; one byte is one character. */
    static Object plain(Object reply) {
        if (reply instanceof byte[] bytes) {
            return new String(bytes, ISO_8859_1);
        }
        return reply instanceof List<?> list ? list.stream().map(Checks::plain).toList() : reply;
    }

    static void equal(Object is, Object expected) {
        if (!Objects.equals(plain(is), plain(expected))) {
            throw new AssertionError(plain(is) + ", not " + plain(expected));
        }
    }

    /** The value behind a name in a flat list of names and values. */
    static Object field(Object flat, String name) {
        List<?> list = (List<?>) plain(flat);
        return list.get(list.indexOf(name) + 1);
    }

    static List<?> firstOf(Object list, int from, int to) {
        return ((List<?>) plain(list)).subList(from, to);
    }

    static byte[] latin(String text) {
        return text.getBytes(ISO_8859_1);
    }

    /** An id and a payload that are no text in any encoding but this one. */
    static final byte[] ID = latin("\0\u00ff\r\n");

    static final byte[] PAYLOAD = allBytes();

    private static byte[] allBytes() {
        byte[] bytes = Arrays.copyOf(latin("\0\u00ff\u00c3\u0028"), 4 + 256);
        for (int n = 0; n < 256; n++) {
            bytes[4 + n] = (byte) n;
        }
        return bytes;
    }

    /** The token after this one, which nobody has. */
    static String next(String token) {
        var number = new BigInteger(token);
        if (number.bitLength() <= 53) {
            throw new AssertionError("a token that a double can hold: " + token);
        }
        return number.add(BigInteger.ONE).toString();
    }
}

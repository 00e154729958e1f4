package io.github.redisdq;

import java.lang.reflect.Type;

/** Results, values of steps and of signals, as the queue's codec writes and reads them. Empty bytes are nothing. */
final class Values {
    static final byte[] NOTHING = {};

    private Values() {}

    static byte[] encode(Codec codec, Object value) {
        return value == null ? NOTHING : codec.encode(value);
    }

    /** Null of nothing. */
    static <T> T decode(Codec codec, byte[] raw, Type type) {
        if (raw == null || raw.length == 0) {
            return null;
        }
        try {
            return codec.decode(raw, type);
        } catch (PayloadException error) {
            throw error;
        } catch (Exception error) { // the codec may be the program's
            throw new PayloadException(Guard.text(error), error);
        }
    }
}

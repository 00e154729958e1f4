package io.github.redisdq;

import java.lang.reflect.Type;

/** Encodes and decodes results, and values of steps and signals, by the queue's codec. Empty bytes mean no value. */
final class Values {
    static final byte[] NOTHING = {};

    private Values() {}

    static byte[] encode(Codec codec, Object value) {
        return value == null ? NOTHING : codec.encode(value);
    }

    /** Null if there is no value. */
    static <T> T decode(Codec codec, byte[] raw, Type type) {
        if (raw == null || raw.length == 0) {
            return null;
        }
        try {
            return codec.decode(raw, type);
        } catch (PayloadException error) {
            throw error;
        } catch (Exception error) { // the codec may be the user's
            throw new PayloadException(Guard.text(error), error);
        }
    }
}

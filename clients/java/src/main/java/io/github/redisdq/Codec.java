package io.github.redisdq;

import java.lang.reflect.Type;

/** Encodes what {@link DqQueue#add} is given, and decodes it for {@link Job#data}. */
public interface Codec {
    byte[] encode(Object data);

    <T> T decode(byte[] payload, Type type);

    /** JSON by Jackson. A {@code byte[]} is sent as it is. */
    static Codec json() {
        return JsonCodec.DEFAULT;
    }
}

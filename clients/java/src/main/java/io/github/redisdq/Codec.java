package io.github.redisdq;

import java.lang.reflect.Type;

/** Makes bytes of what {@link DqQueue#add} is given, and the other way round in {@link Job#data}. */
public interface Codec {
    byte[] encode(Object data);

    <T> T decode(byte[] payload, Type type);

    /** JSON by Jackson. A {@code byte[]} is sent as it is. */
    static Codec json() {
        return JsonCodec.DEFAULT;
    }
}

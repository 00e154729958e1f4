package io.github.redisdq.redisson;

import io.github.redisdq.Codec;
import io.github.redisdq.PayloadException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.lang.reflect.Type;
import org.redisson.client.handler.State;

/** Encodes elements as Redisson's codec does: each side can read what the other has written. */
record RedissonPayload(org.redisson.client.codec.Codec codec) implements Codec {
    @Override
    public byte[] encode(Object data) {
        try {
            ByteBuf encoded = codec.getValueEncoder().encode(data);
            try {
                byte[] bytes = new byte[encoded.readableBytes()];
                encoded.readBytes(bytes);
                return bytes;
            } finally {
                encoded.release();
            }
        } catch (IOException error) {
            throw new PayloadException("Redisson's codec cannot write it", error);
        }
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> T decode(byte[] payload, Type type) {
        try {
            return (T) codec.getValueDecoder().decode(Unpooled.wrappedBuffer(payload), new State());
        } catch (IOException | RuntimeException error) {
            throw new PayloadException("Redisson's codec cannot read it", error);
        }
    }
}

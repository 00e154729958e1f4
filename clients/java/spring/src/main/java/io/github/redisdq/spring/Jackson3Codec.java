package io.github.redisdq.spring;

import io.github.redisdq.Codec;
import io.github.redisdq.DqException;
import io.github.redisdq.PayloadException;
import java.io.ByteArrayOutputStream;
import java.lang.reflect.Type;
import org.springframework.beans.factory.BeanFactory;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.exc.StreamWriteException;
import tools.jackson.core.util.JsonGeneratorDelegate;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.json.JsonMapper;

/** JSON by Jackson 3's mapper, which Boot 4 has. NaN and infinities are errors, as with the library's own codec. */
final class Jackson3Codec implements Codec {
    private final JsonMapper mapper;

    Jackson3Codec(JsonMapper mapper) {
        this.mapper = mapper;
    }

    /** Null if the application has no mapper, or several. */
    static Codec ofApplication(BeanFactory beans) {
        JsonMapper found = beans.getBeanProvider(JsonMapper.class).getIfUnique();
        return found == null ? null : new Jackson3Codec(found);
    }

    @Override
    public byte[] encode(Object data) {
        if (data instanceof byte[] raw) {
            return raw;
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (JsonGenerator json = new Finite(mapper.createGenerator(out))) {
            mapper.writeValue(json, data);
        } catch (JacksonException error) {
            throw new DqException("data that JSON cannot hold: " + error.getMessage(), error);
        }
        return out.toByteArray();
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> T decode(byte[] payload, Type type) {
        if (type == byte[].class) {
            return (T) payload;
        }
        JavaType wanted = mapper.constructType(type);
        try (JsonParser json = mapper.createParser(payload)) {
            if (wanted.isPrimitive() && json.nextToken() == JsonToken.VALUE_NULL) {
                throw new PayloadException("it is null", null);
            }
            return mapper.readValue(payload, wanted);
        } catch (JacksonException error) {
            throw new PayloadException(error.getMessage(), error);
        }
    }

    private static final class Finite extends JsonGeneratorDelegate {
        Finite(JsonGenerator out) {
            super(out, false);
        }

        private void check(double number) {
            if (!Double.isFinite(number)) {
                throw new StreamWriteException(this, number + " is not a number");
            }
        }

        @Override
        public JsonGenerator writeNumber(double number) {
            check(number);
            return super.writeNumber(number);
        }

        @Override
        public JsonGenerator writeNumber(float number) {
            check(number);
            return super.writeNumber(number);
        }

        @Override
        public JsonGenerator writeArray(double[] numbers, int from, int count) {
            for (int at = from; at < from + count; at++) {
                check(numbers[at]);
            }
            return super.writeArray(numbers, from, count);
        }
    }
}

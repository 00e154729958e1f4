package io.github.redisdq;

import com.fasterxml.jackson.core.JsonGenerationException;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.util.ByteArrayBuilder;
import com.fasterxml.jackson.core.util.JsonGeneratorDelegate;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.ser.std.StdSerializer;
import java.io.IOException;
import java.lang.reflect.Type;
import java.util.concurrent.Future;
import java.util.stream.BaseStream;

/** JSON by an {@link ObjectMapper} of the program's. NaN and infinities are errors, as JSON has no such numbers. */
public final class JsonCodec implements Codec {
    static final JsonCodec DEFAULT = new JsonCodec(JsonMapper.builder()
            .findAndAddModules()
            .addModule(new SimpleModule()
                    .addSerializer(new Refused<>(Future.class, "a future: was its get or join forgotten?"))
                    .addSerializer(new Refused<>(Throwable.class, "an exception"))
                    .addSerializer(new Refused<>(BaseStream.class, "a stream")))
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .disable(JsonParser.Feature.AUTO_CLOSE_SOURCE)
            .disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS, SerializationFeature.WRITE_DURATIONS_AS_TIMESTAMPS)
            .disable(DeserializationFeature.ADJUST_DATES_TO_CONTEXT_TIME_ZONE)
            .build());

    private final ObjectMapper mapper;

    public JsonCodec(ObjectMapper mapper) {
        this.mapper = mapper;
    }

    @Override
    public byte[] encode(Object data) {
        if (data instanceof byte[] raw) {
            return raw;
        }
        try (ByteArrayBuilder out = new ByteArrayBuilder();
                JsonGenerator json = new Finite(mapper.createGenerator(out))) {
            mapper.writeValue(json, data);
            json.flush();
            return out.toByteArray();
        } catch (IOException error) {
            throw new DqException("data that JSON cannot hold: " + Guard.text(error), error);
        }
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> T decode(byte[] payload, Type type) {
        if (type == byte[].class) {
            return (T) payload;
        }
        JavaType wanted = mapper.constructType(type);
        try {
            if (wanted.isPrimitive() && isNull(payload)) { // Jackson would read null as 0
                throw new PayloadException("it is null", null);
            }
            return mapper.readValue(payload, wanted);
        } catch (IOException error) {
            throw new PayloadException(Guard.text(error), error);
        }
    }

    private boolean isNull(byte[] payload) throws IOException {
        try (JsonParser parser = mapper.createParser(payload)) {
            return parser.nextToken() == JsonToken.VALUE_NULL;
        }
    }

    /** Jackson writes of such values what nobody means. */
    private static final class Refused<T> extends StdSerializer<T> {
        private final String what;

        Refused(Class<T> type, String what) {
            super(type);
            this.what = what;
        }

        @Override
        public void serialize(T value, JsonGenerator out, SerializerProvider provider) throws IOException {
            throw new JsonGenerationException("JSON cannot hold " + what, out);
        }
    }

    /** Jackson writes such numbers as strings, or as invalid JSON. */
    private static final class Finite extends JsonGeneratorDelegate {
        Finite(JsonGenerator out) {
            super(out, false);
        }

        private void check(double number) throws IOException {
            if (!Double.isFinite(number)) {
                throw new JsonGenerationException(number + " is not a number", this);
            }
        }

        @Override
        public void writeNumber(double number) throws IOException {
            check(number);
            super.writeNumber(number);
        }

        @Override
        public void writeNumber(float number) throws IOException {
            check(number);
            super.writeNumber(number);
        }

        @Override
        public void writeArray(double[] numbers, int from, int count) throws IOException {
            for (int at = from; at < from + count; at++) {
                check(numbers[at]);
            }
            super.writeArray(numbers, from, count);
        }
    }
}

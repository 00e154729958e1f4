package io.github.redisdq;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.util.ByteArrayBuilder;
import java.io.IOException;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A payload with a kind and headers: {@code {"dq":1,"kind":...,"data":...,"headers":{...}}}. The data keeps the codec's
 * exact bytes, written and read: no number changes on the way.
 */
record Envelope(long version, String kind, byte[] data, Map<String, String> headers) {
    static final int VERSION = 1;
    private static final JsonFactory JSON = new JsonFactory();
    private static final byte[] MARK = Bytes.of("\"dq\"");

    static byte[] write(Codec codec, Object data, String kind, Map<String, String> headers) {
        if (data instanceof byte[]) {
            throw new DqException("data of a job with a kind or headers must be what JSON can hold, not bytes");
        }
        byte[] encoded = codec.encode(data);
        try (ByteArrayBuilder out = new ByteArrayBuilder();
                JsonGenerator json = JSON.createGenerator(out)) {
            json.writeStartObject();
            json.writeNumberField("dq", VERSION);
            if (kind != null) {
                json.writeStringField("kind", kind);
            }
            json.writeFieldName("data");
            json.writeRawValue(new String(encoded, 0, checked(encoded), StandardCharsets.UTF_8));
            if (!headers.isEmpty()) {
                json.writeObjectFieldStart("headers");
                for (Map.Entry<String, String> each : headers.entrySet()) {
                    json.writeStringField(each.getKey(), each.getValue());
                }
                json.writeEndObject();
            }
            json.writeEndObject();
            json.flush();
            return out.toByteArray();
        } catch (IOException error) {
            throw new DqException("data of a job with a kind or headers must be JSON: " + Guard.text(error), error);
        }
    }

    /** The length, if the bytes are one value of JSON; else throws. */
    private static int checked(byte[] encoded) throws IOException {
        try (JsonParser json = JSON.createParser(encoded)) {
            if (json.nextToken() == null) {
                throw new IOException("it is empty");
            }
            json.skipChildren();
            json.finishToken();
            if (json.nextToken() != null) {
                throw new IOException("it is more than one value");
            }
            return encoded.length;
        }
    }

    /** Null if the payload is no envelope. */
    static Envelope read(byte[] payload) {
        if (payload.length == 0 || payload[0] != '{' || !Bytes.contains(payload, MARK)) {
            return null;
        }
        try (JsonParser json = JSON.createParser(payload)) {
            return read(json, payload);
        } catch (IOException error) {
            return null;
        }
    }

    /** What a job was added with; never null. {@code envelope}: the payload read. */
    static <T> T data(Codec codec, byte[] payload, Envelope envelope, Type type) {
        try {
            T data = codec.decode(envelope == null ? payload : envelope.data, type);
            if (data == null && type != Void.class) {
                throw new PayloadException("it is null", null);
            }
            return data;
        } catch (PayloadException error) {
            throw error;
        } catch (Exception error) { // the codec may be the user's
            throw new PayloadException(Guard.text(error), error);
        }
    }

    private static Envelope read(JsonParser json, byte[] payload) throws IOException {
        json.nextToken();
        Long version = null;
        String kind = null;
        byte[] data = null;
        Map<String, String> headers = null;
        boolean hasKind = false;
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            String name = json.currentName();
            JsonToken value = json.nextToken();
            switch (name) {
                case "dq" -> version = value == JsonToken.VALUE_NUMBER_INT ? (Long) json.getLongValue() : null;
                case "kind" -> {
                    hasKind = true;
                    kind = value == JsonToken.VALUE_STRING ? json.getText() : null;
                }
                case "data" -> data = bytes(json, payload);
                case "headers" -> headers = texts(json);
                default -> {}
            }
            json.skipChildren();
        }
        boolean isNone = version == null || data == null || !hasKind && headers == null || json.nextToken() != null;
        return isNone ? null : new Envelope(version, kind, data, headers == null ? Map.of() : headers);
    }

    /** The bytes of the value that begins here. */
    private static byte[] bytes(JsonParser json, byte[] payload) throws IOException {
        int from = (int) json.currentTokenLocation().getByteOffset();
        json.skipChildren();
        json.finishToken();
        return Arrays.copyOfRange(payload, from, (int) json.currentLocation().getByteOffset());
    }

    private static Map<String, String> texts(JsonParser json) throws IOException {
        Map<String, String> found = new LinkedHashMap<>();
        if (json.currentToken() != JsonToken.START_OBJECT) {
            json.skipChildren();
            return found;
        }
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            String name = json.currentName();
            if (json.nextToken() == JsonToken.VALUE_STRING) {
                found.put(name, json.getText());
            }
            json.skipChildren();
        }
        return found;
    }
}

package io.github.redisdq;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

/** A payload with a kind and headers: {@code {"dq":1,"kind":...,"data":...,"headers":{...}}}. */
record Envelope(long version, String kind, byte[] data, Map<String, String> headers) {
    static final int VERSION = 1;
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final byte[] MARK = Bytes.of("\"dq\"");

    static byte[] write(Codec codec, Object data, String kind, Map<String, String> headers) {
        if (data instanceof byte[]) {
            throw new DqException("data of a job with a kind or headers must be what JSON can hold, not bytes");
        }
        ObjectNode out = MAPPER.createObjectNode().put("dq", VERSION);
        if (kind != null) {
            out.put("kind", kind);
        }
        try {
            out.set("data", MAPPER.readTree(codec.encode(data)));
            if (!headers.isEmpty()) {
                out.set("headers", MAPPER.valueToTree(headers));
            }
            return MAPPER.writeValueAsBytes(out);
        } catch (IOException error) {
            throw new DqException("data of a job with a kind or headers must be JSON", error);
        }
    }

    /** Null where the payload is no envelope. */
    static Envelope read(byte[] payload) {
        if (payload.length == 0 || payload[0] != '{' || !Bytes.contains(payload, MARK)) {
            return null;
        }
        try {
            JsonNode value = MAPPER.readTree(payload);
            JsonNode version = value.get("dq");
            boolean isNone = version == null || !version.isIntegralNumber() || !value.has("data");
            if (isNone || !value.has("kind") && !value.has("headers")) {
                return null;
            }
            JsonNode kind = value.get("kind");
            String name = kind != null && kind.isTextual() ? kind.textValue() : null;
            byte[] data = MAPPER.writeValueAsBytes(value.get("data"));
            return new Envelope(version.longValue(), name, data, texts(value.get("headers")));
        } catch (JsonProcessingException error) {
            return null;
        } catch (IOException error) {
            return null;
        }
    }

    private static Map<String, String> texts(JsonNode headers) {
        Map<String, String> found = new LinkedHashMap<>();
        if (headers != null) {
            headers.fields().forEachRemaining(each -> {
                if (each.getValue().isTextual()) {
                    found.put(each.getKey(), each.getValue().textValue());
                }
            });
        }
        return found;
    }
}

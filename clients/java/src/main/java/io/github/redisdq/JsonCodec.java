package io.github.redisdq;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.lang.reflect.Type;

/** JSON by an {@link ObjectMapper} of the program's. */
public final class JsonCodec implements Codec {
    static final JsonCodec DEFAULT = new JsonCodec(JsonMapper.builder()
            .findAndAddModules()
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .disable(JsonParser.Feature.AUTO_CLOSE_SOURCE)
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
        try {
            return mapper.writeValueAsBytes(data);
        } catch (JsonProcessingException error) {
            throw new DqException("data that JSON cannot hold: " + error.getOriginalMessage(), error);
        }
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> T decode(byte[] payload, Type type) {
        if (type == byte[].class) {
            return (T) payload;
        }
        try {
            JsonNode tree = mapper.readTree(payload);
            if (tree == null || tree.isMissingNode()) {
                throw new PayloadException("the payload is not JSON: it is empty", null);
            }
            return mapper.convertValue(tree, mapper.constructType(type));
        } catch (IOException | IllegalArgumentException error) {
            throw new PayloadException("the payload does not fit: " + error.getMessage(), error);
        }
    }
}

package io.github.redisdq;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.util.ByteArrayBuilder;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Results as a step keeps them: an array of {@code [id, outcome, base64 of the value, or null]}. */
final class Results {
    private static final JsonFactory JSON = new JsonFactory();

    private Results() {}

    static byte[] write(List<JobResult> results) {
        try (ByteArrayBuilder out = new ByteArrayBuilder();
                JsonGenerator json = JSON.createGenerator(out)) {
            json.writeStartArray();
            for (JobResult each : results) {
                json.writeStartArray();
                json.writeString(each.id());
                json.writeString(each.outcome().word());
                if (each.raw() == null) {
                    json.writeNull();
                } else {
                    json.writeBinary(each.raw());
                }
                json.writeEndArray();
            }
            json.writeEndArray();
            json.flush();
            return out.toByteArray();
        } catch (IOException error) {
            throw new DqException("results cannot be kept: " + Guard.text(error), error);
        }
    }

    static List<JobResult> read(byte[] raw, Codec codec) {
        try (JsonParser json = JSON.createParser(raw)) {
            List<JobResult> found = new ArrayList<>();
            json.nextToken();
            while (json.nextToken() == JsonToken.START_ARRAY) {
                String id = json.nextTextValue();
                JobOutcome outcome = JobOutcome.of(Bytes.of(String.valueOf(json.nextTextValue())));
                byte[] value = json.nextToken() == JsonToken.VALUE_STRING ? json.getBinaryValue() : null;
                found.add(new JobResult(id, outcome, value, codec));
                json.nextToken();
            }
            return found;
        } catch (IOException error) {
            throw new DqException("results that were kept cannot be read: " + Guard.text(error), error);
        }
    }
}

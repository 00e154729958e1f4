package io.github.redisdq;

import static io.github.redisdq.Deliveries.job;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Payloads, with and without an envelope. */
class CodecTest {
    @ParameterizedTest
    @ValueSource(strings = {"", "{", "[]", "{\"dq\":1}", "{\"dq\":\"1\",\"kind\":\"a\",\"data\":1}",
        "{\"dq\":true,\"kind\":\"a\",\"data\":1}", "{\"dq\":1,\"data\":1}", "{\"a\":\"dq\"}", "{\"dq\":1.5,\"kind\":\"a\",\"data\":1}"})
    void whatIsNoEnvelope(String payload) {
        assertNull(Envelope.read(Bytes.of(payload)));
    }

    @Test
    void dataKindAndHeaders() {
        byte[] payload = Envelope.write(Codec.json(), Map.of("a", "ä"), "close", Map.of("x", "y"));
        assertEquals("{\"dq\":1,\"kind\":\"close\",\"data\":{\"a\":\"ä\"},\"headers\":{\"x\":\"y\"}}", Bytes.text(payload));
        Job job = job(Bytes.text(payload));
        assertEquals("close", job.kind());
        assertEquals(Map.of("x", "y"), job.headers());
        assertEquals(Map.of("a", "ä"), job.data(Map.class));
        assertThrows(PayloadException.class, () -> job("no JSON").data(Map.class));
        assertThrows(PayloadException.class, () -> job("").data(Map.class));
        assertThrows(DqException.class, () -> Envelope.write(Codec.json(), new byte[1], "close", Map.of()));
    }

    @Test
    void numbersAndBytesOfDataStayAsTheyAre() {
        String data = "[1e400,0.12345678901234567890,{\"ä\":\"\\u0000€\"},-17]";
        byte[] payload = Envelope.write(Codec.json(), rawJson(data), "k", Map.of("x", "y"));
        assertEquals(data, Bytes.text(Envelope.read(payload).data()));
        assertEquals("1.5", Bytes.text(Envelope.read(Bytes.of("{ \"dq\" : 1, \"data\" : 1.5 , \"kind\":\"k\"}")).data()));
        BigDecimal exact = new BigDecimal("0.12345678901234567890");
        assertEquals(exact, job(Bytes.text(Codec.json().encode(exact))).data(BigDecimal.class));
        for (String wrong : List.of("", "1 2", "{", "NaN")) {
            assertThrows(DqException.class, () -> Envelope.write(textCodec(), wrong, "k", Map.of()), wrong);
        }
    }

    private static Object rawJson(String json) {
        return new Object() {
            @com.fasterxml.jackson.annotation.JsonValue
            @com.fasterxml.jackson.annotation.JsonRawValue
            public String json() {
                return json;
            }
        };
    }

    private static Codec textCodec() {
        return new Codec() {
            @Override
            public byte[] encode(Object data) {
                return Bytes.of((String) data);
            }

            @Override
            public <T> T decode(byte[] payload, Type type) {
                return null;
            }
        };
    }

    @Test
    void whatIsNoNumberIsRefused() {
        List<Object> wrong = List.of(Double.NaN, Float.POSITIVE_INFINITY, new double[] {1, Double.NaN},
                new float[] {Float.NaN}, List.of(Double.NEGATIVE_INFINITY), Map.of("a", Double.NaN));
        for (Object data : wrong) {
            DqException plain = assertThrows(DqException.class, () -> Codec.json().encode(data));
            assertTrue(plain.getMessage().contains("is not a number"), plain.getMessage());
            assertThrows(DqException.class, () -> Envelope.write(Codec.json(), data, "kind", Map.of()));
        }
    }

    record Order(int number) {}

    @Test
    void noHandlerGetsNull() {
        for (String payload : List.of("null", " null ", "{\"dq\":1,\"kind\":\"k\",\"data\":null}")) {
            for (Class<?> type : List.of(Order.class, String.class, Map.class, int.class, Object.class)) {
                assertThrows(PayloadException.class, () -> job(payload).data(type), payload + " as " + type);
            }
            assertNull(job(payload).data(Void.class));
            assertTrue(job(payload).data(com.fasterxml.jackson.databind.JsonNode.class).isNull());
        }
        Job job = job(Bytes.of("x"), textCodec());
        assertThrows(PayloadException.class, () -> job.data(String.class), "of a codec of the program's");
    }

    @Test
    void whatNobodyMeansIsRefused() {
        for (Object data : List.of(new CompletableFuture<String>(), new IllegalStateException("no"), Stream.of(1))) {
            for (Object each : List.of(data, Map.of("order", data))) {
                DqException error = assertThrows(DqException.class, () -> Codec.json().encode(each));
                assertTrue(error.getMessage().contains("JSON cannot hold a"), error.getMessage());
            }
        }
    }

    record Times(Instant at, LocalDate day, Duration long_, OffsetDateTime offset, UUID id, BigDecimal price, java.time.ZoneId zone) {}

    @Test
    void timesAndNumbersComeBackAsTheyWere() {
        Times times = new Times(Instant.parse("2026-11-30T09:00:00.123456789Z"), LocalDate.of(2026, 2, 28), Duration.ofSeconds(90),
                OffsetDateTime.parse("2026-11-30T09:00:00+05:30"), UUID.randomUUID(), new BigDecimal("17.10"), java.time.ZoneId.of("Europe/Berlin"));
        byte[] raw = Codec.json().encode(times);
        assertTrue(Bytes.text(raw).contains("\"at\":\"2026-11-30T09:00:00.123456789Z\"") && Bytes.text(raw).contains("\"PT1M30S\""), Bytes.text(raw));
        assertEquals(times, Codec.json().decode(raw, Times.class));
    }

    /** The codec of the queue, not the library's own. */
    @Test
    void theCodecReadsWhatItWroteInAnEnvelope() {
        Codec snake = new JsonCodec(JsonMapper.builder().propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE).build());
        byte[] payload = Envelope.write(snake, new Named("Ann"), "k", Map.of());
        Job job = job(payload, snake);
        assertEquals(new Named("Ann"), job.data(Named.class));
    }

    record Named(String firstName) {}
}

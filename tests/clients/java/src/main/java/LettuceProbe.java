import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandTimeoutException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.GenericMapOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What Lettuce makes of dq. */
public final class LettuceProbe {
    record Named(String name) implements ProtocolKeyword {
        @Override
        public byte[] getBytes() {
            return Checks.latin(name);
        }
    }

    static final ByteArrayCodec BYTES = ByteArrayCodec.INSTANCE;

    static RedisURI uri(String check) {
        return RedisURI.create("127.0.0.1", Checks.port(check));
    }

    static StatefulRedisConnection<byte[], byte[]> connect(String check, ProtocolVersion protocol) {
        var client = RedisClient.create(uri(check));
        client.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
        return client.connect(BYTES);
    }

    /** With the default, RESP3. */
    static StatefulRedisConnection<byte[], byte[]> connect(String check) {
        return RedisClient.create(uri(check)).connect(BYTES);
    }

    static CommandArgs<byte[], byte[]> arguments(Object key, Object... rest) {
        var arguments = new CommandArgs<>(BYTES).addKey(bytes(key));
        for (Object argument : rest) {
            arguments.addValue(bytes(argument));
        }
        return arguments;
    }

    static byte[] bytes(Object argument) {
        return argument instanceof byte[] bytes ? bytes : Checks.latin(argument.toString());
    }

    static <T> RedisFuture<T> send(
            StatefulRedisConnection<byte[], byte[]> db,
            CommandOutput<byte[], byte[], T> output,
            String command,
            Object key,
            Object... rest) {
        return db.async().dispatch(new Named(command), output, arguments(key, rest));
    }

    static <T> T ask(
            StatefulRedisConnection<byte[], byte[]> db,
            CommandOutput<byte[], byte[], T> output,
            String command,
            Object key,
            Object... rest) {
        return db.sync().dispatch(new Named(command), output, arguments(key, rest));
    }

    static ValueOutput<byte[], byte[]> value() {
        return new ValueOutput<>(BYTES);
    }

    static IntegerOutput<byte[], byte[]> number() {
        return new IntegerOutput<>(BYTES);
    }

    static ArrayOutput<byte[], byte[]> list() {
        return new ArrayOutput<>(BYTES);
    }

    /** What ArrayOutput makes of nil in RESP3; in RESP2 it is an empty list. */
    static final List<Object> NONE = Collections.singletonList(null);

    static void added(StatefulRedisConnection<byte[], byte[]> db, String queue, List<Object> none) {
        Checks.equal(ask(db, value(), "DQ.ADD", queue, "a", "x", "DELAY", 60_000), "a");
        Checks.equal(ask(db, list(), "DQ.POP", queue, "COUNT", 5), List.of());
        Checks.equal(ask(db, list(), "DQ.POP", queue), none);
    }

    static void resp2() {
        try (var db = connect("resp2", ProtocolVersion.RESP2)) {
            added(db, "resp2", List.of());
            Checks.equal(Checks.field(ask(db, list(), "DQ.GET", "resp2", "a"), "state"), "delayed");
        }
    }

    static void resp3() {
        try (var db = connect("resp3")) {
            added(db, "resp3", NONE);
            Map<byte[], Object> job = ask(db, new GenericMapOutput<>(BYTES), "DQ.GET", "resp3", "a");
            var fields = job.entrySet().stream()
                    .filter(field -> field.getValue() != null)
                    .collect(Collectors.toMap(field -> Checks.plain(field.getKey()), Map.Entry::getValue));
            Checks.equal(fields.get("state"), "delayed");
            Checks.equal(fields.get("attempts"), 0L);
            // As a list it is flat, as in RESP2.
            Checks.equal(Checks.field(ask(db, list(), "DQ.GET", "resp3", "a"), "state"), "delayed");
        }
    }

    static void pipeline() throws Exception {
        try (var db = connect("pipeline")) {
            db.setAutoFlushCommands(false);
            for (int n = 0; n < 100; n++) {
                send(db, value(), "DQ.ADD", "pipeline", "job-" + n, n);
            }
            var count = send(db, number(), "DQ.LEN", "pipeline");
            var jobs = send(db, list(), "DQ.POP", "pipeline", "COUNT", 100);
            db.flushCommands();
            Checks.equal(count.get(), 100L);
            var payloads = jobs.get().stream().map(job -> Checks.firstOf(job, 1, 2).get(0)).toList();
            Checks.equal(payloads, IntStream.range(0, 100).mapToObj(n -> "" + n).toList());
        }
    }

    static void multi() throws Exception {
        try (var db = connect("multi")) {
            db.sync().multi();
            var last = new ArrayList<RedisFuture<?>>();
            for (int n = 0; n < 7; n++) {
                send(db, value(), "DQ.ADD", "multi", "job-" + n, n);
            }
            last.add(send(db, number(), "DQ.LEN", "multi"));
            last.add(send(db, list(), "DQ.BPOP", "multi", 0));
            last.add(send(db, number(), "DQ.ACK", "multi", "job-0"));
            last.add(send(db, list(), "DQ.BPOP", "nothing", 0)); // does not wait in a transaction
            db.sync().exec();
            Checks.equal(last.get(0).get(), 7L);
            Checks.equal(Checks.firstOf(last.get(1).get(), 0, 3), List.of("multi", "job-0", "0"));
            Checks.equal(last.get(2).get(), 1L);
            Checks.equal(last.get(3).get(), NONE);
        }
    }

    static void binary() {
        try (var db = connect("binary")) {
            Checks.equal(ask(db, value(), "DQ.ADD", "binary", Checks.ID, Checks.PAYLOAD), Checks.ID);
            var job = ask(db, list(), "DQ.BPOP", "binary", 1);
            Checks.equal(job.subList(1, 3), Arrays.asList(Checks.ID, Checks.PAYLOAD));
            Checks.equal(ask(db, number(), "DQ.ACK", "binary", "WITHTOKENS", Checks.ID, job.get(3)), 1L);
        }
    }

    static void tokens() {
        try (var db = connect("tokens")) {
            ask(db, value(), "DQ.ADD", "tokens", "a", "x");
            var token = (String) Checks.plain(ask(db, list(), "DQ.POP", "tokens").get(2));
            var next = Checks.next(token);
            Checks.equal(ask(db, number(), "DQ.ACK", "tokens", "WITHTOKENS", "a", next), 0L);
            Checks.equal(ask(db, number(), "DQ.ACK", "tokens", "WITHTOKENS", "a", token), 1L);
        }
    }

    static void timeout() throws Exception {
        Checks.equal(uri("timeout").getTimeout().toSeconds(), 60L);
        try (var db = connect("timeout"); var other = connect("timeout")) {
            ask(db, value(), "DQ.ADD", "timeout", "a", "x", "DELAY", 1500);
            Checks.equal(ask(db, list(), "DQ.BPOP", "timeout", "2.5").subList(1, 3), Arrays.asList(
                    Checks.latin("a"), Checks.latin("x")));
            ask(db, number(), "DQ.ACK", "timeout", "a");
            // Meanwhile everything else on that connection waits.
            var wait = send(db, list(), "DQ.BPOP", "timeout", "2.5");
            var length = send(db, number(), "DQ.LEN", "timeout");
            Checks.equal(length.await(500, TimeUnit.MILLISECONDS), false);
            Checks.equal(wait.get(), NONE);
            length.get();
            // A timeout that is shorter gives up, but the server is not told: the job goes to nobody.
            db.setTimeout(Duration.ofSeconds(1));
            try {
                throw new AssertionError("not cut off: " + ask(db, list(), "DQ.BPOP", "timeout", "2.5"));
            } catch (RedisCommandTimeoutException cut) {
                ask(other, value(), "DQ.ADD", "timeout", "b", "x");
                Checks.equal(ask(other, number(), "DQ.LEN", "timeout", "RESERVED"), 1L);
            }
        }
    }

    static void cluster() throws Exception {
        try (var client = RedisClusterClient.create(uri("cluster")); var db = client.connect(BYTES)) {
            // The first addKey names the key by which the node is chosen.
            for (int n = 0; n < 30; n++) {
                String queue = "queue-" + n;
                var sync = db.sync();
                Checks.equal(sync.dispatch(new Named("DQ.ADD"), value(), arguments(queue, "a", n)), "a");
                var keys = arguments("{" + queue + "}:urgent").addKey(bytes(queue)).addValue(bytes(1));
                var job = sync.dispatch(new Named("DQ.BPOP"), list(), keys);
                Checks.equal(job.subList(0, 3), Arrays.asList(bytes(queue), bytes("a"), bytes(n)));
                var token = arguments(queue, "WITHTOKENS", "a", job.get(3));
                Checks.equal(sync.dispatch(new Named("DQ.ACK"), number(), token), 1L);
                Checks.equal(sync.dispatch(new Named("DQ.POP"), list(), arguments(queue)), NONE);
            }
        }
    }

    public static void main(String[] args) {
        new Checks()
                .check("resp2", LettuceProbe::resp2)
                .check("resp3", LettuceProbe::resp3)
                .check("pipeline", LettuceProbe::pipeline)
                .check("multi", LettuceProbe::multi)
                .check("binary", LettuceProbe::binary)
                .check("tokens", LettuceProbe::tokens)
                .check("timeout", LettuceProbe::timeout)
                .check("cluster", LettuceProbe::cluster)
                .end();
    }
}

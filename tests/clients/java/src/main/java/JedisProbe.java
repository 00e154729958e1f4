import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.util.KeyValue;

/** What Jedis makes of dq. */
public final class JedisProbe {
    record Named(String name) implements ProtocolCommand {
        @Override
        public byte[] getRaw() {
            return name.getBytes(UTF_8);
        }
    }

    static RedisClient connect(String check, DefaultJedisClientConfig.Builder config) {
        return RedisClient.builder()
                .hostAndPort(new HostAndPort("127.0.0.1", Checks.port(check)))
                .clientConfig(config.build())
                .build();
    }

    static RedisClient connect(String check) {
        return connect(check, DefaultJedisClientConfig.builder());
    }

    static Object ask(UnifiedJedis db, String command, String... arguments) {
        return Checks.plain(db.sendCommand(new Named(command), arguments));
    }

    static void empty(UnifiedJedis db, String queue) {
        Checks.equal(ask(db, "DQ.POP", queue), null);
        Checks.equal(ask(db, "DQ.POP", queue, "COUNT", "5"), List.of());
    }

    static void resp2() {
        try (var db = connect("resp2", DefaultJedisClientConfig.builder().protocol(RedisProtocol.RESP2))) {
            Checks.equal(ask(db, "DQ.ADD", "resp2", "a", "x", "DELAY", "60000"), "a");
            Checks.equal(Checks.field(ask(db, "DQ.GET", "resp2", "a"), "state"), "delayed");
            empty(db, "resp2");
        }
    }

    static void resp3() {
        try (var db = connect("resp3")) { // the default
            Checks.equal(ask(db, "DQ.ADD", "resp3", "a", "x", "DELAY", "60000"), "a");
            // A map comes as a list of pairs.
            var job = (List<?>) db.sendCommand(new Named("DQ.GET"), "resp3", "a");
            var state = (KeyValue<?, ?>) job.get(2);
            Checks.equal(List.of(state.getKey(), state.getValue()), List.of("state", "delayed"));
            empty(db, "resp3");
        }
    }

    static void pipeline() {
        try (var db = connect("pipeline"); var pipe = db.pipelined()) {
            for (int n = 0; n < 100; n++) {
                pipe.sendCommand(new Named("DQ.ADD"), "pipeline", "job-" + n, "" + n);
            }
            var count = pipe.sendCommand(new Named("DQ.LEN"), "pipeline");
            var jobs = pipe.sendCommand(new Named("DQ.POP"), "pipeline", "COUNT", "100");
            pipe.sync();
            Checks.equal(count.get(), 100L);
            var payloads = ((List<?>) jobs.get()).stream().map(job -> Checks.firstOf(job, 1, 2).get(0)).toList();
            Checks.equal(payloads, IntStream.range(0, 100).mapToObj(n -> "" + n).toList());
        }
    }

    static void multi() {
        try (var db = connect("multi"); var transaction = db.multi()) {
            for (int n = 0; n < 7; n++) {
                transaction.sendCommand(new Named("DQ.ADD"), "multi", "job-" + n, "" + n);
            }
            var last = new ArrayList<Response<Object>>();
            last.add(transaction.sendCommand(new Named("DQ.LEN"), "multi"));
            last.add(transaction.sendCommand(new Named("DQ.BPOP"), "multi", "0"));
            last.add(transaction.sendCommand(new Named("DQ.ACK"), "multi", "job-0"));
            // Does not wait in a transaction.
            last.add(transaction.sendCommand(new Named("DQ.BPOP"), "nothing", "0"));
            transaction.exec();
            Checks.equal(last.get(0).get(), 7L);
            Checks.equal(Checks.firstOf(last.get(1).get(), 0, 3), List.of("multi", "job-0", "0"));
            Checks.equal(last.get(2).get(), 1L);
            Checks.equal(last.get(3).get(), null);
        }
    }

    static void binary() {
        byte[] queue = Checks.latin("binary");
        try (var db = connect("binary")) {
            Checks.equal(db.sendCommand(new Named("DQ.ADD"), queue, Checks.ID, Checks.PAYLOAD), Checks.ID);
            var job = (List<?>) db.sendBlockingCommand(new Named("DQ.BPOP"), queue, Checks.latin("1"));
            Checks.equal(job.subList(1, 3), Arrays.asList(Checks.ID, Checks.PAYLOAD));
            byte[] token = (byte[]) job.get(3);
            var acked = db.sendCommand(new Named("DQ.ACK"), queue, Checks.latin("WITHTOKENS"), Checks.ID, token);
            Checks.equal(acked, 1L);
        }
    }

    static void tokens() {
        try (var db = connect("tokens")) {
            ask(db, "DQ.ADD", "tokens", "a", "x");
            var token = (String) Checks.firstOf(ask(db, "DQ.POP", "tokens"), 2, 3).get(0);
            Checks.equal(ask(db, "DQ.ACK", "tokens", "WITHTOKENS", "a", Checks.next(token)), 0L);
            Checks.equal(ask(db, "DQ.ACK", "tokens", "WITHTOKENS", "a", token), 1L);
        }
    }

    static void timeout() {
        var defaults = DefaultJedisClientConfig.builder().build();
        Checks.equal(defaults.getSocketTimeoutMillis(), 2000);
        Checks.equal(defaults.getBlockingSocketTimeoutMillis(), 0);
        try (var db = connect("timeout")) {
            // sendCommand waits no longer than that; and the connection is closed, so no job is lost to it.
            try {
                throw new AssertionError("not cut off: " + ask(db, "DQ.BPOP", "timeout", "2.5"));
            } catch (JedisConnectionException cut) {
                Checks.equal(cut.getMessage().contains("timed out"), true);
            }
            // sendBlockingCommand does: a job comes when it is due, and nothing is nothing.
            ask(db, "DQ.ADD", "timeout", "a", "x", "DELAY", "2200");
            var job = db.sendBlockingCommand(new Named("DQ.BPOP"), "timeout", "2.5");
            Checks.equal(Checks.firstOf(job, 1, 3), List.of("a", "x"));
            Checks.equal(db.sendBlockingCommand(new Named("DQ.BPOP"), "timeout", "2.5"), null);
        }
    }

    static void cluster() {
        try (var db = RedisClusterClient.create(new HostAndPort("127.0.0.1", Checks.port("cluster")))) {
            for (int n = 0; n < 30; n++) {
                // The first argument names the key by which the node is chosen.
                String queue = "queue-" + n;
                Checks.equal(db.sendCommand(queue, new Named("DQ.ADD"), queue, "a", "" + n), "a");
                var job = db.sendBlockingCommand(
                        queue, new Named("DQ.BPOP"), "{" + queue + "}:urgent", queue, "1");
                Checks.equal(Checks.firstOf(job, 0, 3), List.of(queue, "a", "" + n));
                var token = (String) Checks.firstOf(job, 3, 4).get(0);
                Checks.equal(db.sendCommand(queue, new Named("DQ.ACK"), queue, "WITHTOKENS", "a", token), 1L);
                Checks.equal(db.sendCommand(queue, new Named("DQ.POP"), queue), null);
            }
        }
    }

    public static void main(String[] args) {
        new Checks()
                .check("resp2", JedisProbe::resp2)
                .check("resp3", JedisProbe::resp3)
                .check("pipeline", JedisProbe::pipeline)
                .check("multi", JedisProbe::multi)
                .check("binary", JedisProbe::binary)
                .check("tokens", JedisProbe::tokens)
                .check("timeout", JedisProbe::timeout)
                .check("cluster", JedisProbe::cluster)
                .end();
    }
}

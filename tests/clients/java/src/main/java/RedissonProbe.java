import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RFuture;
import org.redisson.client.RedisResponseTimeoutException;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.protocol.RedisCommand;
import org.redisson.client.protocol.decoder.ObjectListReplayDecoder;
import org.redisson.command.CommandAsyncExecutor;
import org.redisson.command.CommandBatchService;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

/** What Redisson makes of dq, by way of its command executor. */
public final class RedissonProbe {
    private static final Map<String, Redisson> OPEN = new HashMap<>();

    static Redisson connect(String check, Protocol protocol, int timeoutMs, int retries) {
        return OPEN.computeIfAbsent(check + protocol + timeoutMs, key -> {
            var config = new Config();
            config.setProtocol(protocol);
            config.setThreads(2).setNettyThreads(2);
            config.useSingleServer()
                    .setAddress("redis://127.0.0.1:" + Checks.port(check))
                    .setTimeout(timeoutMs)
                    .setRetryAttempts(retries)
                    .setConnectionPoolSize(4)
                    .setConnectionMinimumIdleSize(1)
                    .setSubscriptionConnectionMinimumIdleSize(0);
            return (Redisson) Redisson.create(config);
        });
    }

    static Redisson connect(String check) {
        return connect(check, Protocol.RESP2, 15_000, 0);
    }

    /** Value or number. */
    static RedisCommand<Object> one(String name) {
        return new RedisCommand<>(name);
    }

    static RedisCommand<List<Object>> list(String name) {
        return new RedisCommand<>(name, new ObjectListReplayDecoder<>());
    }

    static <T> RFuture<T> send(
            CommandAsyncExecutor executor, RedisCommand<T> command, Object... arguments) {
        return executor.writeAsync((String) arguments[0], ByteArrayCodec.INSTANCE, command, arguments);
    }

    static <T> T ask(Redisson db, RedisCommand<T> command, Object... arguments) {
        var executor = db.getCommandExecutor();
        return executor.get(RedissonProbe.<T>send(executor, command, arguments));
    }

    /** Nil is an empty list in RESP2, and null in RESP3. */
    static void added(Redisson db, String queue, List<Object> none) {
        Checks.equal(ask(db, one("DQ.ADD"), queue, "a", "x", "DELAY", 60_000), Checks.latin("a"));
        Checks.equal(Checks.field(ask(db, list("DQ.GET"), queue, "a"), "state"), "delayed");
        Checks.equal(ask(db, list("DQ.POP"), queue, "COUNT", 5), List.of());
        Checks.equal(ask(db, list("DQ.POP"), queue), none);
    }

    static void resp2() {
        Checks.equal(new Config().getProtocol(), Protocol.RESP2);
        added(connect("resp2"), "resp2", List.of());
    }

    static void resp3() {
        added(connect("resp3", Protocol.RESP3, 15_000, 0), "resp3", null);
    }

    static void pipeline() {
        var batch = new CommandBatchService(connect("pipeline").getCommandExecutor(), BatchOptions.defaults());
        for (int n = 0; n < 100; n++) {
            send(batch, one("DQ.ADD"), "pipeline", "job-" + n, n);
        }
        send(batch, one("DQ.LEN"), "pipeline");
        send(batch, list("DQ.POP"), "pipeline", "COUNT", 100);
        var replies = batch.execute().getResponses();
        Checks.equal(replies.get(100), 100L);
        var jobs = (List<?>) replies.get(101);
        var payloads = jobs.stream().map(job -> Checks.firstOf(job, 1, 2).get(0)).toList();
        Checks.equal(payloads, IntStream.range(0, 100).mapToObj(n -> "" + n).toList());
    }

    static void multi() {
        var atomic = BatchOptions.defaults().executionMode(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC);
        var batch = new CommandBatchService(connect("multi").getCommandExecutor(), atomic);
        for (int n = 0; n < 7; n++) {
            send(batch, one("DQ.ADD"), "multi", "job-" + n, n);
        }
        send(batch, one("DQ.LEN"), "multi");
        send(batch, list("DQ.BPOP"), "multi", 0);
        send(batch, one("DQ.ACK"), "multi", "job-0");
        send(batch, list("DQ.BPOP"), "nothing", 0); // does not wait in a transaction
        var replies = batch.execute().getResponses();
        Checks.equal(replies.get(7), 7L);
        Checks.equal(Checks.firstOf(replies.get(8), 0, 3), List.of("multi", "job-0", "0"));
        Checks.equal(replies.subList(9, 11), List.of(1L, List.of()));
    }

    static void binary() {
        var db = connect("binary");
        Checks.equal(ask(db, one("DQ.ADD"), "binary", Checks.ID, Checks.PAYLOAD), Checks.ID);
        var job = ask(db, list("DQ.BPOP"), "binary", 1);
        Checks.equal(job.subList(1, 3), Arrays.asList(Checks.ID, Checks.PAYLOAD));
        Checks.equal(ask(db, one("DQ.ACK"), "binary", "WITHTOKENS", Checks.ID, job.get(3)), 1L);
    }

    static void tokens() {
        var db = connect("tokens");
        ask(db, one("DQ.ADD"), "tokens", "a", "x");
        var token = (String) Checks.plain(ask(db, list("DQ.POP"), "tokens").get(2));
        Checks.equal(ask(db, one("DQ.ACK"), "tokens", "WITHTOKENS", "a", Checks.next(token)), 0L);
        Checks.equal(ask(db, one("DQ.ACK"), "tokens", "WITHTOKENS", "a", token), 1L);
    }

    static void timeout() {
        var defaults = new Config().useSingleServer();
        Checks.equal(List.of(defaults.getTimeout(), defaults.getRetryAttempts()), List.of(3000, 4));
        var db = connect("timeout");
        ask(db, one("DQ.ADD"), "timeout", "a", "x", "DELAY", 1500);
        var job = ask(db, list("DQ.BPOP"), "timeout", "2.5");
        Checks.equal(job.subList(1, 3), Arrays.asList(Checks.latin("a"), Checks.latin("x")));
        Checks.equal(ask(db, one("DQ.ACK"), "timeout", "a"), 1L);
        Checks.equal(ask(db, list("DQ.BPOP"), "timeout", "2.5"), List.of());
        // A timeout that is shorter gives up, but the server is not told: the job goes to nobody.
        var hasty = connect("timeout", Protocol.RESP2, 1000, 0);
        try {
            throw new AssertionError("not cut off: " + ask(hasty, list("DQ.BPOP"), "timeout", "2.5"));
        } catch (RedisResponseTimeoutException cut) {
            ask(db, one("DQ.ADD"), "timeout", "b", "x");
            Checks.equal(ask(db, one("DQ.LEN"), "timeout", "RESERVED"), 1L);
        }
    }

    static void cluster() {
        var config = new Config();
        config.setThreads(2).setNettyThreads(4);
        config.useClusterServers().addNodeAddress("redis://127.0.0.1:" + Checks.port("cluster"))
                .setMasterConnectionMinimumIdleSize(1).setTimeout(15_000).setRetryAttempts(0);
        var db = (Redisson) Redisson.create(config);
        OPEN.put("cluster", db);
        for (int n = 0; n < 30; n++) {
            String queue = "queue-" + n;
            Checks.equal(ask(db, one("DQ.ADD"), queue, "a", n), Checks.latin("a"));
            var job = ask(db, list("DQ.BPOP"), "{" + queue + "}:urgent", queue, 1);
            Checks.equal(Checks.firstOf(job, 0, 3), List.of(queue, "a", "" + n));
            Checks.equal(ask(db, one("DQ.ACK"), queue, "WITHTOKENS", "a", job.get(3)), 1L);
            Checks.equal(ask(db, list("DQ.POP"), queue), List.of());
        }
    }

    public static void main(String[] args) {
        new Checks()
                .check("resp2", RedissonProbe::resp2)
                .check("resp3", RedissonProbe::resp3)
                .check("pipeline", RedissonProbe::pipeline)
                .check("multi", RedissonProbe::multi)
                .check("binary", RedissonProbe::binary)
                .check("tokens", RedissonProbe::tokens)
                .check("timeout", RedissonProbe::timeout)
                .check("cluster", RedissonProbe::cluster)
                .end();
    }
}

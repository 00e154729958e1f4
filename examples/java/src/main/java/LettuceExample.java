import static java.nio.charset.StandardCharsets.UTF_8;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * A producer and a worker with Lettuce.
 *
 * <pre>
 * java -cp 'target/classes:target/libraries/*' LettuceExample add welcome:7 "Dear Ann" 5000
 * java -cp 'target/classes:target/libraries/*' LettuceExample work    # until Ctrl-C or SIGTERM
 * </pre>
 */
public final class LettuceExample {
    static final byte[] QUEUE = bytes("mails");
    /** A worker that is silent for so long loses its job. */
    static final long LEASE_MS = Long.parseLong(System.getenv().getOrDefault("LEASE_MS", "30000"));
    /** How long one BPOP waits. */
    static final int WAIT_S = 1;

    /** What Lettuce wants in place of a command's name. */
    enum Dq implements ProtocolKeyword {
        ADD, BPOP, ACK, NACK, TOUCH;

        @Override
        public byte[] getBytes() {
            return bytes("DQ." + name());
        }
    }

    private final RedisClient client = RedisClient.create(uri());
    /** Keys, ids and payloads as bytes. */
    private final StatefulRedisConnection<byte[], byte[]> db = client.connect(ByteArrayCodec.INSTANCE);
    private final ScheduledExecutorService heart = Executors.newSingleThreadScheduledExecutor();
    private volatile boolean stopping;

    /**
     * The timeout, 60 s unless set, must be longer than BPOP's: Lettuce gives up without telling the server,
     * and the job that then comes goes to nobody. It is the longest that a stop takes, whatever the server does.
     */
    static RedisURI uri() {
        var uri = RedisURI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379"));
        uri.setTimeout(Duration.ofSeconds(WAIT_S + 2));
        return uri;
    }

    static CommandArgs<byte[], byte[]> queue() {
        return new CommandArgs<>(ByteArrayCodec.INSTANCE).addKey(QUEUE);
    }

    static <T> T ask(
            StatefulRedisConnection<byte[], byte[]> db,
            Dq command,
            CommandOutput<byte[], byte[], T> output,
            CommandArgs<byte[], byte[]> arguments) {
        return db.sync().dispatch(command, output, arguments);
    }

    byte[] askValue(Dq command, CommandArgs<byte[], byte[]> arguments) {
        return ask(db, command, new ValueOutput<>(ByteArrayCodec.INSTANCE), arguments);
    }

    Long askNumber(Dq command, CommandArgs<byte[], byte[]> arguments) {
        return ask(db, command, new IntegerOutput<>(ByteArrayCodec.INSTANCE), arguments);
    }

    /** With an id of its own a job that is sent twice, as Lettuce does after a lost connection, is there once. */
    void add(String id, String text, String delayMs) {
        byte[] added = askValue(Dq.ADD, queue().add(id).add(text).add("DELAY").add(delayMs)
                .add("ATTEMPTS").add(5).add("BACKOFF").add(2).add(1000).add(60_000));
        System.out.println((added != null ? "added " : "there is already a job ") + id);
    }

    /** The work itself. Here it only fails once, or takes longer than a lease, where the text says so. */
    void send(String text, long attempt) throws Exception {
        if (text.startsWith("flaky") && attempt == 1) {
            throw new Exception("mail server is away");
        }
        Thread.sleep(text.startsWith("slow") ? LEASE_MS * 3 / 2 : 100);
    }

    /** Begins the lease anew. Where the job is no longer ours, nothing happens. */
    void beat(byte[] id, byte[] token) {
        try {
            askNumber(Dq.TOUCH, queue().add(id).add("TOKEN").add(token));
        } catch (RedisException error) {
            System.out.println("no heartbeat: " + error);
        }
    }

    void handle(byte[] id, byte[] payload, byte[] token, long attempt) throws InterruptedException {
        var beats = heart.scheduleAtFixedRate(
                () -> beat(id, token), LEASE_MS / 3, LEASE_MS / 3, TimeUnit.MILLISECONDS);
        Exception failure = null;
        try {
            send(new String(payload, UTF_8), attempt);
        } catch (Exception error) {
            failure = error;
        } finally {
            beats.cancel(false);
        }
        String name = new String(id, UTF_8);
        if (failure != null) {
            byte[] state = askValue(Dq.NACK, queue().add(id).add("TOKEN").add(token));
            System.out.printf("failed %s (attempt %d): %s; now %s%n", name, attempt, failure.getMessage(),
                    state == null ? "lost" : new String(state, UTF_8));
        } else if (ask(db, Dq.ACK, new ArrayOutput<>(ByteArrayCodec.INSTANCE),
                queue().add("WITHTOKENS").add("IDS").add(1).add(id).add(token)).get(0).equals(1L)) {
            System.out.printf("done %s (attempt %d)%n", name, attempt);
        } else {
            System.out.printf("lost %s: another worker may have it%n", name);
        }
    }

    void work() throws InterruptedException {
        Thread worker = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                worker.join();
            } catch (InterruptedException ignored) {
                // The JVM ends anyway.
            }
        }));
        // On a connection of its own, as BPOP holds up all other commands of its connection.
        StatefulRedisConnection<byte[], byte[]> waiting = null;
        while (!stopping) {
            try {
                if (waiting == null) {
                    waiting = client.connect(ByteArrayCodec.INSTANCE);
                }
                List<Object> job = ask(waiting, Dq.BPOP, new ArrayOutput<>(ByteArrayCodec.INSTANCE),
                        queue().add(WAIT_S).add("TTR").add(LEASE_MS));
                if (job != null && job.size() == 6) { // queue, id, payload, token, attempt, deadline
                    handle((byte[]) job.get(1), (byte[]) job.get(2), (byte[]) job.get(3), (Long) job.get(4));
                }
            } catch (RedisException error) {
                // Whatever we had is delivered again when its lease ends.
                System.out.println("trouble: " + error);
                // A BPOP that was given up may still be waiting in the server.
                if (waiting != null) {
                    waiting.closeAsync();
                    waiting = null;
                }
                Thread.sleep(500);
            }
        }
        System.out.println("stopped");
    }

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    public static void main(String[] args) throws Exception {
        var example = new LettuceExample();
        if (args.length == 4 && args[0].equals("add")) {
            example.add(args[1], args[2], args[3]);
        } else if (args.length == 1 && args[0].equals("work")) {
            example.work();
        } else {
            System.err.println("usage: LettuceExample add ID TEXT DELAY_MS | work");
        }
        example.heart.shutdown();
        example.client.shutdown(Duration.ZERO, Duration.ofSeconds(1));
    }
}

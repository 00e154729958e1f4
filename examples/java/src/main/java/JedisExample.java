import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URI;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;

/**
 * A producer and a worker with Jedis.
 *
 * <pre>
 * java -cp 'target/classes:target/libraries/*' JedisExample add welcome:7 "Dear Ann" 5000
 * java -cp 'target/classes:target/libraries/*' JedisExample work    # until Ctrl-C or SIGTERM
 * </pre>
 */
public final class JedisExample {
    static final String QUEUE = "mails";
    /** A worker that is silent for so long loses its job. */
    static final long LEASE_MS = Long.parseLong(System.getenv().getOrDefault("LEASE_MS", "30000"));
    /** How long one BPOP waits. */
    static final int WAIT_S = 1;

    /** What Jedis wants in place of a command's name. */
    enum Dq implements ProtocolCommand {
        ADD, BPOP, ACK, NACK, TOUCH;

        @Override
        public byte[] getRaw() {
            return ("DQ." + name()).getBytes(UTF_8);
        }
    }

    private final RedisClient db = connect();
    private final ScheduledExecutorService heart = Executors.newSingleThreadScheduledExecutor();
    private volatile boolean stopping;

    /** Blocking commands have no timeout unless told. With one it is the longest that a stop takes. */
    static RedisClient connect() {
        URI uri = URI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379"));
        var config = DefaultJedisClientConfig.builder(uri).blockingSocketTimeoutMillis((WAIT_S + 2) * 1000).build();
        return RedisClient.builder().fromURI(uri).clientConfig(config).build();
    }

    /** With an id of its own a job that is sent twice is there once. */
    void add(String id, String text, String delayMs) {
        Object added = db.sendCommand(Dq.ADD, QUEUE, id, text, "DELAY", delayMs,
                "ATTEMPTS", "5", "BACKOFF", "2", "1000", "60000");
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
            db.sendCommand(Dq.TOUCH, bytes(QUEUE), id, bytes("TOKEN"), token);
        } catch (JedisException error) {
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
            var state = (byte[]) db.sendCommand(Dq.NACK, bytes(QUEUE), id, bytes("TOKEN"), token);
            System.out.printf("failed %s (attempt %d): %s; now %s%n", name, attempt, failure.getMessage(),
                    state == null ? "lost" : new String(state, UTF_8));
        } else if (db.sendCommand(Dq.ACK, bytes(QUEUE), bytes("WITHTOKENS"), bytes("IDS"), bytes("1"), id, token)
                .equals(List.of(1L))) {
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
        while (!stopping) {
            try {
                // sendBlockingCommand: with the timeout for commands that wait.
                var job = (List<?>) db.sendBlockingCommand(
                        Dq.BPOP, QUEUE, Integer.toString(WAIT_S), "TTR", Long.toString(LEASE_MS));
                if (job != null) { // queue, id, payload, token, attempt, deadline
                    handle((byte[]) job.get(1), (byte[]) job.get(2), (byte[]) job.get(3), (Long) job.get(4));
                }
            } catch (JedisException error) {
                // Whatever we had is delivered again when its lease ends.
                System.out.println("trouble: " + error);
                Thread.sleep(500);
            }
        }
        System.out.println("stopped");
    }

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    public static void main(String[] args) throws Exception {
        var example = new JedisExample();
        if (args.length == 4 && args[0].equals("add")) {
            example.add(args[1], args[2], args[3]);
        } else if (args.length == 1 && args[0].equals("work")) {
            example.work();
        } else {
            System.err.println("usage: JedisExample add ID TEXT DELAY_MS | work");
        }
        example.heart.shutdown();
        example.db.close();
    }
}

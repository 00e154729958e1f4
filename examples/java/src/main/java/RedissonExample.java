import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URI;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.client.RedisException;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.protocol.RedisCommand;
import org.redisson.client.protocol.decoder.ObjectListReplayDecoder;
import org.redisson.command.CommandAsyncExecutor;
import org.redisson.config.Config;

/**
 * A producer and a worker with Redisson, by the way on which it sends its own commands.
 *
 * <pre>
 * java -cp 'target/classes:target/libraries/*' RedissonExample add welcome:7 "Dear Ann" 5000
 * java -cp 'target/classes:target/libraries/*' RedissonExample work    # until Ctrl-C or SIGTERM
 * </pre>
 */
public final class RedissonExample {
    static final String QUEUE = "mails";
    /** A worker that is silent for so long loses its job. */
    static final long LEASE_MS = Long.parseLong(System.getenv().getOrDefault("LEASE_MS", "30000"));
    /** How long one BPOP waits. */
    static final int WAIT_S = 1;

    static final RedisCommand<Object> ADD = new RedisCommand<>("DQ.ADD");
    static final RedisCommand<List<Object>> BPOP = new RedisCommand<>("DQ.BPOP", new ObjectListReplayDecoder<>());
    static final RedisCommand<List<Object>> ACK = new RedisCommand<>("DQ.ACK", new ObjectListReplayDecoder<>());
    static final RedisCommand<Object> NACK = new RedisCommand<>("DQ.NACK");
    static final RedisCommand<Object> TOUCH = new RedisCommand<>("DQ.TOUCH");

    private final Redisson redisson = connect();
    private final ScheduledExecutorService heart = Executors.newSingleThreadScheduledExecutor();
    private volatile boolean stopping;

    /**
     * The timeout must be longer than BPOP's: Redisson gives up without telling the server. Without retries it is the
     * longest that a stop takes, whatever the server does.
     */
    static Redisson connect() {
        String address = System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379");
        String database = URI.create(address).getPath().replace("/", ""); // which Redisson ignores
        var config = new Config();
        config.useSingleServer()
                .setAddress(address)
                .setDatabase(database.isEmpty() ? 0 : Integer.parseInt(database))
                .setTimeout((WAIT_S + 2) * 1000)
                .setRetryAttempts(0)
                .setConnectionMinimumIdleSize(1);
        return (Redisson) Redisson.create(config);
    }

    /** The first argument is the key, by which a cluster's node is chosen. */
    <T> T ask(RedisCommand<T> command, Object... rest) {
        CommandAsyncExecutor executor = redisson.getCommandExecutor();
        Object[] arguments = new Object[rest.length + 1];
        arguments[0] = QUEUE;
        System.arraycopy(rest, 0, arguments, 1, rest.length);
        return executor.get(executor.writeAsync(QUEUE, ByteArrayCodec.INSTANCE, command, arguments));
    }

    /** With an id of its own a job that is sent twice is there once. */
    void add(String id, String text, String delayMs) {
        Object added = ask(ADD, id, text, "DELAY", delayMs, "ATTEMPTS", 5, "BACKOFF", 2, 1000, 60_000);
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
            ask(TOUCH, id, "TOKEN", token);
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
            var state = (byte[]) ask(NACK, id, "TOKEN", token);
            System.out.printf("failed %s (attempt %d): %s; now %s%n", name, attempt, failure.getMessage(),
                    state == null ? "lost" : new String(state, UTF_8));
        } else if (ask(ACK, "WITHTOKENS", "IDS", 1, id, token).get(0).equals(1L)) {
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
                List<Object> job = ask(BPOP, WAIT_S, "TTR", LEASE_MS);
                if (job != null && job.size() == 6) { // queue, id, payload, token, attempt, deadline
                    handle((byte[]) job.get(1), (byte[]) job.get(2), (byte[]) job.get(3), (Long) job.get(4));
                }
            } catch (RedisException error) {
                // Whatever we had is delivered again when its lease ends.
                System.out.println("trouble: " + error);
                Thread.sleep(500);
            }
        }
        System.out.println("stopped");
    }

    public static void main(String[] args) throws Exception {
        var example = new RedissonExample();
        if (args.length == 4 && args[0].equals("add")) {
            example.add(args[1], args[2], args[3]);
        } else if (args.length == 1 && args[0].equals("work")) {
            example.work();
        } else {
            System.err.println("usage: RedissonExample add ID TEXT DELAY_MS | work");
        }
        example.heart.shutdown();
        example.redisson.shutdown(0, 1, TimeUnit.SECONDS);
    }
}

package io.github.redisdq.testing;

import io.github.redisdq.DqQueue;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisException;

/**
 * A server of a test's own, with the module. Its clock stands still until the test moves it. The program is the one
 * that the environment variable DQ_SERVER names, else valkey-server or redis-server; DQ_MODULE names the module. Without
 * that, the program dq says both: that of the variable DQ_PROGRAM, or of the PATH.
 */
public final class DqServer implements AutoCloseable {
    private static final int PATIENCE_S = 30;
    private static final int TRIES = 20;

    private final Path folder;
    private Process process;
    private int port;
    private Connection connection;

    private DqServer() throws IOException {
        folder = Files.createTempDirectory("dq-test-");
    }

    /** Starts a server. */
    public static DqServer start() {
        try {
            DqServer server = new DqServer();
            for (int tries = 1; ; tries++) { // another process may take the port first
                try {
                    server.launch();
                    return server;
                } catch (IOException error) {
                    if (tries == TRIES) {
                        server.close();
                        throw error;
                    }
                }
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private void launch() throws IOException {
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        Path log = folder.resolve("log");
        String[] files = files();
        List<String> command = List.of(
                files[0], "--port", String.valueOf(port), "--bind", "127.0.0.1", "--dir", folder.toString(), "--save", "",
                "--loadmodule", files[1], "test-clock", "yes");
        process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        while (!isThere()) {
            if (!process.isAlive() || System.nanoTime() - end > 0) {
                process.destroyForcibly();
                throw new IOException("the server does not start:\n" + Files.readString(log));
            }
        }
    }

    /** Whether it is this server that answers. */
    private boolean isThere() throws IOException {
        try {
            Thread.sleep(10);
            connection = new Connection("127.0.0.1", port);
            connection.setSoTimeout(PATIENCE_S * 1000);
            connection.sendCommand(() -> "INFO".getBytes(), "server");
            String info = new String((byte[]) connection.getOne());
            if (info.contains("process_id:" + process.pid() + "\r")) {
                return true;
            }
            connection.disconnect();
        } catch (JedisException error) {
            return false;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IOException(error);
        }
        return false;
    }

    private static String[] files() throws IOException {
        String module = variable("DQ_MODULE");
        String[] packed = module == null ? packed() : new String[] {null, module};
        String named = variable("DQ_SERVER");
        String server = named != null ? named : packed[0] != null ? packed[0] : installed();
        if (!Files.isRegularFile(Path.of(packed[1]))) {
            throw new IOException("set DQ_MODULE to the path of libdq.so");
        }
        return new String[] {server, Path.of(packed[1]).toAbsolutePath().toString()};
    }

    private static String installed() throws IOException {
        for (String name : List.of("valkey-server", "redis-server")) {
            for (String folder : System.getenv().getOrDefault("PATH", "").split(":")) {
                if (Files.isExecutable(Path.of(folder, name))) {
                    return Path.of(folder, name).toString();
                }
            }
        }
        throw new IOException("no valkey-server or redis-server in the PATH: set DQ_SERVER");
    }

    /** The server and the module in the program dq. */
    private static String[] packed() throws IOException {
        String program = variable("DQ_PROGRAM");
        String[] lines = {};
        try {
            Process asked = new ProcessBuilder(program == null ? "dq" : program, "dev", "--which")
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            lines = new String(asked.getInputStream().readAllBytes()).split("\n");
        } catch (IOException error) {
            // There is none: said below.
        }
        if (lines.length != 2) {
            throw new IOException("set DQ_MODULE to the path of libdq.so, or have the program dq in the PATH");
        }
        return lines;
    }

    private static String variable(String name) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? null : value;
    }

    public String url() {
        return "redis://127.0.0.1:" + port;
    }

    /** Opens a queue on the server; the test closes it. */
    public DqQueue queue(String name) {
        return DqQueue.connect(url(), name);
    }

    public Clock clock() {
        return new Clock(this::ask);
    }

    /** Removes all data. */
    public void clear() {
        ask("FLUSHALL");
    }

    synchronized Object ask(String... words) {
        String[] rest = java.util.Arrays.copyOfRange(words, 1, words.length);
        connection.sendCommand(() -> words[0].getBytes(), rest);
        return connection.getOne();
    }

    @Override
    public void close() {
        if (process != null) {
            process.destroyForcibly().onExit().join();
        }
        try (Stream<Path> all = Files.walk(folder)) {
            all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}

package io.github.redisdq.spring;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/** A server, or a Sentinel, as a test wants it. */
final class ServerProcess implements AutoCloseable {
    private static final long PATIENCE_S = 60;

    final int port = freePort();
    private final Path folder;
    private final Process process;

    private ServerProcess(Path folder, List<String> options) throws Exception {
        this.folder = Files.createDirectories(folder.resolve("server" + port));
        List<String> command = new ArrayList<>(List.of(System.getenv("DQ_SERVER")));
        options.forEach(option -> command.add(option.replace("{port}", String.valueOf(port))));
        command.addAll(List.of("--bind", "127.0.0.1", "--dir", this.folder.toString()));
        process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log().toFile()).start();
        until(this::isThere);
    }

    /** With the module. */
    static ServerProcess server(Path folder, String... options) throws Exception {
        List<String> all = new ArrayList<>(List.of(options));
        if (!all.contains("--tls-port")) {
            all.addAll(List.of("--port", "{port}"));
        }
        all.addAll(List.of("--save", "", "--loadmodule", System.getenv("DQ_MODULE")));
        return new ServerProcess(folder, all);
    }

    static ServerProcess sentinel(Path folder, ServerProcess master, String... options) throws Exception {
        Path config = Files.createTempFile(folder, "sentinel", ".conf");
        Files.writeString(config, "sentinel monitor dq 127.0.0.1 " + master.port + " 1\n");
        List<String> all = new ArrayList<>(List.of(config.toString(), "--sentinel"));
        all.addAll(List.of(options));
        if (!all.contains("--tls-port")) {
            all.addAll(List.of("--port", "{port}"));
        }
        return new ServerProcess(folder, all);
    }

    /** A certificate of its own for 127.0.0.1: the options with which a server uses it. */
    static String[] tls(Path folder) throws Exception {
        String certificate = folder.resolve("certificate.pem").toString();
        String key = folder.resolve("key.pem").toString();
        ProcessBuilder openssl = new ProcessBuilder(
                        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD);
        try {
            if (openssl.start().waitFor() != 0) {
                throw new IllegalStateException("openssl makes no certificate");
            }
        } catch (IOException error) {
            Assumptions.abort("no openssl here");
        }
        return new String[] {
            "--port", "0", "--tls-port", "{port}", "--tls-cert-file", certificate, "--tls-key-file", key,
            "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no", "--tls-replication", "yes"
        };
    }

    /** Asks without TLS. The answer's first line; nothing of a server that ends its clients, as it does in a failover. */
    String ask(String words) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout((int) TimeUnit.SECONDS.toMillis(PATIENCE_S));
            socket.getOutputStream().write((words + "\r\n").getBytes(StandardCharsets.UTF_8));
            byte[] some = new byte[4096];
            int length = socket.getInputStream().read(some);
            return new String(some, 0, Math.max(0, length), StandardCharsets.UTF_8);
        } catch (SocketException error) {
            return "";
        }
    }

    interface Condition {
        boolean isSo() throws Exception;
    }

    static void until(Condition condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
        while (!condition.isSo()) {
            if (System.nanoTime() - end > 0) {
                throw new IOException("it did not come true");
            }
            Thread.sleep(10);
        }
    }

    private boolean isThere() throws IOException {
        if (!process.isAlive()) {
            String said = Files.readString(log());
            Assumptions.assumeFalse(said.contains("tls-port"), "this server was built without TLS");
            throw new IllegalStateException("the server ended:\n" + said);
        }
        try (Socket socket = new Socket("127.0.0.1", port)) {
            return socket.isConnected();
        } catch (IOException error) {
            return false;
        }
    }

    private Path log() {
        return folder.resolve("log");
    }

    private static boolean isFree(int port) {
        try {
            new ServerSocket(port).close();
            return true;
        } catch (IOException taken) {
            return false;
        }
    }

    /** Below those that the system gives to outgoing connections, with one for the cluster bus 10,000 above it. */
    private static int freePort() {
        for (int tries = 0; tries < 200; tries++) {
            int port = ThreadLocalRandom.current().nextInt(12_000, 21_000);
            if (isFree(port) && isFree(port + 10_000)) {
                return port;
            }
        }
        throw new IllegalStateException("no free port");
    }

    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}

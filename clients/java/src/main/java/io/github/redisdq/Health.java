package io.github.redisdq;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Shows a supervisor whether a worker is healthy: by HTTP, or by a file whose time is set. */
final class Health {
    private static final Pattern ADDRESS = Pattern.compile("([^/\\\\]*):(\\d+)");

    private final Supplier<String> trouble;
    private final String place;
    private final CountDownLatch stopped = new CountDownLatch(1);
    private HttpServer server;

    /** {@code trouble}: why the worker is not healthy, or null. */
    Health(Supplier<String> trouble, String place) {
        this.trouble = trouble;
        this.place = place;
    }

    /** Throws a {@link ConfigurationException} if the address or the file cannot be used. */
    void start() {
        Matcher address = ADDRESS.matcher(place);
        try {
            if (address.matches()) {
                serve(address.group(1), Integer.parseInt(address.group(2)));
            } else {
                touchEachSecond(Path.of(place));
            }
        } catch (IOException | IllegalArgumentException error) {
            throw new ConfigurationException("health cannot be shown at " + place + ": " + Guard.text(error), error);
        }
    }

    private void serve(String host, int port) throws IOException {
        InetSocketAddress at = host.isEmpty() ? new InetSocketAddress(port) : new InetSocketAddress(host, port);
        server = HttpServer.create(at, 0);
        server.createContext("/", this::answer);
        server.start();
    }

    private void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            String why = trouble.get();
            byte[] text = (why == null ? "ok\n" : why + "\n").getBytes(StandardCharsets.UTF_8);
            boolean isHead = exchange.getRequestMethod().equals("HEAD");
            exchange.sendResponseHeaders(why == null ? 200 : 503, isHead ? -1 : text.length);
            if (!isHead) {
                exchange.getResponseBody().write(text);
            }
        }
    }

    private void touchEachSecond(Path file) throws IOException {
        Path folder = file.toAbsolutePath().getParent();
        if (folder == null || !Files.isDirectory(folder) || !Files.isWritable(folder)) {
            throw new IOException("no file can be made in " + folder);
        }
        Thread thread = new Thread(() -> Guard.call(() -> {
            do {
                if (trouble.get() == null) {
                    Guard.call(() -> touch(file));
                }
            } while (!stopped.await(1, TimeUnit.SECONDS));
        }), "dq-health");
        thread.setDaemon(true);
        thread.start();
    }

    private static void touch(Path file) throws IOException {
        if (Files.exists(file)) {
            Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
        } else {
            Files.createFile(file);
        }
    }

    void stop() {
        stopped.countDown();
        if (server != null) {
            server.stop(0);
        }
    }
}

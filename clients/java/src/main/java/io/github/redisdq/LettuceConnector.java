package io.github.redisdq;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.ConnectionFuture;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisConnectionStateListener;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import java.lang.reflect.Method;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.WeakHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Reaches a server, a master behind Sentinels, or a cluster, by Lettuce. It uses the resources and settings of your
 * client, which you shut down yourself.
 */
public final class LettuceConnector implements Connector {
    private static final Duration LONGEST_LOOK = Duration.ofSeconds(5);

    private final RedisClient lines;
    private final Function<byte[], RedisURI> address;
    private final Function<byte[], Object> place;
    private final Supplier<StatefulConnection<byte[], byte[]>> open;
    private final Map<Object, SocketAddress> servers = Collections.synchronizedMap(new WeakHashMap<>()); // by connection
    private StatefulConnection<byte[], byte[]> shared;

    private LettuceConnector(
            RedisClient lines,
            Function<byte[], RedisURI> address,
            Function<byte[], Object> place,
            Supplier<StatefulConnection<byte[], byte[]>> open) {
        this.lines = lines;
        this.address = address;
        this.place = place;
        this.open = open;
        lines.addListener(new RedisConnectionStateListener() {
            @Override
            public void onRedisConnected(RedisChannelHandler<?, ?> connection, SocketAddress server) {
                servers.put(connection, server);
            }
        });
    }

    /** A single server, or the master that the Sentinels of a URI name. */
    public static LettuceConnector of(RedisClient client, RedisURI uri) {
        RedisClient lines = RedisClient.create(client.getResources(), uri);
        lines.setOptions(raw(client.getOptions()));
        Object place = uri.getSentinels().isEmpty()
                ? List.of(String.valueOf(uri.getSocket()), String.valueOf(uri.getHost()), uri.getPort(), uri.getDatabase())
                : lines;
        return new LettuceConnector(lines, key -> uri, key -> place, () -> lines.connect(ByteArrayCodec.INSTANCE, uri));
    }

    /** A cluster. */
    public static LettuceConnector cluster(RedisClusterClient client) {
        RedisClient lines = RedisClient.create(client.getResources());
        lines.setOptions(raw(client.getOptions()));
        Supplier<StatefulConnection<byte[], byte[]>> open = () -> client.connect(ByteArrayCodec.INSTANCE);
        Optional<RedisURI> first = firstOf(client);
        Function<byte[], RedisURI> address = key -> {
            RedisURI node = nodeOf(client, key).getUri();
            return first.map(it -> RedisURI.builder(it).withHost(node.getHost()).withPort(node.getPort()).build()).orElse(node);
        };
        return new LettuceConnector(lines, address, key -> List.of(lines, SlotHash.getSlot(key)), open);
    }

    /**
     * The URI that the client was made with: the addresses of the nodes that it found have no user, password or TLS.
     * The client's own connections get these by the same protected method. If a Lettuce does not have it, nodes are
     * reached as they are named.
     */
    private static Optional<RedisURI> firstOf(RedisClusterClient client) {
        try {
            Method initial = RedisClusterClient.class.getDeclaredMethod("getInitialUris");
            initial.setAccessible(true);
            return Optional.of((RedisURI) ((Iterable<?>) initial.invoke(client)).iterator().next());
        } catch (ReflectiveOperationException | RuntimeException absent) {
            return Optional.empty();
        }
    }

    /**
     * The node of a key by the cluster's current state, as a slot may have moved; if no node answers, by the last known
     * one.
     */
    private static RedisClusterNode nodeOf(RedisClusterClient client, byte[] key) {
        try {
            client.refreshPartitionsAsync().toCompletableFuture().get(LONGEST_LOOK.toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException | TimeoutException error) {
            // the connection will report it
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        RedisClusterNode node = client.getPartitions().getPartitionBySlot(SlotHash.getSlot(key));
        if (node == null) {
            throw new DqException("no node has the slot of " + Bytes.text(key));
        }
        return node;
    }

    /** Options of a connection that does not reconnect, and on which only our own timeouts count. */
    private static ClientOptions raw(ClientOptions options) {
        return ClientOptions.builder()
                .socketOptions(options.getSocketOptions())
                .sslOptions(options.getSslOptions())
                .autoReconnect(false)
                .protocolVersion(ProtocolVersion.RESP2)
                .timeoutOptions(TimeoutOptions.builder().timeoutCommands(false).build())
                .build();
    }

    @Override
    public List<Object> call(List<byte[][]> commands, Duration patience) {
        if (patience != null) { // it may wait, and would hold up the others
            return commands.stream().map(words -> alone(words, patience)).toList();
        }
        StatefulConnection<byte[], byte[]> connection = shared();
        try {
            return exchange(new LettuceLine(connection, connection.getTimeout()), commands);
        } catch (DqException error) {
            connection.closeAsync(); // the next call makes another one
            throw error;
        }
    }

    @Override
    public List<Object> callAt(byte[] key, List<byte[][]> commands) {
        if (!(shared() instanceof StatefulRedisClusterConnection<byte[], byte[]> cluster)) {
            return call(commands, null);
        }
        RedisClusterNode node = cluster.getPartitions().getPartitionBySlot(SlotHash.getSlot(key));
        try {
            StatefulConnection<byte[], byte[]> there = cluster.getConnection(node.getNodeId());
            return exchange(new LettuceLine(there, there.getTimeout()), commands);
        } catch (RedisException error) {
            throw unreachable(error);
        }
    }

    private Object alone(byte[][] words, Duration patience) {
        Line line = connect(Connector.keyOf(words), patience);
        try {
            return exchange(line, Collections.singletonList(words)).get(0);
        } finally {
            line.cut();
        }
    }

    private static List<Object> exchange(Line line, List<byte[][]> commands) {
        line.send(commands);
        List<Object> replies = new ArrayList<>(commands.size());
        while (replies.size() < commands.size()) {
            replies.add(line.read());
        }
        return replies;
    }

    private synchronized StatefulConnection<byte[], byte[]> shared() {
        if (shared == null || !shared.isOpen()) {
            shared = opened(open);
        }
        return shared;
    }

    @Override
    public Line connect(byte[] key, Duration patience) {
        RedisURI uri = address.apply(key);
        return new LettuceLine(opened(() -> within(patience, lines.connectAsync(ByteArrayCodec.INSTANCE, uri))), patience);
    }

    private static <T extends StatefulConnection<byte[], byte[]>> T within(Duration patience, ConnectionFuture<T> connecting) {
        Runnable otherwise = () -> connecting.thenAccept(StatefulConnection::closeAsync);
        return Await.connection(
                connecting.toCompletableFuture(), Await.connecting(patience), LettuceConnector::unreachable, otherwise);
    }

    private static StatefulConnection<byte[], byte[]> opened(Supplier<StatefulConnection<byte[], byte[]>> open) {
        try {
            return open.get();
        } catch (RedisException error) {
            throw unreachable(error);
        }
    }

    @Override
    public Object place(byte[] key) {
        return place.apply(key);
    }

    @Override
    public synchronized void close() {
        if (shared != null) {
            shared.close();
        }
        lines.shutdown(Duration.ZERO, Duration.ofSeconds(2));
    }

    /** Turns an error of connecting into the server's own, such as a wrong password, or the network's. */
    private static DqException unreachable(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof RedisCommandExecutionException said) {
                return new RefusedException(said.getMessage());
            }
        }
        return new DqException(error.getMessage() == null ? error.toString() : error.getMessage(), error);
    }

    private static Object saidOrThrown(Throwable error) {
        if (error instanceof RedisCommandExecutionException said) {
            return new RefusedException(said.getMessage());
        }
        throw unreachable(error);
    }

    private record Name(byte[] getBytes) implements ProtocolKeyword {
        @Override
        @SuppressWarnings("deprecation") // needed by Lettuce before 6.6
        public String name() {
            return new String(getBytes, StandardCharsets.US_ASCII).toLowerCase(Locale.ROOT); // in capitals it knows MULTI
        }
    }

    private static AsyncCommand<byte[], byte[], Object> command(byte[][] words) {
        CommandArgs<byte[], byte[]> arguments = new CommandArgs<>(ByteArrayCodec.INSTANCE);
        int key = Connector.keyAt(words);
        for (int at = 1; at < words.length; at++) {
            if (at == key) {
                arguments.addKey(words[at]);
            } else {
                arguments.add(words[at]);
            }
        }
        return new AsyncCommand<>(new Command<>(new Name(words[0]), new Answer(), arguments));
    }

    /** Any reply of the server: null, Long, byte[], or lists of these. */
    private static final class Answer extends CommandOutput<byte[], byte[], Object> {
        private record Part(int size, List<Object> items) {}

        private final Deque<Part> parts = new ArrayDeque<>();

        Answer() {
            super(ByteArrayCodec.INSTANCE, null);
        }

        @Override
        public void set(ByteBuffer bytes) {
            put(bytes == null ? null : ByteArrayCodec.INSTANCE.decodeValue(bytes));
        }

        @Override
        public void set(long number) {
            put(number);
        }

        @Override
        public void multi(int size) {
            if (size < 0) {
                put(null);
                return;
            }
            parts.push(new Part(size, new ArrayList<>(size)));
            endFull();
        }

        private void put(Object item) {
            if (parts.isEmpty()) {
                output = item;
            } else {
                parts.peek().items.add(item);
                endFull();
            }
        }

        private void endFull() {
            while (!parts.isEmpty() && parts.peek().items.size() == parts.peek().size) {
                put(parts.pop().items);
            }
        }
    }

    private final class LettuceLine implements Line {
        private final StatefulConnection<byte[], byte[]> connection;
        private final Duration patience;
        private final Deque<AsyncCommand<byte[], byte[], Object>> asked = new ArrayDeque<>();

        LettuceLine(StatefulConnection<byte[], byte[]> connection, Duration patience) {
            this.connection = connection;
            this.patience = patience;
        }

        @Override
        public void send(List<byte[][]> commands) {
            List<AsyncCommand<byte[], byte[], Object>> made = commands.stream().map(LettuceConnector::command).toList();
            asked.addAll(made);
            try {
                connection.dispatch(made);
            } catch (RedisException error) {
                throw unreachable(error);
            }
        }

        @Override
        public void part(List<byte[][]> commands) {
            connection.dispatch(commands.stream().map(LettuceConnector::command).toList());
        }

        @Override
        public Object read() {
            return Await.answer(asked.removeFirst(), patience, LettuceConnector::saidOrThrown);
        }

        @Override
        public Object server() {
            return servers.get(connection);
        }

        @Override
        public void cut() {
            connection.closeAsync();
            asked.forEach(each -> each.cancel(true));
        }
    }
}

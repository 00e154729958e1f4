package io.github.redisdq;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.IntStream;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.SslOptions;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisAskDataException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.providers.ClusterConnectionProvider;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.providers.PooledConnectionProvider;
import redis.clients.jedis.providers.SentineledConnectionProvider;
import redis.clients.jedis.util.JedisClusterCRC16;
import redis.clients.jedis.util.JedisURIHelper;

/** Reaches a server, a master behind Sentinels, or a cluster, by Jedis. */
public final class JedisConnector implements Connector {
    private static final int MOST_REDIRECTIONS = 5;
    private static final int AT_A_TIME = 1000;
    private static final String ENCODED = "write redis://user:password@host:6379/0, with %XX for special characters";

    private final ConnectionProvider provider;
    private final JedisClientConfig config;
    private final Function<byte[], HostAndPort> address;
    private final Function<byte[], Object> place;

    private JedisConnector(
            ConnectionProvider provider,
            JedisClientConfig config,
            Function<byte[], HostAndPort> address,
            Function<byte[], Object> place) {
        this.provider = provider;
        this.config = config;
        this.address = address;
        this.place = place;
    }

    /** A single server at {@code redis://user:password@host:6379/0}, or {@code rediss://} with TLS. */
    public static JedisConnector of(URI uri) {
        if (uri.getHost() == null) {
            throw new IllegalArgumentException("url: no host is in it; " + ENCODED);
        }
        DefaultJedisClientConfig.Builder builder = DefaultJedisClientConfig.builder()
                .user(JedisURIHelper.getUser(uri))
                .password(JedisURIHelper.getPassword(uri))
                .database(database(uri));
        if (JedisURIHelper.isRedisSSLScheme(uri)) {
            builder.sslOptions(SslOptions.defaults());
        }
        int port = uri.getPort() < 0 ? Protocol.DEFAULT_PORT : uri.getPort();
        return of(new HostAndPort(uri.getHost(), port), builder.build());
    }

    /** The URL read; what is wrong in it is told without it, for a password is in it. */
    static URI uri(String url) {
        try {
            return new URI(url);
        } catch (URISyntaxException error) {
            throw new IllegalArgumentException("url: " + error.getReason() + " at index " + error.getIndex() + "; " + ENCODED);
        }
    }

    private static int database(URI uri) {
        try {
            return JedisURIHelper.getDBIndex(uri);
        } catch (NumberFormatException error) { // which quotes what may be a password
            throw new IllegalArgumentException("url: the database is not a number; " + ENCODED);
        }
    }

    /** A single server. */
    public static JedisConnector of(HostAndPort server, JedisClientConfig config) {
        JedisClientConfig plain = resp2(config);
        Object place = List.of(server, config.getDatabase(), String.valueOf(config.getUser()));
        return new JedisConnector(new PooledConnectionProvider(server, plain), plain, key -> server, key -> place);
    }

    /** The master that the Sentinels name. */
    public static JedisConnector sentinel(
            String master, JedisClientConfig config, Set<HostAndPort> sentinels, JedisClientConfig sentinelConfig) {
        JedisClientConfig plain = resp2(config);
        var provider = new SentineledConnectionProvider(master, plain, sentinels, sentinelConfig);
        return new JedisConnector(provider, plain, key -> provider.getCurrentMaster(), key -> provider);
    }

    /** A cluster, by some of its nodes. */
    public static JedisConnector cluster(Set<HostAndPort> nodes, JedisClientConfig config) {
        JedisClientConfig plain = resp2(config);
        var provider = new ClusterConnectionProvider(nodes, plain);
        return new JedisConnector(
                provider,
                plain,
                key -> provider.getNode(JedisClusterCRC16.getSlot(key)),
                key -> List.of(provider, JedisClusterCRC16.getSlot(key)));
    }

    /** RESP2, in which the server never sends unasked, and maps are lists; without HELLO, which some servers do not know. */
    private static JedisClientConfig resp2(JedisClientConfig config) {
        DefaultJedisClientConfig.Builder builder;
        try {
            builder = DefaultJedisClientConfig.builder().from(config);
        } catch (NoSuchMethodError before6) {
            if (config.getRedisProtocol() == RedisProtocol.RESP3) {
                throw before6;
            }
            return config;
        }
        try {
            return builder.serverDefaultProtocol().build();
        } catch (NoSuchMethodError before8) {
            return builder.protocol(null).build();
        }
    }

    @Override
    public List<Object> call(List<byte[][]> commands, Duration patience) {
        Map<HostAndPort, List<Integer>> nodes = new LinkedHashMap<>();
        for (int at = 0; at < commands.size(); at++) {
            nodes.computeIfAbsent(address.apply(Connector.keyOf(commands.get(at))), node -> new ArrayList<>()).add(at);
        }
        Object[] replies = new Object[commands.size()];
        for (List<Integer> group : nodes.values()) {
            for (int from = 0; from < group.size(); from += AT_A_TIME) {
                List<Integer> some = group.subList(from, Math.min(group.size(), from + AT_A_TIME));
                exchange(Connector.keyOf(commands.get(some.get(0))), commands, some, patience, replies);
            }
        }
        for (int at = 0; at < replies.length; at++) {
            if (replies[at] instanceof Redirected redirected) {
                replies[at] = follow(commands.get(at), redirected);
            }
        }
        return new ArrayList<>(Arrays.asList(replies));
    }

    @Override
    public List<Object> callAt(byte[] key, List<byte[][]> commands) {
        Object[] replies = new Object[commands.size()];
        exchange(key, commands, IntStream.range(0, replies.length).boxed().toList(), null, replies);
        return Arrays.asList(replies);
    }

    private void exchange(byte[] key, List<byte[][]> commands, List<Integer> which, Duration patience, Object[] replies) {
        try (Connection connection = connectionFor(key)) {
            if (patience != null) {
                connection.setSoTimeout((int) patience.toMillis());
            }
            for (int at : which) {
                write(connection, commands.get(at));
            }
            for (int at : which) {
                replies[at] = answer(connection);
            }
            if (patience != null) {
                connection.setSoTimeout(config.getSocketTimeoutMillis());
            }
        } catch (JedisException error) {
            throw unreachable(error);
        }
    }

    private Connection connectionFor(byte[] key) {
        return provider instanceof ClusterConnectionProvider cluster
                ? cluster.getConnectionFromSlot(JedisClusterCRC16.getSlot(key))
                : provider.getConnection();
    }

    private Object follow(byte[][] words, Redirected where) {
        Object reply = where;
        for (int times = 0; times < MOST_REDIRECTIONS && reply instanceof Redirected to; times++) {
            var cluster = (ClusterConnectionProvider) provider;
            if (!to.isAsking) {
                cluster.renewSlotCache();
            }
            try (Connection connection = cluster.getConnection(to.target)) {
                if (to.isAsking) {
                    connection.sendCommand(Protocol.Command.ASKING);
                    connection.getOne();
                }
                write(connection, words);
                reply = answer(connection);
            } catch (JedisException error) {
                throw unreachable(error);
            }
        }
        return reply;
    }

    @Override
    public Line connect(byte[] key, Duration patience) {
        if (provider instanceof ClusterConnectionProvider) {
            Object length = call(Collections.singletonList(new Words("DQ.LEN").add(key).all()), null).get(0); // follows a slot that moved
            if (length instanceof RefusedException error) {
                throw error;
            }
        }
        try {
            HostAndPort server = address.apply(key);
            Flushed connection = new Flushed(server, config);
            connection.connect();
            connection.setSoTimeout((int) patience.toMillis());
            return new JedisLine(connection, server);
        } catch (JedisException error) {
            throw unreachable(error);
        }
    }

    @Override
    public Object place(byte[] key) {
        return place.apply(key);
    }

    @Override
    public void close() {
        try {
            provider.close();
        } catch (Exception error) {
            throw new DqException("cannot close", error);
        }
    }

    private static ProtocolCommand command(byte[][] words) {
        return () -> words[0];
    }

    private static void write(Connection connection, byte[][] words) {
        connection.sendCommand(command(words), Arrays.copyOfRange(words, 1, words.length));
    }

    private static Object answer(Connection connection) {
        try {
            Object reply = connection.getOne();
            return reply instanceof List<?> list && holdsError(list)
                    ? list.stream().map(each -> each instanceof JedisDataException error ? said(error) : each).toList()
                    : reply;
        } catch (JedisMovedDataException moved) {
            return new Redirected(moved.getMessage(), moved.getTargetNode(), false);
        } catch (JedisAskDataException ask) {
            return new Redirected(ask.getMessage(), ask.getTargetNode(), true);
        } catch (JedisDataException error) {
            return said(error);
        }
    }

    /** An EXEC's reply may. A loop: a stream would make a worker's first job wait until the JVM has made its class. */
    private static boolean holdsError(List<?> replies) {
        for (Object each : replies) {
            if (each instanceof JedisDataException) {
                return true;
            }
        }
        return false;
    }

    /** To a client without password the server refuses long commands as breaches of the protocol. */
    private static RefusedException said(JedisDataException error) {
        String text = String.valueOf(error.getMessage());
        return new RefusedException(text.contains("Protocol error: unauthenticated") ? "NOAUTH Authentication required." : text);
    }

    /** Turns an error of connecting into the server's own, such as a wrong password, or the network's. */
    private static DqException unreachable(JedisException error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof JedisDataException said) {
                return said(said);
            }
        }
        return new DqException(error.getMessage() == null ? error.toString() : error.getMessage(), error);
    }

    private static final class Redirected extends RefusedException {
        final HostAndPort target;
        final boolean isAsking;

        Redirected(String message, HostAndPort target, boolean isAsking) {
            super(message);
            this.target = target;
            this.isAsking = isAsking;
        }
    }

    /** A connection that can be written without a read. */
    private static final class Flushed extends Connection {
        Flushed(HostAndPort server, JedisClientConfig config) {
            super(server, config);
        }

        void write(List<byte[][]> commands) {
            commands.forEach(words -> JedisConnector.write(this, words));
            flush();
        }
    }

    private record JedisLine(Flushed connection, HostAndPort server) implements Line {
        @Override
        public void send(List<byte[][]> commands) {
            try {
                connection.write(commands);
            } catch (JedisException error) {
                throw unreachable(error);
            }
        }

        @Override
        public Object read() {
            try {
                return answer(connection);
            } catch (JedisException error) {
                throw unreachable(error);
            }
        }

        @Override
        public void cut() {
            try {
                forceDisconnect();
            } catch (IOException | JedisException error) {
                // it is closed all the same
            }
        }

        private void forceDisconnect() throws IOException {
            try {
                connection.forceDisconnect();
            } catch (NoSuchMethodError older) { // Jedis before 7, as Spring Boot 3 has it
                connection.disconnect();
            }
        }
    }
}

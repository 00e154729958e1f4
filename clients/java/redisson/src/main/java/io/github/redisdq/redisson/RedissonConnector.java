package io.github.redisdq.redisson;

import io.github.redisdq.ConfigurationException;
import io.github.redisdq.Connector;
import io.github.redisdq.DqException;
import io.github.redisdq.Internals;
import io.github.redisdq.RefusedException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.redisson.Redisson;
import org.redisson.RedissonShutdownException;
import org.redisson.api.NodeType;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisClient;
import org.redisson.client.RedisConnection;
import org.redisson.client.RedisException;
import org.redisson.client.RedisRedirectException;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.protocol.CommandData;
import org.redisson.client.protocol.CommandsData;
import org.redisson.client.protocol.RedisCommand;
import org.redisson.client.protocol.decoder.MultiDecoder;
import org.redisson.command.CommandAsyncExecutor;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;
import org.redisson.connection.ConnectionManager;
import redis.clients.jedis.util.JedisClusterCRC16;

/**
 * Reaches a server, a master behind Sentinels, or a cluster, by Redisson: it uses the servers that your client knows,
 * its settings and its threads, on connections of our own. Redisson's connections would send a command again whose
 * reply was lost.
 */
public final class RedissonConnector implements Connector {
    private static final Pattern SERVERS = Pattern.compile("[A-Z][A-Z0-9]{2,}( .*|$)", Pattern.DOTALL);

    private static final Map<RedissonClient, RedissonConnector> CONNECTORS = new HashMap<>();
    private static final MultiDecoder<Object> LISTS = (parts, state) -> new ArrayList<>(parts);

    private final RedissonClient client;
    private final CommandAsyncExecutor executor;
    private final Map<String, Own> shared = new HashMap<>();
    private final Map<String, Deque<Own>> idle = new HashMap<>(); // of calls that waited

    private RedissonConnector(RedissonClient client, CommandAsyncExecutor executor) {
        this.client = client;
        this.executor = executor;
    }

    /** A connector by a client that {@code Redisson.create} made, which you shut down yourself. */
    public static RedissonConnector of(RedissonClient client) {
        if (client instanceof Redisson redisson) {
            checkDatabase(client.getConfig());
            return new RedissonConnector(client, redisson.getCommandExecutor());
        }
        throw new IllegalArgumentException("expected a client made by Redisson.create, not " + client);
    }

    /**
     * Refuses a database in an address: Redisson takes only host and port from it, so jobs would silently be in
     * database 0.
     */
    private static void checkDatabase(Config config) {
        if (!config.isSingleConfig()) {
            return;
        }
        SingleServerConfig single = config.useSingleServer();
        boolean isPath = single.getAddress().contains("uds:");
        String database = isPath ? "" : single.getAddress().replaceFirst("^\\w+://[^/]*/?", "");
        if (!database.isEmpty() && !database.equals(String.valueOf(single.getDatabase()))) {
            throw new ConfigurationException(
                    "Redisson ignores the database of an address, /" + database + ": say setDatabase(" + database + ") instead");
        }
    }

    /** The connector of all queues of a client, which ends with the client. */
    static RedissonConnector sharedBy(RedissonClient client) {
        synchronized (CONNECTORS) {
            CONNECTORS.keySet().removeIf(RedissonClient::isShutdown);
            return CONNECTORS.computeIfAbsent(client, RedissonConnector::of);
        }
    }

    /** A connection of our own, which is not opened again when it is lost: Redisson would do so silently. */
    private static final class Own {
        private final RedisClient client;
        private final RedisConnection connection;
        private final Set<CompletableFuture<Object>> pending = ConcurrentHashMap.newKeySet();
        private volatile boolean isLost;

        Own(RedisClient client, RedisConnection connection) {
            this.client = client;
            this.connection = connection;
            connection.getChannel().closeFuture().addListener(closed -> lose());
        }

        private void lose() {
            isLost = true;
            end();
            pending.forEach(each -> each.completeExceptionally(new RedisException("the connection was lost")));
        }

        CompletableFuture<Object> promise() {
            CompletableFuture<Object> answer = new CompletableFuture<>();
            pending.add(answer);
            answer.whenComplete((reply, error) -> pending.remove(answer));
            if (isLost) {
                lose();
            }
            return answer;
        }

        boolean isAlive() {
            return !isLost && connection.isActive() && !client.isShutdown();
        }

        void end() {
            client.shutdownAsync();
        }
    }

    @Override
    public List<Object> call(List<byte[][]> commands, Duration patience) {
        if (patience != null) { // it may wait, and would hold up the others
            return commands.stream().map(words -> alone(words, patience)).toList();
        }
        Duration limit = Duration.ofMillis(node(Connector.keyOf(commands.get(0))).getCommandTimeout());
        Map<RedissonLine, List<Integer>> lines = new LinkedHashMap<>();
        Map<String, RedissonLine> byNode = new HashMap<>();
        for (int at = 0; at < commands.size(); at++) {
            RedisClient node = node(Connector.keyOf(commands.get(at)));
            RedissonLine line = byNode.computeIfAbsent(name(node), it -> new RedissonLine(shared(node), limit));
            lines.computeIfAbsent(line, it -> new ArrayList<>()).add(at);
        }
        lines.forEach((line, places) -> line.send(places.stream().map(commands::get).toList()));
        Object[] replies = new Object[commands.size()];
        lines.forEach((line, places) -> places.forEach(at -> replies[at] = answer(line, commands.get(at))));
        return Arrays.asList(replies);
    }

    @Override
    public List<Object> callAt(byte[] key, List<byte[][]> commands) {
        RedisClient node = node(key);
        RedissonLine line = new RedissonLine(shared(node), Duration.ofMillis(node.getCommandTimeout()));
        line.send(commands);
        return commands.stream().map(words -> answer(line, words)).toList();
    }

    private Object answer(RedissonLine line, byte[][] words) {
        try {
            Object reply = line.read();
            boolean isElsewhere = reply instanceof RefusedException error && String.valueOf(error.getMessage()).matches("(MOVED|ASK).*");
            return isElsewhere ? redirected(words) : reply;
        } catch (DqException error) {
            line.cut(); // the next call makes another one
            throw error;
        }
    }

    /** Sends a command again that the server redirected, and so did not execute: Redisson finds the node. */
    private Object redirected(byte[][] words) {
        CompletableFuture<Object> answer = executor
                .<Object, Object>writeAsync(Connector.keyOf(words), ByteArrayCodec.INSTANCE, command(words), rest(words))
                .toCompletableFuture();
        return ours(Internals.answer(answer, Duration.ZERO, RedissonConnector::saidOrThrown));
    }

    private Object alone(byte[][] words, Duration patience) {
        RedisClient node = node(Connector.keyOf(words));
        Own own = unused(node, patience);
        Line line = new RedissonLine(own, patience);
        boolean isWhole = false;
        try {
            line.send(List.<byte[][]>of(words));
            Object reply = line.read();
            isWhole = true;
            return reply;
        } finally {
            if (isWhole) {
                keep(node, own);
            } else {
                line.cut();
            }
        }
    }

    private Own unused(RedisClient node, Duration patience) {
        synchronized (this) {
            Deque<Own> some = idle.getOrDefault(name(node), new ArrayDeque<>());
            while (!some.isEmpty()) {
                Own own = some.pop();
                if (own.isAlive()) {
                    return own;
                }
                own.end();
            }
        }
        return open(node, patience);
    }

    private synchronized void keep(RedisClient node, Own own) {
        idle.computeIfAbsent(name(node), it -> new ArrayDeque<>()).push(own);
    }

    private static String name(RedisClient node) {
        return String.valueOf(node.getAddr());
    }

    private synchronized Own shared(RedisClient node) {
        Own own = shared.get(name(node));
        if (own == null || !own.isAlive()) {
            if (own != null) {
                own.end();
            }
            own = open(node, Duration.ZERO);
            shared.put(name(node), own);
        }
        return own;
    }

    /** The master that has the key, as far as the client knows. */
    private RedisClient node(byte[] key) {
        try {
            ConnectionManager manager = executor.getConnectionManager();
            return manager.getWriteEntry(manager.calcSlot(key)).getClient();
        } catch (RedisException | NullPointerException | CompletionException error) {
            throw unreachable(error); // null: no node has the slot; the last one: another thread's attempt to connect failed
        }
    }

    @Override
    public Line connect(byte[] key, Duration patience) {
        return new RedissonLine(open(node(key), patience), patience);
    }

    /** Opens a connection without Redisson's pings, which would wait behind a BPOP, and then end the connection. */
    private Own open(RedisClient node, Duration patience) {
        RedisClient own = executor.getConnectionManager()
                .createClient(NodeType.MASTER, node.getAddr(), node.getConfig().getAddress(), node.getConfig().getSslHostname());
        own.getConfig().setPingConnectionInterval(Integer.MAX_VALUE); // 0 is read too late
        CompletableFuture<RedisConnection> connecting = own.connectAsync().toCompletableFuture();
        Duration limit = Internals.connecting(patience);
        return new Own(own, Internals.connection(connecting, limit, RedissonConnector::unreachable, own::shutdownAsync));
    }

    @Override
    public Object place(byte[] key) {
        return List.of(client, client.getConfig().isClusterConfig() ? JedisClusterCRC16.getSlot(key) : 0);
    }

    @Override
    public synchronized void close() {
        shared.values().forEach(Own::end);
        shared.clear();
        idle.values().forEach(some -> some.forEach(Own::end));
        idle.clear();
    }

    /** Turns an error of connecting into the server's own, such as a wrong password, or the network's. */
    private static DqException unreachable(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            RefusedException said = said(each);
            if (said != null) {
                return said;
            }
        }
        return new DqException(error.getMessage() == null ? error.toString() : error.getMessage(), error);
    }

    private static RefusedException saidOrThrown(Throwable error) {
        RefusedException said = said(error);
        if (said != null) {
            return said;
        }
        throw unreachable(error);
    }

    /** The server's error, without the text that Redisson appends; null if the error is Redisson's own. */
    private static RefusedException said(Throwable error) {
        if (error instanceof RedisRedirectException moved) {
            return new RefusedException("MOVED " + moved.getSlot() + " " + moved.getUrl());
        }
        String text = error instanceof RedisException ? String.valueOf(error.getMessage()) : "";
        int end = text.indexOf(". channel: ");
        boolean isServers = end >= 0 && SERVERS.matcher(text).matches() && !(error instanceof RedissonShutdownException);
        return isServers ? new RefusedException(text.substring(0, end)) : null;
    }

    private static RedisCommand<Object> command(byte[][] words) {
        return new RedisCommand<>(new String(words[0], StandardCharsets.US_ASCII), LISTS);
    }

    private static Object[] rest(byte[][] words) {
        return Arrays.copyOfRange(words, 1, words.length, Object[].class);
    }

    /** Redisson turns an OK into a String; this turns it back into bytes. */
    private static Object ours(Object reply) {
        return reply instanceof String text ? text.getBytes(StandardCharsets.UTF_8) : reply;
    }

    private static final class RedissonLine implements Line {
        private final Own own;
        private final Duration patience;
        private final Deque<CompletableFuture<Object>> asked = new ArrayDeque<>();

        RedissonLine(Own own, Duration patience) {
            this.own = own;
            this.patience = patience;
        }

        @Override
        public void send(List<byte[][]> commands) {
            List<CommandData<?, ?>> made = new ArrayList<>();
            List<CompletableFuture<Object>> answers = new ArrayList<>();
            for (byte[][] words : commands) {
                CompletableFuture<Object> answer = own.promise();
                answers.add(answer);
                made.add(new CommandData<>(answer, ByteArrayCodec.INSTANCE, command(words), rest(words)));
            }
            asked.addAll(answers);
            CompletableFuture<Void> all = new CompletableFuture<>();
            all.whenComplete((nothing, error) -> fail(answers, error));
            own.connection.send(new CommandsData(all, made, false, false)).addListener(sent -> fail(answers, sent.cause()));
        }

        private static void fail(List<CompletableFuture<Object>> answers, Throwable error) {
            if (error != null) {
                answers.forEach(each -> each.completeExceptionally(error));
            }
        }

        @Override
        public Object server() {
            return own.client.getAddr();
        }

        @Override
        public Object read() {
            return ours(Internals.answer(asked.removeFirst(), patience, RedissonConnector::saidOrThrown));
        }

        @Override
        public void cut() {
            own.end();
            new ArrayList<>(asked).forEach(each -> each.cancel(true));
        }
    }
}

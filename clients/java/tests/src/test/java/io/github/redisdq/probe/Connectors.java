package io.github.redisdq.probe;

import com.fasterxml.jackson.databind.JsonNode;
import io.github.redisdq.Connector;
import io.github.redisdq.JedisConnector;
import io.github.redisdq.LettuceConnector;
import io.github.redisdq.redisson.RedissonConnector;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import java.net.URI;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SentinelServersConfig;
import org.redisson.config.SingleServerConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;

/** How a client library reaches what an order names. */
final class Connectors {
    private final String client; // jedis, lettuce or redisson
    private final RedisClient lettuce;
    private final Map<String, RedissonClient> redissons = new HashMap<>();

    Connectors(String client) {
        this.client = client;
        lettuce = client.equals("lettuce") ? RedisClient.create() : null;
    }

    private static HostAndPort place(String text) {
        String[] parts = text.replaceFirst(".*(//|@)", "").split(":");
        return new HostAndPort(parts[0], Integer.parseInt(parts[1]));
    }

    private static Optional<String[]> credentials(String url) {
        return Optional.ofNullable(URI.create(url).getUserInfo()).map(user -> user.split(":"));
    }

    private static Connector jedis(JsonNode order) {
        DefaultJedisClientConfig config = DefaultJedisClientConfig.builder().build();
        if (order.hasNonNull("cluster")) {
            String cluster = order.get("cluster").asText();
            return JedisConnector.cluster(Set.of(place(cluster)), credentials(cluster)
                    .map(user -> DefaultJedisClientConfig.builder().user(user[0]).password(user[1]).build())
                    .orElse(config));
        }
        if (order.hasNonNull("sentinels")) {
            Set<HostAndPort> sentinels = new HashSet<>();
            order.get("sentinels").forEach(each -> sentinels.add(place(each.asText())));
            return JedisConnector.sentinel(order.get("master").asText(), config, sentinels, config);
        }
        if (order.path("own").asBoolean()) {
            HostAndPort at = place(order.get("url").asText());
            return JedisConnector.of(at, DefaultJedisClientConfig.builder().build());
        }
        return JedisConnector.of(URI.create(order.get("url").asText()));
    }

    private Connector lettuce(JsonNode order) {
        if (order.hasNonNull("cluster")) {
            return LettuceConnector.cluster(RedisClusterClient.create(order.get("cluster").asText()));
        }
        if (order.hasNonNull("sentinels")) {
            RedisURI.Builder uri = RedisURI.builder().withSentinelMasterId(order.get("master").asText());
            for (JsonNode each : order.get("sentinels")) {
                HostAndPort at = place(each.asText());
                uri.withSentinel(at.getHost(), at.getPort());
            }
            return LettuceConnector.of(lettuce, uri.build());
        }
        return LettuceConnector.of(lettuce, RedisURI.create(order.get("url").asText()));
    }

    /** One connector for each server, as programs have it: a worker on two queues waits for both on one connection. */
    private Connector redisson(JsonNode order) {
        String place = List.of(order.path("cluster"), order.path("sentinels"), order.path("url")).toString();
        return RedissonConnector.of(redissons.computeIfAbsent(place, it -> Redisson.create(settings(order))));
    }

    private static Config settings(JsonNode order) {
        Config config = new Config().setLazyInitialization(true); // the server may not be there yet
        if (order.hasNonNull("cluster")) {
            String cluster = order.get("cluster").asText();
            credentials(cluster).ifPresent(user -> config.setUsername(user[0]).setPassword(user[1]));
            config.useClusterServers().addNodeAddress("redis://" + place(cluster));
        } else if (order.hasNonNull("sentinels")) {
            SentinelServersConfig sentinel = config.useSentinelServers().setMasterName(order.get("master").asText());
            order.get("sentinels").forEach(each -> sentinel.addSentinelAddress("redis://" + each.asText()));
            sentinel.setCheckSentinelsList(false);
        } else {
            String[] url = order.get("url").asText().split("(?<=\\d)/"); // the database is no part of Redisson's addresses
            SingleServerConfig single = config.useSingleServer().setAddress(url[0]).setTimeout(30_000);
            single.setDatabase(url.length == 1 ? 0 : Integer.parseInt(url[1]));
            // when it connects, Redisson waits for one connection after the other
            single.setConnectTimeout(1000).setConnectionMinimumIdleSize(1).setConnectionPoolSize(4);
        }
        return config;
    }

    Connector of(JsonNode order) {
        return switch (client) {
            case "lettuce" -> lettuce(order);
            case "redisson" -> redisson(order);
            default -> jedis(order);
        };
    }
}

package io.github.redisdq.spring;

import io.github.redisdq.ConfigurationException;
import io.github.redisdq.Connector;
import io.github.redisdq.JedisConnector;
import io.github.redisdq.LettuceConnector;
import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import java.util.LinkedHashSet;
import java.util.Set;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisNode;
import org.springframework.data.redis.connection.RedisPassword;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisSocketConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisClientConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.util.ClassUtils;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.RedisProtocol;

/**
 * Reaches the server of the application's connection factory, with its settings, on connections of our own. A worker's
 * fetch waits on its connection, and the factory's are shared or come from a small pool.
 */
final class FactoryConnector {
    private static final String LETTUCE = "org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory";
    private static final String JEDIS = "org.springframework.data.redis.connection.jedis.JedisConnectionFactory";

    private FactoryConnector() {}

    static Connector of(RedisConnectionFactory factory) {
        if (is(factory, LETTUCE)) {
            return Lettuce.connector((LettuceConnectionFactory) factory);
        }
        if (is(factory, JEDIS)) {
            return Jedis.connector((JedisConnectionFactory) factory);
        }
        throw new ConfigurationException("dq needs a connection factory of Lettuce or Jedis, not " + factory.getClass().getName()
                + ": or define a bean of the type io.github.redisdq.Connector");
    }

    /** Whether the factory is of this type; its client library may be missing. */
    private static boolean is(RedisConnectionFactory factory, String type) {
        ClassLoader loader = factory.getClass().getClassLoader();
        return ClassUtils.isPresent(type, loader) && ClassUtils.resolveClassName(type, loader).isInstance(factory);
    }

    private static final class Lettuce {
        static Connector connector(LettuceConnectionFactory factory) {
            AbstractRedisClient client = factory.getRequiredNativeClient();
            if (client instanceof RedisClusterClient cluster) {
                return LettuceConnector.cluster(cluster);
            }
            return LettuceConnector.of((RedisClient) client, uri(factory));
        }

        private static RedisURI uri(LettuceConnectionFactory factory) {
            LettuceClientConfiguration client = factory.getClientConfiguration();
            RedisSocketConfiguration socket = factory.getSocketConfiguration();
            RedisConfiguration server = factory.getStandaloneConfiguration();
            RedisURI.Builder builder;
            if (factory.isRedisSentinelAware()) {
                server = factory.getSentinelConfiguration();
                builder = sentinel(factory.getSentinelConfiguration());
            } else if (socket != null) {
                server = socket;
                builder = RedisURI.Builder.socket(socket.getSocket());
            } else {
                RedisStandaloneConfiguration one = factory.getStandaloneConfiguration();
                builder = RedisURI.builder().withHost(one.getHostName()).withPort(one.getPort());
            }
            authenticate(builder, client, server);
            client.getClientName().ifPresent(builder::withClientName);
            RedisURI uri = builder.withDatabase(factory.getDatabase()).withTimeout(client.getCommandTimeout()).build();
            if (socket == null) {
                secure(uri, client);
                uri.getSentinels().forEach(sentinel -> secure(sentinel, client));
            }
            return uri;
        }

        private static void secure(RedisURI uri, LettuceClientConfiguration client) {
            uri.setSsl(client.isUseSsl());
            uri.setStartTls(client.isStartTls());
            uri.setVerifyPeer(client.getVerifyMode());
        }

        private static void authenticate(RedisURI.Builder builder, LettuceClientConfiguration client, RedisConfiguration server) {
            if (client.getRedisCredentialsProviderFactory().isPresent()) {
                builder.withAuthentication(client.getRedisCredentialsProviderFactory().get().createCredentialsProvider(server));
                return;
            }
            RedisConfiguration.WithAuthentication account = (RedisConfiguration.WithAuthentication) server;
            String user = account.getUsername();
            account.getPassword().toOptional().ifPresent(password -> {
                if (user == null || user.isEmpty()) {
                    builder.withPassword(password);
                } else {
                    builder.withAuthentication(user, password);
                }
            });
        }

        private static RedisURI.Builder sentinel(RedisSentinelConfiguration sentinel) {
            RedisURI.Builder builder = RedisURI.builder().withSentinelMasterId(sentinel.getMaster().getName());
            RedisPassword password = sentinel.getSentinelPassword();
            for (RedisNode node : sentinel.getSentinels()) {
                RedisURI.Builder each = RedisURI.Builder.redis(node.getHost(), node.getPort());
                password.toOptional().ifPresent(it -> {
                    if (sentinel.getSentinelUsername() == null) {
                        each.withPassword(it);
                    } else {
                        each.withAuthentication(sentinel.getSentinelUsername(), it);
                    }
                });
                builder.withSentinel(each.build());
            }
            return builder;
        }
    }

    private static final class Jedis {
        static Connector connector(JedisConnectionFactory factory) {
            JedisClientConfiguration client = factory.getClientConfiguration();
            if (factory.isRedisClusterAware()) {
                var cluster = factory.getClusterConfiguration();
                JedisClientConfig config = config(client, cluster.getUsername(), cluster.getPassword(), 0);
                return JedisConnector.cluster(addresses(cluster.getClusterNodes()), config);
            }
            if (factory.isRedisSentinelAware()) {
                var sentinel = factory.getSentinelConfiguration();
                String master = sentinel.getMaster().getName();
                JedisClientConfig config =
                        config(client, sentinel.getUsername(), sentinel.getPassword(), sentinel.getDatabase());
                JedisClientConfig guard = config(client, sentinel.getSentinelUsername(), sentinel.getSentinelPassword(), 0);
                return JedisConnector.sentinel(master, config, addresses(sentinel.getSentinels()), guard);
            }
            var one = factory.getStandaloneConfiguration();
            JedisClientConfig config = config(client, one.getUsername(), one.getPassword(), one.getDatabase());
            return JedisConnector.of(new HostAndPort(one.getHostName(), one.getPort()), config);
        }

        private static Set<HostAndPort> addresses(Iterable<RedisNode> nodes) {
            Set<HostAndPort> addresses = new LinkedHashSet<>();
            nodes.forEach(node -> addresses.add(new HostAndPort(node.getHost(), node.getPort())));
            return addresses;
        }

        private static JedisClientConfig config(
                JedisClientConfiguration client, String user, RedisPassword password, int database) {
            DefaultJedisClientConfig.Builder builder = DefaultJedisClientConfig.builder();
            client.getCustomizer().ifPresent(customizer -> customizer.customize(builder));
            builder.protocol(RedisProtocol.RESP2)
                    .database(database)
                    .ssl(client.isUseSsl())
                    .connectionTimeoutMillis((int) client.getConnectTimeout().toMillis())
                    .socketTimeoutMillis((int) client.getReadTimeout().toMillis());
            client.getSslSocketFactory().ifPresent(builder::sslSocketFactory);
            client.getSslParameters().ifPresent(builder::sslParameters);
            client.getHostnameVerifier().ifPresent(builder::hostnameVerifier);
            client.getClientName().ifPresent(builder::clientName);
            password.toOptional().ifPresent(it -> builder.user(user).password(String.valueOf(it)));
            return builder.build();
        }
    }
}

package io.github.redisdq.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.redisdq.Job;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.ssl.SslAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** By Sentinel, on a cluster and with TLS, as the application's connection factory reaches its server. */
@Timeout(120)
class ReachTest {
    private static final String NO_TLS = "";

    @TempDir
    Path folder;

    private final List<ServerProcess> running = new ArrayList<>();

    @AfterEach
    void end() {
        running.forEach(ServerProcess::close);
    }

    private ServerProcess keep(ServerProcess started) {
        running.add(started);
        return started;
    }

    private ApplicationContextRunner runner(String client, String... properties) {
        return new ApplicationContextRunner()
                .withPropertyValues("spring.data.redis.client-type=" + client)
                .withPropertyValues(properties)
                .withConfiguration(Boot.configurations(SslAutoConfiguration.class));
    }

    /** The certificate that the servers of {@code ServerProcess.tls} have is trusted. */
    private String[] trusting() {
        return new String[] {
            "spring.data.redis.ssl.bundle=ours",
            "spring.ssl.bundle.pem.ours.truststore.certificate=file:" + folder.resolve("certificate.pem")
        };
    }

    static class Shop {
        final BlockingQueue<String> seen = new LinkedBlockingQueue<>();

        @DqListener(queue = "orders")
        void close(String order) {
            seen.add(order);
        }

        @DqListener(queue = "mails")
        void mail(String mail) {
            seen.add(mail);
        }
    }

    /** Two queues: on a cluster, in two slots. */
    private void works(ApplicationContextRunner runner) {
        runner.withBean(Shop.class).run(context -> {
            assertThat(context).hasNotFailed();
            DqTemplate template = context.getBean(DqTemplate.class);
            Shop shop = context.getBean(Shop.class);
            for (String queue : List.of("orders", "mails")) {
                template.add(queue, "to " + queue);
                assertThat(shop.seen.take()).isEqualTo("to " + queue);
                ServerProcess.until(() -> template.queue(queue).len() == 0);
            }
        });
    }

    @ParameterizedTest
    @CsvSource({"lettuce, ''", "jedis, ''", "lettuce, tls", "jedis, tls"})
    void bySentinel(String client, String how) throws Exception {
        String[] options = how.equals(NO_TLS) ? new String[0] : ServerProcess.tls(folder);
        ServerProcess master = keep(ServerProcess.server(folder, options));
        ServerProcess sentinel = keep(ServerProcess.sentinel(folder, master, options));
        ApplicationContextRunner runner = runner(
                client, "spring.data.redis.sentinel.master=dq", "spring.data.redis.sentinel.nodes=127.0.0.1:" + sentinel.port);
        works(how.equals(NO_TLS) ? runner : runner.withPropertyValues(trusting()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void onACluster(String client) throws Exception {
        ServerProcess first = keep(ServerProcess.server(folder, "--cluster-enabled", "yes"));
        ServerProcess second = keep(ServerProcess.server(folder, "--cluster-enabled", "yes"));
        first.ask("CLUSTER ADDSLOTSRANGE 0 8191");
        second.ask("CLUSTER ADDSLOTSRANGE 8192 16383");
        second.ask("CLUSTER SET-CONFIG-EPOCH 2");
        first.ask("CLUSTER MEET 127.0.0.1 " + second.port);
        for (ServerProcess node : List.of(first, second)) {
            ServerProcess.until(() -> node.ask("CLUSTER INFO").contains("cluster_state:ok"));
        }
        works(runner(client, "spring.data.redis.cluster.nodes=127.0.0.1:" + first.port));
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void withTls(String client) throws Exception {
        ServerProcess server = keep(ServerProcess.server(folder, ServerProcess.tls(folder)));
        String[] place = {"spring.data.redis.host=127.0.0.1", "spring.data.redis.port=" + server.port};
        works(runner(client, place).withPropertyValues(trusting()));
        // A certificate that nobody trusts is refused.
        runner(client, place).withPropertyValues("spring.data.redis.ssl.enabled=true").run(context -> {
            DqTemplate template = context.getBean(DqTemplate.class);
            assertThatThrownBy(() -> template.add("orders", "x")).isInstanceOf(RuntimeException.class);
        });
    }

    static class Nightly {
        final BlockingQueue<String> seen = new LinkedBlockingQueue<>();

        @DqListener(queue = "reports", cron = "0 2 * * *")
        void report(Job job) {
            seen.add(job.id());
        }
    }

    /** The master is gone before the listeners start, or once they have. */
    @ParameterizedTest
    @CsvSource({"lettuce, true", "jedis, true", "lettuce, false", "jedis, false"})
    void aRuleOutlivesAFailover(String client, boolean isGoneAtStart) throws Exception {
        ServerProcess master = keep(ServerProcess.server(folder));
        ServerProcess replica = keep(ServerProcess.server(folder, "--replicaof", "127.0.0.1 " + master.port));
        ServerProcess.until(() -> replica.ask("INFO replication").contains("master_link_status:up"));
        ServerProcess sentinel = keep(ServerProcess.sentinel(folder, master));
        sentinel.ask("SENTINEL SET dq down-after-milliseconds 500");
        ServerProcess.until(() -> sentinel.ask("SENTINEL REPLICAS dq").contains(":" + replica.port));
        ApplicationContextRunner runner = runner(
                client,
                "spring.data.redis.sentinel.master=dq",
                "spring.data.redis.sentinel.nodes=127.0.0.1:" + sentinel.port,
                "spring.application.name=shop");
        if (isGoneAtStart) {
            master.close();
        }
        runner.withBean(Nightly.class).run(context -> {
            assertThat(context).hasNotFailed();
            ServerProcess.until(() -> replica.ask("DQ.LEN reports").startsWith(":1"));
            master.close();
            ServerProcess.until(() -> replica.ask("ROLE").contains("master"));
            assertThat(replica.ask("DQ.RESCHEDULE reports DELAY 0 shop:Nightly.report")).startsWith(":1");
            assertThat(context.getBean(Nightly.class).seen.take()).isEqualTo("shop:Nightly.report");
            ServerProcess.until(() -> replica.ask("DQ.LEN reports DELAYED").startsWith(":1"));
        });
    }
}

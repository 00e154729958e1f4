package io.github.redisdq.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.redisdq.Codec;
import io.github.redisdq.Connector;
import io.github.redisdq.DqException;
import io.github.redisdq.Job;
import io.github.redisdq.PayloadException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.connection.RedisConnectionFactory;

/** What is configured, and the errors of a wrong configuration. Without a server. */
class ContextTest {
    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withPropertyValues("spring.data.redis.port=1")
            .withConfiguration(Boot.configurations());

    @Test
    void aTemplateWithEachClient() {
        for (String client : List.of("lettuce", "jedis")) {
            runner.withPropertyValues("spring.data.redis.client-type=" + client).run(context -> {
                assertThat(context).hasSingleBean(DqTemplate.class).hasSingleBean(DqListeners.class);
                assertThat(context.getBean(Connector.class).getClass().getSimpleName().toLowerCase()).startsWith(client);
                assertThat(context.getBean(DqListeners.class).queues()).isEmpty();
            });
        }
    }

    @Test
    void nothingWhereItIsTurnedOffOrThereIsNoRedis() {
        runner.withPropertyValues("dq.enabled=false").run(context -> assertThat(context).doesNotHaveBean(Connector.class));
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(DqAutoConfiguration.class, DqActuatorAutoConfiguration.class))
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(DqTemplate.class));
    }

    @Test
    void whatTheApplicationHasItselfIsUsed() {
        runner.withUserConfiguration(Own.class).run(context -> {
            assertThat(context.getBean(Connector.class)).isSameAs(context.getBean("mine"));
            assertThat(context).hasSingleBean(Codec.class).hasBean("text");
        });
    }

    @Configuration
    static class Own {
        @Bean
        Connector mine() {
            return (Connector) Proxy.newProxyInstance(
                    getClass().getClassLoader(), new Class<?>[] {Connector.class}, (proxy, method, words) -> switch (method.getName()) {
                        case "hashCode" -> 1;
                        case "equals" -> proxy == words[0];
                        default -> null;
                    });
        }

        @Bean
        Codec text() {
            return Codec.json();
        }
    }

    @Test
    void jsonIsThatOfTheApplication() {
        runner.withPropertyValues("spring.jackson.property-naming-strategy=SNAKE_CASE").run(context -> {
            Codec codec = context.getBean(Codec.class);
            assertThat(new String(codec.encode(new Named("x")), StandardCharsets.UTF_8)).isEqualTo("{\"last_name\":\"x\"}");
            assertThat(codec.<Named>decode(codec.encode(new Named("x")), Named.class)).isEqualTo(new Named("x"));
            assertThatThrownBy(() -> codec.encode(Map.of("a", Double.NaN))).isInstanceOf(DqException.class);
            assertThatThrownBy(() -> codec.encode(new double[] {Double.NaN})).isInstanceOf(DqException.class);
            assertThatThrownBy(() -> codec.decode("{".getBytes(), Named.class)).isInstanceOf(PayloadException.class);
            assertThatThrownBy(() -> codec.decode("null".getBytes(), int.class)).isInstanceOf(PayloadException.class);
        });
    }

    record Named(String lastName) {}

    @Test
    void anotherFactoryIsRefusedWithASentence() {
        RedisConnectionFactory other = (RedisConnectionFactory) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {RedisConnectionFactory.class}, (proxy, method, words) -> null);
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(DqAutoConfiguration.class))
                .withBean(RedisConnectionFactory.class, () -> other)
                .run(context -> assertThat(context).getFailure().rootCause().hasMessageContaining("Lettuce or Jedis"));
    }

    @Test
    void healthAndMetricsOnlyWithTheirLibraries() {
        runner.withConfiguration(AutoConfigurations.of(Boot.HEALTH))
                .run(context -> assertThat(context).hasBean("dqHealthIndicator"));
        runner.withPropertyValues("management.health.dq.enabled=false")
                .run(context -> assertThat(context).doesNotHaveBean("dqHealthIndicator"));
        runner.withClassLoader(new FilteredClassLoader(Boot.HEALTH_PACKAGES[0], Boot.HEALTH_PACKAGES[1], "io.micrometer"))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(DqListeners.class));
    }

    static class NoQueue {
        @DqListener(queue = " ")
        void handle() {}
    }

    static class TwoData {
        @DqListener(queue = "q")
        void handle(String one, String other) {}
    }

    static class NoBatch {
        @DqListener(queue = "q", batch = "5")
        void handle(Job job) {}
    }

    static class NoNumber {
        @DqListener(queue = "q", concurrency = "many")
        void handle() {}
    }

    static class NoDuration {
        @DqListener(queue = "q", backoff = "soon")
        void handle() {}
    }

    static class NoFill {
        @DqListener(queue = "q", batch = "5", fill = "3")
        void handle(List<Job> jobs) {}
    }

    static class CronWithData {
        @DqListener(queue = "q", cron = "0 2 * * *")
        void handle(String data) {}
    }

    @Test
    void aWrongListenerEndsTheStartWithASentence() {
        fails(NoFill.class, "a fill that is not a number of jobs and a duration");
        fails(CronWithData.class, "its jobs have no data");
        fails(NoQueue.class, "names no queue");
        fails(TwoData.class, "more than one parameter");
        fails(NoBatch.class, "List<Job>");
        fails(NoNumber.class, "concurrency that is not a number: many");
        fails(NoDuration.class, "backoff that is not a duration");
    }

    private void fails(Class<?> type, String text) {
        runner.withUserConfiguration(type).run(context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining(text).hasMessageContaining(type.getSimpleName()));
    }

    static class Listening {
        @DqListener(queue = "${orders.queue:orders}", concurrency = "${orders.threads:3}")
        void handle(String order) {}
    }

    @Test
    void placeholdersAndDefaultsAreRead() {
        runner.withUserConfiguration(Listening.class)
                .withPropertyValues("orders.queue=other", "dq.listener.auto-startup=false", "dq.listener.backoff=1s,1m")
                .run(context -> {
                    assertThat(context.getBean(DqListeners.class).queues()).containsExactly("other");
                    assertThat(context.getBean(DqListeners.class).isRunning()).isFalse();
                    assertThat(context.getBean(DqProperties.class).listener().backoff())
                            .containsExactly(Duration.ofSeconds(1), Duration.ofMinutes(1));
                });
    }

    /** The application starts, and waits for a server that cannot be reached. */
    @Test
    void theApplicationStartsBeforeItsServer() {
        runner.withUserConfiguration(Listening.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBean(DqListeners.class).isRunning()).isTrue();
        });
    }

    @Test
    void eachPropertyHasItsMetadata() throws IOException {
        try (InputStream file = DqProperties.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
            String metadata = new String(file.readAllBytes(), StandardCharsets.UTF_8);
            for (String name : List.of(
                    "dq.enabled", "dq.metrics.enabled", "dq.listener.auto-startup", "dq.listener.concurrency", "dq.listener.prefetch",
                    "dq.listener.attempts", "dq.listener.backoff", "dq.listener.lease", "dq.listener.drain", "dq.template.after-commit",
                    "management.health.dq.enabled")) {
                assertThat(metadata).contains("\"name\": \"" + name + "\"");
            }
            assertThat(metadata.split("\"description\"")).hasSizeGreaterThan(10);
        }
    }
}

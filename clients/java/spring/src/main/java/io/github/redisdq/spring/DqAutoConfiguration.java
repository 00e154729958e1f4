package io.github.redisdq.spring;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.redisdq.Around;
import io.github.redisdq.Codec;
import io.github.redisdq.Connector;
import io.github.redisdq.Hooks;
import io.github.redisdq.JsonCodec;
import java.util.List;
import java.util.concurrent.Executor;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.util.ClassUtils;

/** Creates the listeners and the template. A bean of the application's own of any of these types is used instead. */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.autoconfigure.data.redis.RedisAutoConfiguration", // Boot 3
            "org.springframework.boot.autoconfigure.jackson.JacksonAutoConfiguration",
            "org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration", // Boot 4
            "org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration",
            "org.springframework.boot.jackson2.autoconfigure.Jackson2AutoConfiguration"
        })
@ConditionalOnProperty(name = "dq.enabled", matchIfMissing = true)
@EnableConfigurationProperties(DqProperties.class)
public class DqAutoConfiguration {
    /** A bean of the type {@link Executor} and this name runs the listeners. */
    public static final String EXECUTOR = "dqTaskExecutor";

    private static final boolean HAS_JACKSON_3 =
            ClassUtils.isPresent("tools.jackson.databind.json.JsonMapper", DqAutoConfiguration.class.getClassLoader());

    /** Uses the application's connection factory, unless the application has a {@link Connector}. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(Connector.class)
    static class FromFactory {
        @Bean(destroyMethod = "close")
        @ConditionalOnBean(RedisConnectionFactory.class)
        Connector dqConnector(RedisConnectionFactory factory) {
            return FactoryConnector.of(factory);
        }
    }

    /** JSON by the application's mapper: Jackson 3's if it has one (Boot 4), else Jackson 2's. */
    @Bean
    @ConditionalOnMissingBean
    Codec dqCodec(BeanFactory beans) {
        if (HAS_JACKSON_3) {
            Codec found = Jackson3Codec.ofApplication(beans);
            if (found != null) {
                return found;
            }
        }
        ObjectMapper mapper = beans.getBeanProvider(ObjectMapper.class).getIfUnique();
        return mapper == null ? Codec.json() : new JsonCodec(mapper);
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean(Connector.class)
    DqTemplate dqTemplate(Connector connector, Codec codec, DqProperties properties, ObjectProvider<Hooks> hooks) {
        return new DqTemplate(connector, codec, hooks.orderedStream().toList(), properties.template().afterCommit());
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean(DqTemplate.class)
    DqListeners dqListeners(
            DqTemplate template,
            DqProperties properties,
            ObjectProvider<Hooks> hooks,
            ObjectProvider<Around> around,
            @Qualifier(EXECUTOR) ObjectProvider<Executor> executor,
            Environment environment) {
        Executor found = executor.getIfAvailable(() -> VirtualThreads.wanted(environment));
        List<Around> all = around.orderedStream().toList();
        String program = environment.getProperty("spring.application.name", "application");
        return new DqListeners(template, properties.listener(), hooks.orderedStream().toList(), all, found, program);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static DqListenerProcessor dqListenerProcessor(
            ObjectProvider<DqListeners> listeners, ObjectProvider<DqProperties> properties) {
        return new DqListenerProcessor(listeners, properties);
    }
}

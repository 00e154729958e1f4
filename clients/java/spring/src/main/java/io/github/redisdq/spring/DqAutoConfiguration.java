package io.github.redisdq.spring;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.redisdq.Codec;
import io.github.redisdq.Connector;
import io.github.redisdq.Hooks;
import io.github.redisdq.JsonCodec;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.data.redis.RedisAutoConfiguration;
import org.springframework.boot.autoconfigure.jackson.JacksonAutoConfiguration;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Role;
import org.springframework.data.redis.connection.RedisConnectionFactory;

/** Listeners and the template. A bean of the application's own of any of these types is used instead. */
@AutoConfiguration(after = {RedisAutoConfiguration.class, JacksonAutoConfiguration.class})
@ConditionalOnProperty(name = "dq.enabled", matchIfMissing = true)
@EnableConfigurationProperties(DqProperties.class)
public class DqAutoConfiguration {
    /** The application's connections, unless it says how else to reach the server. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(Connector.class)
    static class FromFactory {
        @Bean(destroyMethod = "close")
        @ConditionalOnBean(RedisConnectionFactory.class)
        Connector dqConnector(RedisConnectionFactory factory) {
            return FactoryConnector.of(factory);
        }
    }

    @Bean
    @ConditionalOnMissingBean
    Codec dqCodec(ObjectProvider<ObjectMapper> mapper) {
        ObjectMapper found = mapper.getIfUnique();
        return found == null ? Codec.json() : new JsonCodec(found);
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean(Connector.class)
    DqTemplate dqTemplate(Connector connector, Codec codec, ObjectProvider<Hooks> hooks) {
        return new DqTemplate(connector, codec, hooks.orderedStream().toList());
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean(DqTemplate.class)
    DqListeners dqListeners(DqTemplate template, DqProperties properties, ObjectProvider<Hooks> hooks) {
        return new DqListeners(template, properties.listener(), hooks.orderedStream().toList());
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static DqListenerProcessor dqListenerProcessor(
            ObjectProvider<DqListeners> listeners, ObjectProvider<DqProperties> properties) {
        return new DqListenerProcessor(listeners, properties);
    }
}

package io.github.redisdq.spring;

import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Health and metrics, where the application has the actuator or Micrometer. */
@AutoConfiguration(
        after = DqAutoConfiguration.class,
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.actuate.autoconfigure.metrics.export.simple.SimpleMetricsExportAutoConfiguration"
        })
@ConditionalOnBean(DqListeners.class)
public class DqActuatorAutoConfiguration {
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
    static class OfHealth {
        @Bean
        @ConditionalOnEnabledHealthIndicator("dq")
        @ConditionalOnMissingBean(name = "dqHealthIndicator")
        HealthIndicator dqHealthIndicator(DqListeners listeners, DqTemplate template) {
            return new DqHealthIndicator(listeners, template);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterRegistry.class)
    static class OfMetrics {
        @Bean
        @ConditionalOnBean(MeterRegistry.class)
        @ConditionalOnProperty(name = "dq.metrics.enabled", matchIfMissing = true)
        DqMetrics dqMetrics(MeterRegistry registry, ObjectProvider<DqListeners> listeners, ObjectProvider<DqTemplate> template) {
            return new DqMetrics(registry, listeners, template);
        }
    }
}

package io.github.redisdq.spring;

import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Health and metrics, if the application has the actuator or Micrometer. */
@AutoConfiguration(
        after = DqAutoConfiguration.class,
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.actuate.autoconfigure.metrics.export.simple.SimpleMetricsExportAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration"
        })
@ConditionalOnBean(DqListeners.class)
public class DqActuatorAutoConfiguration {
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({org.springframework.boot.actuate.health.HealthIndicator.class, org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator.class})
    static class OfHealthInBoot3 {
        @Bean
        @org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator("dq")
        @ConditionalOnMissingBean(name = "dqHealthIndicator")
        org.springframework.boot.actuate.health.HealthIndicator dqHealthIndicator(DqListeners listeners, DqTemplate template) {
            return new org.springframework.boot.actuate.health.AbstractHealthIndicator(HealthFigures.FAILED) {
                @Override
                protected void doHealthCheck(org.springframework.boot.actuate.health.Health.Builder builder) {
                    HealthFigures figures = HealthFigures.of(listeners, template);
                    builder.status(figures.isUp() ? org.springframework.boot.actuate.health.Status.UP : org.springframework.boot.actuate.health.Status.DOWN).withDetails(figures.details());
                }
            };
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({org.springframework.boot.health.contributor.HealthIndicator.class, org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator.class})
    static class OfHealthInBoot4 {
        @Bean
        @org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator("dq")
        @ConditionalOnMissingBean(name = "dqHealthIndicator")
        org.springframework.boot.health.contributor.HealthIndicator dqHealthIndicator(DqListeners listeners, DqTemplate template) {
            return new org.springframework.boot.health.contributor.AbstractHealthIndicator(HealthFigures.FAILED) {
                @Override
                protected void doHealthCheck(org.springframework.boot.health.contributor.Health.Builder builder) {
                    HealthFigures figures = HealthFigures.of(listeners, template);
                    builder.status(figures.isUp() ? org.springframework.boot.health.contributor.Status.UP : org.springframework.boot.health.contributor.Status.DOWN).withDetails(figures.details());
                }
            };
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

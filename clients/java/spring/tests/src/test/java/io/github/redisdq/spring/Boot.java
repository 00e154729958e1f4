package io.github.redisdq.spring;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.context.ApplicationContext;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/** What has another name in Boot 3 and in Boot 4. */
final class Boot {
    static final Class<?> REDIS = either(
            "org.springframework.boot.autoconfigure.data.redis.RedisAutoConfiguration",
            "org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration");
    static final Class<?> JACKSON = either(
            "org.springframework.boot.autoconfigure.jackson.JacksonAutoConfiguration",
            "org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration");
    static final Class<?> HEALTH = either(
            "org.springframework.boot.actuate.autoconfigure.health.HealthContributorAutoConfiguration",
            "org.springframework.boot.health.autoconfigure.contributor.HealthContributorAutoConfiguration");
    static final String[] HEALTH_PACKAGES = {
        "org.springframework.boot.actuate.health", "org.springframework.boot.health.contributor"
    };

    private Boot() {}

    private static Class<?> either(String inBoot3, String inBoot4) {
        ClassLoader loader = Boot.class.getClassLoader();
        return ClassUtils.resolveClassName(ClassUtils.isPresent(inBoot3, loader) ? inBoot3 : inBoot4, loader);
    }

    /** Those of Redis, JSON and dq, and others. */
    static AutoConfigurations configurations(Class<?>... more) {
        List<Class<?>> all = new ArrayList<>(
                List.of(REDIS, JACKSON, DqAutoConfiguration.class, DqActuatorAutoConfiguration.class));
        all.addAll(List.of(more));
        return AutoConfigurations.of(all.toArray(Class<?>[]::new));
    }

    /** The status and the details, as the actuator shows them. */
    static Map<String, Object> health(ApplicationContext context) {
        Object health = get(context.getBean("dqHealthIndicator"), "health");
        return Map.of("status", get(health, "getStatus").toString(), "details", get(health, "getDetails"));
    }

    private static Object get(Object from, String name) {
        var method = ReflectionUtils.findMethod(from.getClass(), name);
        ReflectionUtils.makeAccessible(method);
        return ReflectionUtils.invokeMethod(method, from);
    }
}

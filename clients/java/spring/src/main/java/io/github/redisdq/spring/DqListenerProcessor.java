package io.github.redisdq.spring;

import java.lang.reflect.Method;
import java.util.Map;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.EmbeddedValueResolverAware;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.util.StringValueResolver;

/** Finds the methods with {@link DqListener} of all beans. */
final class DqListenerProcessor implements BeanPostProcessor, EmbeddedValueResolverAware {
    private final ObjectProvider<DqListeners> listeners;
    private final ObjectProvider<DqProperties> properties;
    private StringValueResolver resolver;

    DqListenerProcessor(ObjectProvider<DqListeners> listeners, ObjectProvider<DqProperties> properties) {
        this.listeners = listeners;
        this.properties = properties;
    }

    @Override
    public void setEmbeddedValueResolver(StringValueResolver resolver) {
        this.resolver = resolver;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String name) {
        Class<?> type = AopProxyUtils.ultimateTargetClass(bean);
        if (!AnnotationUtils.isCandidateClass(type, DqListener.class)) {
            return bean;
        }
        Map<Method, DqListener> found = MethodIntrospector.selectMethods(
                type,
                (MethodIntrospector.MetadataLookup<DqListener>)
                        method -> AnnotatedElementUtils.findMergedAnnotation(method, DqListener.class));
        found.forEach((method, said) -> {
            Method invocable = AopUtils.selectInvocableMethod(method, bean.getClass());
            invocable.setAccessible(true);
            DqProperties.Listener defaults = properties.getObject().listener();
            listeners.getObject().add(new ListenerMethod(bean, invocable, said, defaults, resolver::resolveStringValue));
        });
        return bean;
    }
}

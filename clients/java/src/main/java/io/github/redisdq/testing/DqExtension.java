package io.github.redisdq.testing;

import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * For JUnit 5, {@code @ExtendWith(DqExtension.class)}: one server for all tests, which is emptied before each. Test
 * methods and constructors may have parameters of the types {@link DqServer} and {@link Clock}.
 */
public final class DqExtension implements BeforeEachCallback, ParameterResolver {
    private record Kept(DqServer server) implements ExtensionContext.Store.CloseableResource {
        @Override
        public void close() {
            server.close();
        }
    }

    private static DqServer server(ExtensionContext context) {
        ExtensionContext.Store store = context.getRoot().getStore(Namespace.create(DqExtension.class));
        return store.getOrComputeIfAbsent("server", key -> new Kept(DqServer.start()), Kept.class).server();
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        server(context).clear();
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == DqServer.class || type == Clock.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        DqServer server = server(context);
        return parameter.getParameter().getType() == Clock.class ? server.clock() : server;
    }
}

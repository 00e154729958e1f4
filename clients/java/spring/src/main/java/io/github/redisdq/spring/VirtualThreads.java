package io.github.redisdq.spring;

import java.util.concurrent.Executor;
import org.springframework.core.env.Environment;
import org.springframework.core.task.VirtualThreadTaskExecutor;

/** Those that spring.threads.virtual.enabled asks for. */
final class VirtualThreads {
    private static final int SINCE = 21;

    private VirtualThreads() {}

    /** Null: platform threads. */
    static Executor wanted(Environment environment) {
        boolean areWanted = environment.getProperty("spring.threads.virtual.enabled", Boolean.class, false);
        return areWanted && Runtime.version().feature() >= SINCE ? new VirtualThreadTaskExecutor("dq-listener-") : null;
    }
}

package io.github.redisdq.spring;

import java.util.concurrent.Executor;
import org.springframework.core.env.Environment;
import org.springframework.core.task.VirtualThreadTaskExecutor;

/** Virtual threads, if spring.threads.virtual.enabled asks for them. */
final class VirtualThreads {
    private static final int SINCE = 21;

    private VirtualThreads() {}

    /** Null: use platform threads. */
    static Executor wanted(Environment environment) {
        boolean areWanted = environment.getProperty("spring.threads.virtual.enabled", Boolean.class, false);
        return areWanted && Runtime.version().feature() >= SINCE ? new VirtualThreadTaskExecutor("dq-listener-") : null;
    }
}

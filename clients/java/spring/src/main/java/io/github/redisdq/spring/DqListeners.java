package io.github.redisdq.spring;

import io.github.redisdq.Around;
import io.github.redisdq.ConfigurationException;
import io.github.redisdq.DqException;
import io.github.redisdq.Hooks;
import io.github.redisdq.Internals;
import io.github.redisdq.NewRule;
import io.github.redisdq.RefusedException;
import io.github.redisdq.Worker;
import io.github.redisdq.WorkerBuilder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.SmartLifecycle;

/**
 * Runs the methods with {@link DqListener}: one worker for each queue. They start last and stop first, so the
 * connections, data sources and web clients of the application stay open until their last job has ended.
 */
public final class DqListeners implements SmartLifecycle {
    /**
     * The phase: later than that of the web server, so that what a listener calls is there, and far later than that of
     * connection factories, 0.
     */
    public static final int PHASE = Integer.MAX_VALUE - 100;

    private static final Logger LOG = LoggerFactory.getLogger(DqListeners.class);

    private final DqTemplate template;
    private final String program;
    private final DqProperties.Listener properties;
    private final List<Hooks> hooks;
    private final List<Around> around;
    private final Executor executor; // null: the library's own platform threads
    private final Map<String, List<ListenerMethod>> methods = new LinkedHashMap<>();
    private final Map<String, String> failures = new ConcurrentHashMap<>();
    private final Map<String, Worker> workers = new LinkedHashMap<>();
    private boolean isRunning;

    /** {@code program}: whose rules the listeners' are. */
    DqListeners(
            DqTemplate template,
            DqProperties.Listener properties,
            List<Hooks> hooks,
            List<Around> around,
            Executor executor,
            String program) {
        this.template = template;
        this.program = program;
        this.properties = properties;
        this.hooks = hooks;
        this.around = around;
        this.executor = executor;
    }

    /** Adds a method. A bean that is created late, as a lazy one, listens from then on. */
    synchronized void add(ListenerMethod method) {
        methods.computeIfAbsent(method.queue(), it -> new ArrayList<>()).add(method);
        if (isRunning()) {
            Worker before = workers.remove(method.queue());
            if (before != null) {
                before.stop();
            }
            begin(method.queue());
        }
    }

    /** The queues that have listeners. */
    public synchronized List<String> queues() {
        return List.copyOf(methods.keySet());
    }

    /** Why the listeners of a queue have ended, or null. */
    public String failure(String queue) {
        return failures.get(queue);
    }

    @Override
    public boolean isAutoStartup() {
        return properties.autoStartup();
    }

    @Override
    public int getPhase() {
        return PHASE;
    }

    @Override
    public synchronized boolean isRunning() {
        return isRunning;
    }

    /** @throws ConfigurationException if the server has no dq module, or a key holds another type */
    @Override
    public synchronized void start() {
        if (isRunning) {
            return;
        }
        isRunning = true;
        failures.clear();
        try {
            methods.keySet().forEach(this::begin);
        } catch (RuntimeException error) {
            stop();
            throw error;
        }
    }

    private void begin(String queue) {
        WorkerBuilder builder = Worker.on(template.queue(queue)).prefetch(properties.prefetch()).drain(properties.drain());
        List<ListenerMethod> all = methods.get(queue);
        all.forEach(each -> builder.handler(each.handler()));
        hooks.forEach(builder::hooks);
        around.forEach(builder::around);
        if (properties.lease() != null) {
            builder.lease(properties.lease());
        }
        if (executor != null) {
            builder.executor(executor);
        }
        Worker worker = builder.concurrency(all.stream().mapToInt(ListenerMethod::concurrency).sum()).build();
        worker.check(); // what waiting does not fix fails the start of the application
        boolean isSaid = say(queue, true);
        workers.put(queue, worker);
        Thread thread = new Thread(() -> run(queue, worker, isSaid), "dq-listeners-" + queue);
        thread.setDaemon(true);
        thread.start();
        LOG.info("{} listen to {}", all, queue);
    }

    /** Says when the queue's own jobs come. False: the server cannot be reached; it is to be said again. */
    private boolean say(String queue, boolean isFirst) {
        Map<String, NewRule> rules = new LinkedHashMap<>();
        methods.get(queue).stream().filter(each -> each.rule() != null).forEach(each -> rules.put(each.toString(), each.rule()));
        try {
            if (!rules.isEmpty()) {
                template.queue(queue).rules(program, rules);
            }
            return true;
        } catch (DqException error) {
            if (Internals.fatal(error) != null || error instanceof RefusedException said && said.code().equals("ERR")) {
                throw error;
            }
            if (isFirst) {
                LOG.warn("the rules of {} cannot be said yet: {}", queue, error.getMessage());
            }
            return false;
        }
    }

    /** Says them as soon as the server can be reached, unless the application stops before. */
    private void sayAgain(String queue) {
        boolean isSaid = false;
        for (int failures = 1; !isSaid; failures++) {
            try {
                // Not while the server is asked: it may stand still, and a stop must not wait for it.
                synchronized (this) {
                    if (isRunning) {
                        wait(Internals.pause(failures).toMillis());
                    }
                    if (!isRunning) {
                        return;
                    }
                }
                isSaid = say(queue, false);
            } catch (DqException | InterruptedException error) {
                LOG.error("the rules of {} cannot be said", queue, error);
                return;
            }
        }
    }

    private void run(String queue, Worker worker, boolean isSaid) {
        try {
            if (!isSaid) {
                sayAgain(queue);
            }
            worker.run();
        } catch (ConfigurationException error) {
            failures.put(queue, String.valueOf(error.getMessage()));
            LOG.error("the listeners of {} have ended", queue, error);
        }
    }

    @Override
    public void stop() {
        List<Worker> all;
        synchronized (this) {
            isRunning = false;
            notifyAll();
            all = List.copyOf(workers.values());
            workers.clear();
        }
        all.forEach(Worker::stop);
        for (Worker each : all) {
            try {
                each.join();
            } catch (ConfigurationException error) {
                // it has been logged
            }
        }
    }

    /** Stops in another thread, so that other beans of this phase can stop meanwhile. */
    @Override
    public void stop(Runnable callback) {
        Runnable ending = () -> {
            try {
                stop();
            } finally {
                callback.run();
            }
        };
        new Thread(ending, "dq-listeners-stop").start();
    }
}

package io.github.redisdq.spring;

import io.github.redisdq.Handler;
import io.github.redisdq.Job;
import io.github.redisdq.JobOptions;
import io.github.redisdq.NewRule;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.function.UnaryOperator;
import org.springframework.boot.convert.DurationStyle;

/** A method with {@link DqListener}, and its settings. */
final class ListenerMethod {
    private final Object bean;
    private final Method method;
    private final String queue;
    private final int concurrency;
    private final Handler<?> handler;
    private final NewRule rule;

    ListenerMethod(Object bean, Method method, DqListener said, DqProperties.Listener defaults, UnaryOperator<String> resolve) {
        this.bean = bean;
        this.method = method;
        this.queue = resolve.apply(said.queue());
        if (queue == null || queue.isBlank()) {
            throw wrong("names no queue");
        }
        this.concurrency = number("concurrency", resolve.apply(said.concurrency()), defaults.concurrency());
        int batch = number("batch", resolve.apply(said.batch()), 0);
        this.handler = batch > 0 ? ofBatch(batch) : ofOne();
        if (said.fill().length > 0) {
            fill(Arrays.stream(said.fill()).map(resolve).toList());
        }
        String cron = resolve.apply(said.cron());
        String kind = resolve.apply(said.kind());
        if (!kind.isEmpty() || !cron.isEmpty()) {
            handler.kind(kind.isEmpty() ? toString() : kind);
        }
        rule = cron.isEmpty() ? null : rule(cron, resolve.apply(said.tz()), kind.isEmpty() ? toString() : kind);
        handler.attempts(number("attempts", resolve.apply(said.attempts()), defaults.attempts()));
        List<Duration> backoff =
                Arrays.stream(said.backoff()).map(each -> duration("backoff", resolve.apply(each))).toList();
        handler.backoff((backoff.isEmpty() ? defaults.backoff() : backoff).toArray(Duration[]::new));
        handler.retryOn(said.retryOn()).giveUpOn(said.giveUpOn());
        String timeout = resolve.apply(said.timeout());
        if (!timeout.isEmpty()) {
            handler.timeout(duration("timeout", timeout));
        }
        String lease = resolve.apply(said.lease());
        if (!lease.isEmpty()) {
            handler.lease(duration("lease", lease));
        }
    }

    private void fill(List<String> said) {
        if (said.size() != 2) {
            throw wrong("has a fill that is not a number of jobs and a duration, such as {\"50\", \"2s\"}");
        }
        handler.fill(number("fill", said.get(0), 0), duration("fill", said.get(1)));
    }

    private NewRule rule(String cron, String tz, String kind) {
        if (Arrays.stream(method.getParameterTypes()).anyMatch(each -> each != Job.class)) {
            throw wrong("with a cron takes nothing, or a Job: its jobs have no data");
        }
        return NewRule.cron(cron, null, JobOptions.create().kind(kind).tz(tz.isEmpty() ? null : tz));
    }

    /** When its own job comes; null: it has none. */
    NewRule rule() {
        return rule;
    }

    String queue() {
        return queue;
    }

    int concurrency() {
        return concurrency;
    }

    Handler<?> handler() {
        return handler;
    }

    @Override
    public String toString() {
        return method.getDeclaringClass().getSimpleName() + "." + method.getName();
    }

    private IllegalStateException wrong(String complaint) {
        return new IllegalStateException("@DqListener of " + method.toGenericString() + " " + complaint);
    }

    private int number(String name, String text, int otherwise) {
        try {
            return text.isEmpty() ? otherwise : Integer.parseInt(text.trim());
        } catch (NumberFormatException error) {
            throw wrong("has a " + name + " that is not a number: " + text);
        }
    }

    private Duration duration(String name, String text) {
        try {
            return DurationStyle.detectAndParse(text);
        } catch (IllegalArgumentException error) {
            throw wrong("has a " + name + " that is not a duration such as 30s or 5m: " + text);
        }
    }

    private Handler<?> ofBatch(int size) {
        Type[] types = method.getGenericParameterTypes();
        boolean isListOfJobs = types.length == 1
                && types[0] instanceof ParameterizedType list
                && list.getRawType() == List.class
                && list.getActualTypeArguments()[0] == Job.class;
        if (!isListOfJobs) {
            throw wrong("with a batch needs one parameter, a List<Job>");
        }
        if (method.getReturnType() != void.class) {
            throw wrong("with a batch must return nothing: Job.succeed gives a job its result");
        }
        return Handler.ofBatch(size, jobs -> invoke(jobs));
    }

    private Handler<?> ofOne() {
        Type[] types = method.getGenericParameterTypes();
        if (Arrays.stream(types).filter(each -> each != Job.class).count() > 1) {
            throw wrong("has more than one parameter for the data: one is a Job, one the data");
        }
        Class<?> returned = method.getReturnType();
        if (Future.class.isAssignableFrom(returned) || CompletionStage.class.isAssignableFrom(returned)) {
            throw wrong("returns before its job is done: return the value itself");
        }
        return Handler.returning(job -> invoke(Arrays.stream(types).map(each -> each == Job.class ? job : job.<Object>data(each)).toArray()));
    }

    private Object invoke(Object... arguments) throws Exception {
        try {
            return method.invoke(bean, arguments);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Exception thrown) {
                throw thrown;
            }
            throw (Error) error.getCause();
        }
    }
}

package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.function.Consumer;

/**
 * A kind of jobs, declared once: what its jobs hold, what they come to, and the options that they have by default. Who
 * adds them and who handles them has the same types.
 *
 * <pre>{@code
 * static final Kind<Order, Receipt> CHARGE = Kind.of("charge", Order.class, Receipt.class, it -> it.attempts(5));
 *
 * CHARGE.add(queue, new Order(17), it -> it.delay(Duration.ofMinutes(1)));
 * Worker.on(queue).handler(CHARGE.returning((job, order) -> charge(order))).build();
 * }</pre>
 *
 * @param <T> the data of its jobs
 * @param <R> their results
 */
public final class Kind<T, R> {
    private final String name;
    private final Type data;
    private final Type result;
    private final JobOptions defaults = JobOptions.create();

    private Kind(String name, Type data, Type result, Consumer<JobOptions> defaults) {
        if (name == null || name.isEmpty()) {
            throw new IllegalArgumentException("a kind needs a name");
        }
        this.name = name;
        this.data = data;
        this.result = result;
        defaults.accept(this.defaults);
        this.defaults.kind(name).words(); // checks them
    }

    /** A kind of jobs without a result. */
    public static <T> Kind<T, Void> of(String name, Class<T> data) {
        return of(name, data, Void.class);
    }

    public static <T, R> Kind<T, R> of(String name, Class<T> data, Class<R> result) {
        return of(name, data, result, it -> {});
    }

    /** {@code defaults}: sets the options that jobs have unless they say otherwise. */
    public static <T, R> Kind<T, R> of(String name, Class<T> data, Class<R> result, Consumer<JobOptions> defaults) {
        return new Kind<>(name, data, result, defaults);
    }

    /** As {@link #of(String, Class, Class, Consumer)}, for types with parameters. */
    public static <T, R> Kind<T, R> of(String name, Type data, Type result, Consumer<JobOptions> defaults) {
        return new Kind<>(name, data, result, defaults);
    }

    public String name() {
        return name;
    }

    /** What does the work of a job, and returns its result. */
    @FunctionalInterface
    public interface Work<T, R> {
        R handle(Job job, T data) throws Exception;
    }

    /** The handler of its jobs, for a worker. */
    public Handler<T> handler(Handler.Typed<T> work) {
        return Handler.of(data, work).kind(name);
    }

    /** The handler of its jobs, which returns their results, for a worker. */
    public Handler<T> returning(Work<? super T, ? extends R> work) {
        return Handler.<T>returning(data, work::handle).kind(name);
    }

    /** A job for {@link DqQueue#addMany}, {@link DqQueue#chain}, {@link DqQueue#join} and {@link Job#spawn}. */
    public QueueCommands.NewJob job(T data) {
        return job(data, it -> {});
    }

    /** As {@link #job(Object)}. {@code options}: sets more than the defaults. */
    public QueueCommands.NewJob job(T data, Consumer<JobOptions> options) {
        return new QueueCommands.NewJob(data, with(options));
    }

    private JobOptions with(Consumer<JobOptions> options) {
        JobOptions all = defaults.copy();
        options.accept(all);
        return all.kind(name);
    }

    /** Adds a job that is due now. Returns its id. */
    public String add(DqQueue queue, T data) {
        return add(queue, data, it -> {});
    }

    /** Adds a job, as {@link DqQueue#add(Object, JobOptions)} does. {@code options}: sets more than the defaults. */
    public String add(DqQueue queue, T data, Consumer<JobOptions> options) {
        return queue.add(data, with(options));
    }

    /** Adds a job and waits for its result, as {@link DqQueue#addAndWait} does. */
    public R addAndWait(DqQueue queue, T data, Duration timeout) throws InterruptedException {
        return addAndWait(queue, data, it -> {}, timeout);
    }

    /** As {@link #addAndWait(DqQueue, Object, Duration)}. {@code options}: sets more than the defaults. */
    public R addAndWait(DqQueue queue, T data, Consumer<JobOptions> options, Duration timeout) throws InterruptedException {
        return queue.addAndWait(data, with(options), result, timeout);
    }

    /** Waits for the end of such a job, as {@link DqQueue#wait} does. */
    public R wait(DqQueue queue, String id, Duration timeout) throws InterruptedException {
        return queue.wait(id, result, timeout);
    }

    /** The result of such a job, as {@link DqQueue#result} reads it. */
    public R result(DqQueue queue, String id) {
        return queue.result(id, result);
    }

    @Override
    public String toString() {
        return "kind " + name;
    }
}

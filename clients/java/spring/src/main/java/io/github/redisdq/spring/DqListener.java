package io.github.redisdq.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Has a method of a bean handle the jobs of a queue. Its parameters are the data of the job, a
 * {@link io.github.redisdq.Job}, or both; or a {@code List<Job>}, where {@link #batch} says how many. A job is done when the
 * method returns; what it returns is the result of the job. When it throws, {@link io.github.redisdq.ControlException} or the
 * ladder says how it goes on.
 *
 * <pre>{@code
 * @DqListener(queue = "orders", concurrency = "8", attempts = "5", backoff = {"1m", "5m"})
 * void close(Order order) { ... }
 * }</pre>
 *
 * All of these may have placeholders, as {@code ${orders.queue}}. Numbers and durations that are empty are those of the
 * properties {@code dq.listener.*}.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface DqListener {
    String queue();

    /** How many jobs at a time. That of several listeners of one queue is added up, as they share a worker. */
    String concurrency() default "";

    /** The kind of jobs; without one, all that no other listener of the queue takes. */
    String kind() default "";

    /** Deliveries until a job that keeps failing is dead; 0: no limit. */
    String attempts() default "";

    /** The waits after the 1st, 2nd, ... failure; the last one repeats. As {@code 10s}, {@code 1m} or {@code PT1M}. */
    String[] backoff() default {};

    /** How long a job stays with a process that crashed. It is renewed while the method runs. */
    String lease() default "";

    /** How long the method may take; then its job has failed, and its thread is interrupted. Without one as long as it likes. */
    String timeout() default "";

    /** Only after these exceptions is the job tried again; all others are final. None: after all. */
    Class<? extends Throwable>[] retryOn() default {};

    /** After these exceptions the job is dead. */
    Class<? extends Throwable>[] giveUpOn() default {};

    /** How many jobs the method gets at a time, as a {@code List<Job>}. */
    String batch() default "";
}

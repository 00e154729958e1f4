package io.github.redisdq.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Makes a method of a bean handle the jobs of a queue. Its parameters are the job's data, a
 * {@link io.github.redisdq.Job}, or both; or a {@code List<Job>}, with {@link #batch}. A job is done when the method
 * returns; what it returns is the job's result. If it throws a {@link io.github.redisdq.ControlException}, that decides
 * how the job goes on; after any other exception, the backoff does.
 *
 * <pre>{@code
 * @DqListener(queue = "orders", concurrency = "8", attempts = "5", backoff = {"1m", "5m"})
 * void close(Order order) { ... }
 * }</pre>
 *
 * All of these texts may have placeholders, as {@code ${orders.queue}}. For numbers and durations that are empty, the
 * properties {@code dq.listener.*} hold.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface DqListener {
    String queue();

    /** How many jobs run at a time. Several listeners of one queue share a worker: their concurrencies are added up. */
    String concurrency() default "";

    /** The kind of jobs; without one, all jobs that no other listener of the queue takes. */
    String kind() default "";

    /** After how many failed deliveries a job is dead; 0: no limit. */
    String attempts() default "";

    /**
     * The waits after the 1st, 2nd, ... failure; the last one repeats. Such as {@code 10s}, {@code 1m} or {@code PT1M}.
     */
    String[] backoff() default {};

    /** How long a job stays with a process that crashed. It is renewed while the method runs. */
    String lease() default "";

    /**
     * How long the method may take (default: without limit). Then its job has failed, and its thread is interrupted.
     */
    String timeout() default "";

    /** After which exceptions the job is tried again; all others are final. None given: after all. */
    Class<? extends Throwable>[] retryOn() default {};

    /** After which exceptions the job is dead. */
    Class<? extends Throwable>[] giveUpOn() default {};

    /** How many jobs the method gets at a time, as a {@code List<Job>}. */
    String batch() default "";

    /**
     * Waits for a batch: until so many jobs are ready, or for so long since the first was, as {@code {"50", "2s"}}. All
     * listeners of the queue must take batches.
     */
    String[] fill() default {};

    /**
     * When the method runs: a job of its own is added to the queue when listeners start, and recurs by this cron expression,
     * as {@code 0 2 * * *}. The method takes nothing, or the {@link io.github.redisdq.Job}. The job's id is
     * {@code <spring.application.name>:<Class.method>}, its kind the method's unless {@link #kind} names one. A rule that
     * has not changed goes on as it was.
     */
    String cron() default "";

    /** The time zone of {@link #cron}, such as {@code Europe/Berlin} (default: UTC). */
    String tz() default "";
}

package io.github.redisdq.spring;

import java.time.Duration;
import java.util.List;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The settings of the application.
 *
 * @param listener of all methods with {@code @DqListener}
 * @param template of {@code DqTemplate}
 */
@ConfigurationProperties("dq")
public record DqProperties(@DefaultValue Listener listener, @DefaultValue Template template) {
    /**
     * What a listener does not say itself.
     *
     * @param autoStartup Whether listeners start with the application.
     * @param concurrency How many jobs a listener handles at a time.
     * @param prefetch How many more jobs a queue's worker has in hand, so that short methods need not wait for the network.
     * @param attempts Deliveries until a job that keeps failing is dead; 0: no limit.
     * @param backoff Waits after the 1st, 2nd, ... failure, the last one repeated; none: the server's.
     * @param lease How long a job stays with a process that crashed, where neither it nor its queue says; none: a minute.
     * @param drain How long methods may go on when the application stops. Less than spring.lifecycle.timeout-per-shutdown-phase.
     */
    public record Listener(
            @DefaultValue("true") boolean autoStartup,
            @DefaultValue("10") int concurrency,
            @DefaultValue("0") int prefetch,
            @DefaultValue("0") int attempts,
            @DefaultValue List<Duration> backoff,
            Duration lease,
            @DefaultValue("25s") Duration drain) {}

    /**
     * How jobs are added.
     *
     * @param afterCommit Whether the template, inside a transaction, sends after the commit.
     */
    public record Template(@DefaultValue("true") boolean afterCommit) {}
}

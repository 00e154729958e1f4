package io.github.redisdq;

import java.lang.reflect.Type;
import java.time.Duration;
import java.util.List;

/**
 * What became of a job that {@link TestJob#run} ran.
 *
 * @param state Done, dead, blocked (it waits for a signal), or delayed (it was tried 100 times).
 * @param encoded What the handler returned, as the codec encodes it.
 * @param reason Why it failed last.
 * @param attempts Deliveries that count.
 * @param waits How long it waited each time: after failures (null: as the server says), in sleeps, for signals that did not
 *     come.
 * @param jobs The job of each delivery.
 */
public record TestRun(State state, byte[] encoded, String reason, int attempts, List<Duration> waits, List<Job> jobs) {
    /** What the handler returned, as whoever waits for it gets it. */
    public <T> T result(Class<T> type) {
        return result((Type) type);
    }

    /** As {@link #result(Class)}, for a type with parameters. */
    public <T> T result(Type type) {
        return Values.decode(jobs.get(jobs.size() - 1).codec, encoded, type);
    }
}

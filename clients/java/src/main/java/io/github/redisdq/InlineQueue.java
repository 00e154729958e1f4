package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * Queues for tests, without a server. {@code add} runs the handler at once, whatever the delay, and throws what it
 * throws. A job that sleeps goes on at once. One that waits for a signal goes on in {@link DqQueue#signal}; one that
 * waits for other jobs goes on when they have ended. Results are kept.
 */
public final class InlineQueue {
    private InlineQueue() {}

    public static DqQueue of(String name, Handler<?>... handlers) {
        return DqQueue.on(new Inline(new InlineJobs(new Handlers(List.of(handlers)))), name);
    }

    private record Inline(InlineJobs jobs) implements Connector {
        @Override
        public List<Object> call(List<byte[][]> commands, Duration patience) {
            return commands.stream().map(jobs::run).toList();
        }

        @Override
        public Line connect(byte[] key, Duration patience) {
            return new InlineLine(jobs);
        }

        @Override
        public Object place(byte[] key) {
            return this;
        }

        @Override
        public void close() {}
    }

    private static final class InlineLine implements Connector.Line {
        private final InlineJobs jobs;
        private final Deque<byte[][]> asked = new ArrayDeque<>();

        InlineLine(InlineJobs jobs) {
            this.jobs = jobs;
        }

        @Override
        public void send(List<byte[][]> commands) {
            asked.addAll(commands);
        }

        @Override
        public Object read() {
            return jobs.run(asked.removeFirst());
        }

        @Override
        public void cut() {
            asked.clear();
        }
    }
}

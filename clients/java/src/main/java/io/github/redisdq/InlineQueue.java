package io.github.redisdq;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Queues for tests, without a server: {@code add} runs the handler at once, whatever the delay, and throws what it throws. */
public final class InlineQueue {
    private InlineQueue() {}

    public static DqQueue of(String name, Handler<?>... handlers) {
        return DqQueue.on(new Inline(new Handlers(List.of(handlers))), name);
    }

    private record Inline(Handlers handlers) implements Connector {
        @Override
        public List<Object> call(List<byte[][]> commands, Duration patience) {
            List<Object> replies = new ArrayList<>();
            commands.forEach(words -> replies.add(run(words)));
            return replies;
        }

        private Object run(byte[][] words) {
            String command = new String(words[0], StandardCharsets.UTF_8);
            if (!command.equals("DQ.ADD")) {
                return new ServerException(command + " needs a server: see DqServer");
            }
            byte[] id = words[2];
            long now = System.currentTimeMillis();
            List<Object> row = Arrays.asList(id, words[3], Bytes.of(1), 1L, now + 60_000, now);
            Job job = new Job(words[1], row, Codec.json(), null);
            job.handler = handlers.choose(job);
            if (job.handler == null) {
                throw new DqException("no handler for jobs of kind " + job.kind());
            }
            try {
                job.handler.run(List.of(job));
            } catch (RuntimeException error) {
                throw error;
            } catch (Exception error) {
                throw new DqException("the handler failed: " + error, error);
            }
            if (job.failure != null) {
                throw new DqException("the handler failed: " + job.failure, job.failure);
            }
            return id;
        }

        @Override
        public Line connect(byte[] key, Duration patience) {
            throw new ConfigurationException("a worker needs a server: see DqServer");
        }

        @Override
        public Object place(byte[] key) {
            return this;
        }

        @Override
        public void close() {}
    }
}

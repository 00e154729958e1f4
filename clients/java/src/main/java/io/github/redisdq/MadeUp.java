package io.github.redisdq;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;

/** In place of a server: it delivers one job, which is made up. */
final class MadeUp implements Connector {
    private static final Object CUT = new Object();

    private final AtomicBoolean isDelivered = new AtomicBoolean();

    @Override
    public List<Object> call(List<byte[][]> commands, Duration patience) {
        throw new DqException("there is no server");
    }

    @Override
    public Line connect(byte[] key, Duration patience) {
        LinkedBlockingQueue<Object> replies = new LinkedBlockingQueue<>();
        return new Line() {
            @Override
            public void send(List<byte[][]> commands) {
                commands.forEach(words -> answer(words, replies));
            }

            @Override
            public Object read() {
                try {
                    Object reply = replies.take();
                    if (reply != CUT) {
                        return reply;
                    }
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
                throw new DqException("it is over");
            }

            @Override
            public void cut() {
                replies.add(CUT);
            }
        };
    }

    private void answer(byte[][] words, LinkedBlockingQueue<Object> replies) {
        if (!Bytes.text(words[0]).equals("DQ.BPOP")) {
            replies.add(Bytes.text(words[0]).equals("CLIENT") ? 1L : List.of(1L));
        } else if (isDelivered.compareAndSet(false, true)) {
            long now = System.currentTimeMillis();
            List<Object> terms = Arrays.asList(Terms.USUAL_TTR_MS, 0L, null);
            List<Object> row = Arrays.asList(
                    Bytes.of("1"), Bytes.of("{\"a\":1}"), Bytes.of("1"), 1L, now + Terms.USUAL_TTR_MS, now, List.of(), List.of(), terms);
            replies.add(List.of(words[1], List.of(row)));
        } // a later one waits until it is cut
    }

    @Override
    public Object place(byte[] key) {
        return this;
    }

    @Override
    public void close() {}
}

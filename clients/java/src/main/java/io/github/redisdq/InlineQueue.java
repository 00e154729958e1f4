package io.github.redisdq;

/**
 * Queues in memory, which are gone.
 *
 * @deprecated {@link TestJob} runs a handler without a server; what needs a queue is tested with
 *     {@link io.github.redisdq.testing.DqServer}, which starts in under a second
 */
@Deprecated(forRemoval = true)
public final class InlineQueue {
    private InlineQueue() {}

    public static DqQueue of(String name, Handler<?>... handlers) {
        throw new UnsupportedOperationException("queues in memory are gone: run a handler by TestJob.of(data).run(handler), "
                + "and test what needs a queue with DqServer");
    }
}

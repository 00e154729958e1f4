package io.github.redisdq;

/** A job whose bytes and id are made, and that is still to be sent: see {@link Queue#prepare}. */
public final class Prepared {
    private final Queue queue;
    private final Adding adding;

    Prepared(Queue queue, Adding adding) {
        this.queue = queue;
        this.adding = adding;
    }

    /** What it was given, or what the library made for it. */
    public String id() {
        return adding.id();
    }

    /** Adds it, and answers as {@link Queue#add}. A delay counts from now. */
    public String send() {
        return queue.send(adding);
    }
}

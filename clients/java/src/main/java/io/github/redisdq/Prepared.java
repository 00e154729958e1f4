package io.github.redisdq;

/** A job whose bytes and id are made, and that is still to be sent: see {@link DqQueue#prepare}. */
public final class Prepared {
    private final DqQueue queue;
    private final Adding adding;

    Prepared(DqQueue queue, Adding adding) {
        this.queue = queue;
        this.adding = adding;
    }

    /** What it was given, or what the library made for it. */
    public String id() {
        return adding.id();
    }

    /** Adds it, and answers as {@link DqQueue#add}. A delay counts from now. */
    public String send() {
        return queue.send(adding);
    }
}

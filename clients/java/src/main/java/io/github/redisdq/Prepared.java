package io.github.redisdq;

/** A job that is encoded and has its id, and has not been sent: see {@link DqQueue#prepare}. */
public final class Prepared {
    private final DqQueue queue;
    private final Adding adding;

    Prepared(DqQueue queue, Adding adding) {
        this.queue = queue;
        this.adding = adding;
    }

    /** The job's id: the given one, or the one that the library made. */
    public String id() {
        return adding.id();
    }

    /** Adds the job, and returns what {@link DqQueue#add} returns. A delay counts from now. */
    public String send() {
        return queue.send(adding);
    }
}

package io.github.redisdq;

import java.util.function.Function;

/** A job that is encoded and has its id, and has not been sent: see {@link DqQueue#prepare}. */
public final class Prepared {
    private final Adding adding;
    private final Function<Adding, String> send;

    Prepared(Adding adding, Function<Adding, String> send) {
        this.adding = adding;
        this.send = send;
    }

    /** The job's id: the given one, or the one that the library made. */
    public String id() {
        return adding.id();
    }

    /** Adds the job, and returns what {@link DqQueue#add} returns. A delay counts from now. */
    public String send() {
        return send.apply(adding);
    }
}

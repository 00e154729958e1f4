package io.github.redisdq;

import java.util.List;
import java.util.function.Supplier;

/** Jobs that are encoded and have their ids, and have not been sent: see {@link DqQueue#prepareMany}. */
public final class PreparedMany {
    private final List<Adding> all;
    private final Supplier<List<String>> send;

    PreparedMany(List<Adding> all, Supplier<List<String>> send) {
        this.all = all;
        this.send = send;
    }

    /** The jobs' ids: the given ones, or those that the library made. */
    public List<String> ids() {
        return all.stream().map(Adding::id).toList();
    }

    /** Adds the jobs, and returns what {@link DqQueue#addMany} returns. Delays count from now. */
    public List<String> send() {
        return send.get();
    }
}

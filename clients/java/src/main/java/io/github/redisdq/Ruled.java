package io.github.redisdq;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;

/** The rules beside handlers, which a worker says when it starts, as each other one does. */
final class Ruled {
    private final Shards shards;
    private final Watch watch;
    private final Deque<Words> unsaid = new ArrayDeque<>();

    Ruled(DqQueue queue, List<Handler<?>> handlers, Watch watch) {
        this.shards = queue.shards;
        this.watch = watch;
        for (Handler<?> each : handlers) {
            if (each.rule() != null) {
                unsaid.add(new Adding(queue.adds, each.rule().data, options(each)).words());
            }
        }
    }

    private static JobOptions options(Handler<?> handler) {
        JobOptions said = handler.rule().options;
        if (said.kind() != null && !said.kind().equals(handler.kind())) {
            throw new IllegalArgumentException("the kind of a rule is its handler's: leave out kind " + said.kind());
        }
        if (said.id() == null && handler.kind() == null) {
            throw new IllegalArgumentException("a rule needs an id, or its handler a kind: Handler.kind(\"report\")");
        }
        return said.copy().kind(handler.kind()).id(Objects.requireNonNullElse(said.id(), handler.kind()));
    }

    boolean isSaid() {
        return unsaid.isEmpty();
    }

    /** Says them as soon as the server takes them; gives up when the worker stops. */
    void sayInTime() {
        for (int failures = 1; !isSaid() && !watch.isDraining(); failures++) {
            Throwable error = Guard.call(this::say);
            if (error instanceof ConfigurationException) {
                watch.failed(error);
                return;
            }
            if (error != null) { // the links say what is wrong
                watch.rest(Trouble.pause(failures));
            }
        }
    }

    /** Throws a ConfigurationException for a rule that the server refuses: it would be missed at night. */
    void say() {
        while (!isSaid()) {
            try {
                shards.one(unsaid.getFirst());
            } catch (RefusedException said) {
                bear(said);
            }
            unsaid.pollFirst();
        }
    }

    private void bear(RefusedException said) {
        if (watch.isForbidden(said, "DQ.ADD", "the rules of handlers are not said")) {
            unsaid.clear();
        } else if (said.answer().contains("UNTIL is before the first occurrence")) {
            Guard.info("a rule is over: " + said.getMessage());
        } else if (Trouble.isFull(said) || said.begins("OOM")) {
            Guard.warn("a rule is not said until the next start: " + said.getMessage());
        } else if (Trouble.isRefusal(said)) {
            throw new ConfigurationException(said.getMessage(), said);
        } else {
            ConfigurationException fatal = Trouble.fatal(said);
            throw fatal == null ? said : fatal;
        }
    }
}

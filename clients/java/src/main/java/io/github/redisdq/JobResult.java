package io.github.redisdq;

import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** How a job ended that another job, or a program, waited for. */
public final class JobResult {
    private final String id;
    private final JobOutcome outcome;
    private final byte[] raw;
    private final Codec codec;

    JobResult(String id, JobOutcome outcome, byte[] raw, Codec codec) {
        this.id = id;
        this.outcome = outcome;
        this.raw = raw;
        this.codec = codec;
    }

    /** Reads rows of {@code [id, outcome, value]}. */
    static List<JobResult> all(Object rows, Codec codec) {
        if (Reply.list(rows).isEmpty()) {
            return List.of();
        }
        List<JobResult> found = new ArrayList<>();
        for (Object each : Reply.list(rows)) {
            List<Object> row = Reply.list(each);
            found.add(new JobResult(Reply.text(row.get(0)), JobOutcome.of(row.get(1)), (byte[]) row.get(2), codec));
        }
        return found;
    }

    public String id() {
        return id;
    }

    public JobOutcome outcome() {
        return outcome;
    }

    public boolean isDone() {
        return outcome == JobOutcome.DONE;
    }

    /**
     * The job's result; null if it has none, and for a job that is not done.
     *
     * @throws PayloadException if the codec cannot decode it
     */
    public <T> T value(Class<T> type) {
        return value((Type) type);
    }

    /** As {@link #value(Class)}, for a type with parameters. */
    public <T> T value(Type type) {
        return isDone() ? Values.decode(codec, raw, type) : null;
    }

    /** Why the job is dead; null otherwise. */
    public String reason() {
        return outcome == JobOutcome.DEAD ? Reply.prose(raw) : null;
    }

    byte[] raw() {
        return raw;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof JobResult it && id.equals(it.id) && outcome == it.outcome && Arrays.equals(raw, it.raw);
    }

    @Override
    public int hashCode() {
        return id.hashCode();
    }

    @Override
    public String toString() {
        return id + ": " + outcome.word();
    }
}

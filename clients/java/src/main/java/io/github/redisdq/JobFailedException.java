package io.github.redisdq;

/** A job whose result was asked for has none: it is dead, was deleted, has expired, or is unknown. */
public final class JobFailedException extends DqException {
    private static final String UNKNOWN =
            "it ended before without being kept, or was never there: add it with KEEP (JobOptions.keep), or give the queue a DONETTL";

    private final String id;
    private final JobOutcome outcome;
    private final String reason;

    JobFailedException(String id, JobOutcome outcome, String reason) {
        super("job " + id + " is " + outcome.word() + text(outcome, reason), null);
        this.id = id;
        this.outcome = outcome;
        this.reason = reason;
    }

    private static String text(JobOutcome outcome, String reason) {
        String said = outcome == JobOutcome.UNKNOWN ? UNKNOWN : reason;
        return said == null ? "" : ": " + said;
    }

    public String id() {
        return id;
    }

    /** Any outcome except {@link JobOutcome#DONE}. */
    public JobOutcome outcome() {
        return outcome;
    }

    /** Why the job is dead; null otherwise. */
    public String reason() {
        return reason;
    }
}

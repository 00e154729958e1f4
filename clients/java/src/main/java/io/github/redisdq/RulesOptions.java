package io.github.redisdq;

/** Options of {@link DqQueue#rules(String, java.util.Map, RulesOptions)}. */
public final class RulesOptions {
    private boolean isPruning;
    private boolean mayBeEmpty;
    private boolean isDry;

    /**
     * Removes the program's other rules, but none that is reserved, and none that was said within ten minutes, as by
     * workers of the version before. For a deploy.
     */
    public RulesOptions prune() {
        isPruning = true;
        return this;
    }

    /** Prunes even if there are no rules. */
    public RulesOptions allowEmpty() {
        mayBeEmpty = true;
        return this;
    }

    /** Changes nothing. */
    public RulesOptions dryRun() {
        isDry = true;
        return this;
    }

    boolean prunes(boolean isEmpty) {
        return isPruning && (!isEmpty || mayBeEmpty);
    }

    boolean isDry() {
        return isDry;
    }
}

package io.github.redisdq;

/** A rule of {@link DqQueue#rules}: its name there makes the id, which the options do not have. */
public record NewRule(Rule rule, Object data, JobOptions options) {
    public NewRule(Rule rule, Object data) {
        this(rule, data, JobOptions.create());
    }
}

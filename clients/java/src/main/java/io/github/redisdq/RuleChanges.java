package io.github.redisdq;

import java.util.List;

/**
 * What {@link DqQueue#rules} did, or would do: names of rules, in order.
 *
 * @param unknown Rules of the program that the set does not have, and that stay.
 */
public record RuleChanges(
        List<String> added, List<String> changed, List<String> kept, List<String> removed, List<String> unknown) {}

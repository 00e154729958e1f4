package io.github.redisdq;

import java.util.List;

/** One step of a scan: the next cursor ("0" at the end) and what was found. */
public record Page<T>(String cursor, List<T> found) {}

package io.github.redisdq;

/** A group that holds jobs. */
public record Group(String name, long waiting, long reserved) {}

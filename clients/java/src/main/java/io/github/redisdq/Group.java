package io.github.redisdq;

import java.util.List;

/** A group that holds jobs. */
public record Group(String name, long waiting, long reserved) {
    static Group of(List<Object> row) {
        return new Group(Reply.text(row.get(0)), Reply.number(row.get(1)), Reply.number(row.get(2)));
    }
}

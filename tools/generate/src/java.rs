//! The options of the Java library, and what its probe reads of them.

use crate::head::{by, OfRows, FROM};
use crate::row::Row;
use crate::shape::{camel, lines, Shape};

pub const FILES: &[OfRows] = &[
    (
        "clients/java/src/main/java/io/github/redisdq/Said.java",
        options,
    ),
    (
        "clients/java/tests/src/test/java/io/github/redisdq/probe/Said.java",
        probe,
    ),
];

fn options(rows: &[Row]) -> String {
    let name = |row: &Row| camel(row.name());
    let kind = |row: &Row| match row.shape() {
        Shape::Duration { .. } => "Duration",
        Shape::Number { most, .. } if most > i64::from(u32::MAX) => "Long",
        Shape::Number { .. } => "Integer",
        Shape::Text { .. } => "String",
        Shape::Ladder => "List<Duration>",
    };
    let bounds = rows.iter().filter_map(|row| {
        let (least, most) = match row.shape() {
            Shape::Duration { least } => (least, "(1L << 42) - 1".to_owned()),
            Shape::Number { least, most } => (least, format!("{most}L")),
            Shape::Text { most } => (1, most.to_string()),
            Shape::Ladder => return None,
        };
        Some(format!(
            "            Map.entry({:?}, new long[] {{{least}, {most}}})",
            row.word()
        ))
    });
    let bounds: Vec<String> = bounds.collect();
    let fields = lines(rows, |row| format!("    {} {};\n", kind(row), name(row)));
    let methods = lines(rows, |row| {
        let name = name(row);
        let (kind, value) = match kind(row) {
            "Integer" => ("int", name.clone()),
            "Long" => ("long", name.clone()),
            "List<Duration>" => ("Duration...", format!("List.of({name})")),
            kind => (kind, name.clone()),
        };
        format!(
            "
    /** {} */
    public T {name}({kind} {name}) {{
        this.{name} = {value};
        return self();
    }}
",
            row.about
        )
    });
    let words = lines(rows, |row| {
        format!("        words.accept({:?}, {});\n", row.word(), name(row))
    });
    format!(
        "package io.github.redisdq;

// {by}

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

/** What a job may have. */
abstract class Said<T extends Said<T>> {{
    /** Of durations in ms, of texts in bytes. */
    static final Map<String, long[]> BOUNDS = Map.ofEntries(
{bounds});

{fields}
    abstract T self();
{methods}
    void say(BiConsumer<String, Object> words) {{
{words}    }}
}}
",
        by = by(FROM),
        bounds = bounds.join(",\n"),
    )
}

fn probe(rows: &[Row]) -> String {
    let read = lines(rows, |row| {
        let (option, name) = (camel(row.name()), row.name());
        let value = match row.shape() {
            Shape::Duration { .. } => format!("Calls.duration(args, {name:?})"),
            Shape::Number { most, .. } if most > i64::from(u32::MAX) => {
                format!("args.get({name:?}).asLong()")
            }
            Shape::Number { .. } => format!("args.get({name:?}).asInt()"),
            Shape::Text { .. } => format!("args.get({name:?}).asText()"),
            Shape::Ladder => format!("Calls.durations(args.get({name:?}))"),
        };
        format!(
            "        if (args.hasNonNull({name:?})) {{\n            options.{option}({value});\n        }}\n"
        )
    });
    format!(
        "package io.github.redisdq.probe;

// {by}

import com.fasterxml.jackson.databind.JsonNode;
import io.github.redisdq.JobOptions;

final class Said {{
    private Said() {{}}

    static void say(JsonNode args, JobOptions options) {{
{read}    }}
}}
",
        by = by(FROM)
    )
}

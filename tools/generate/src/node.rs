//! The options of the Node.js library.

use crate::head::{by, OfRows, FROM};
use crate::row::Row;
use crate::shape::{camel, capital, corrections, lines, Shape};

pub const FILES: &[OfRows] = &[("clients/node/src/joboptions.ts", options)];

fn options(rows: &[Row]) -> String {
    let name = |row: &Row| camel(row.name());
    let kind = |row: &Row| match row.shape() {
        Shape::Duration { .. } => "Duration",
        Shape::Number { .. } => "number",
        Shape::Text { .. } => "string",
        Shape::Ladder => "readonly Duration[]",
    };
    let declared = lines(rows, |row| {
        format!("  /** {} */\n  {}?: {};\n", row.about, name(row), kind(row))
    });
    let names = lines(rows, |row| format!("  {}: 1,\n", name(row)));
    let corrected = corrections(rows, |row| {
        format!(
            "  /** {} */\n  {}?: {};\n",
            capital(&row.corrects()),
            name(row),
            kind(row)
        )
    });
    let corrected_names = corrections(rows, |row| format!("  {}: 1,\n", name(row)));
    let words = lines(rows, |row| {
        let given = format!("'{}', given.{}", row.word(), name(row));
        let words = match row.shape() {
            Shape::Duration { least } => format!("ms({given}, {least})"),
            Shape::Number { least, most } => format!("number({given}, {least}, {most})"),
            Shape::Text { most } => format!("named({given}, {most})"),
            Shape::Ladder => format!("ladder(given.{})", name(row)),
        };
        format!("    ...{words},\n")
    });
    format!(
        "// {by}

import type {{ Duration }} from './times';
import type {{ Word }} from './wire';
import {{ ladder, ms, named, number }} from './words';

/** What a job may have. */
export interface Said {{
{declared}}}

export const SAID: Record<keyof Said, 1> = {{
{names}}};

/** What of it is set anew for the current delivery. */
export interface Corrected {{
{corrected}}}

export const CORRECTED: Record<keyof Corrected, 1> = {{
{corrected_names}}};

export function said(given: Said): Word[] {{
  return [
{words}  ];
}}
",
        by = by(FROM)
    )
}

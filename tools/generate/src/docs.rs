//! Rows of the documents.

use crate::page::put;
use crate::row::{Kind, Row, Unsaid, LADDER_MAX};

pub const COMMANDS: &str = "docs/commands.md";
pub const LIBRARIES: &str = "docs/libraries.md";

/// The table of fields, with what the rows add to it. The words for the others are the page's own.
pub fn libraries(page: &str, rows: &[Row]) -> String {
    const HEADING: &str = "## Fields of a job";
    let mut page = page.to_owned();
    let lines = rows.iter().map(|row| {
        let begins = format!("| `{}` |", row.field());
        let mut there = page.lines().filter(|line| line.starts_with(&begins));
        let value = match there.next().and_then(|line| line.rsplit(" | ").next()) {
            Some(value) => value.trim_end_matches([' ', '|']).to_owned(),
            None => row.about.trim_end_matches('.').to_owned(),
        };
        let line = format!("{begins} {} | {value} |", row.field_kind());
        (begins, line)
    });
    let lines: Vec<_> = lines.collect();
    put(&mut page, HEADING, lines);
    page
}

pub fn commands(page: &str, rows: &[Row]) -> String {
    let mut page = page.to_owned();
    for (heading, before) in [
        ("\n## DQ.ADD\n", "DELAY ms | AT "),
        ("\n## DQ.MADD\n", "DELAY ms | AT "),
    ] {
        syntax(&mut page, heading, before, rows);
    }
    put(&mut page, "\n## DQ.ADD\n", rows.iter().map(option));
    put(&mut page, "\n## DQ.GET\n", rows.iter().map(field));
    page
}

/// As COMMAND DOCS shows it, without brackets.
fn usage(row: &Row) -> String {
    let word = row.word();
    match row.kind {
        Kind::Number { unit, .. } => format!("{word} {}", unit.to_string_lossy()),
        Kind::Text(_) => format!("{word} {}", row.name()),
        Kind::Ladder => format!("{word} count [ms ...]"),
    }
}

/// How the line begins that the option has in the table, and the line.
fn option(row: &Row) -> (String, String) {
    let bounds = match row.kind {
        Kind::Number { least, most, .. } => format!("{least} to {most}"),
        Kind::Text(most) => format!("1 to {most} bytes"),
        Kind::Ladder => format!("0 to {LADDER_MAX} steps, each of 1 to 4398046511103"),
    };
    let default = match row.unsaid {
        Unsaid::Is(number) => number.to_string(),
        Unsaid::OfQueue => "of the queue".to_owned(),
        Unsaid::Nothing(text) => text.to_owned(),
    };
    let line = format!(
        "| `{}` | {bounds} | {default} | {} |",
        usage(row),
        row.means
    );
    (format!("| `{} ", row.word()), line)
}

fn field(row: &Row) -> (String, String) {
    let kind = match row.kind {
        Kind::Number { .. } => "[Integer]",
        Kind::Text(_) => "[Bulk string]",
        Kind::Ladder => "[Array] of [Integer]",
    };
    let begins = format!("| `{}` |", row.field());
    let line = format!("{begins} {kind}: {} |", row.shows);
    (begins, line)
}

/// Writes the options into the syntax of a command: those of all rows stand behind that which begins with `before`.
fn syntax(page: &mut String, heading: &str, before: &str, rows: &[Row]) {
    const WIDTH: usize = 96;
    let from = page.find(heading).expect(heading) + heading.len() + "\n```\n".len();
    let to = from + page[from..].find("\n```").expect("the end of the syntax");
    let words = page[from..to].replace("\n ", "");
    let mut parts = Vec::new();
    for part in split(&words) {
        let word = part.trim_start_matches('[').split([' ', ']']).next();
        if !rows.iter().any(|row| Some(row.word()) == word) {
            let is_before = part.trim_start_matches('[').starts_with(before);
            parts.push(part);
            if is_before {
                parts.extend(rows.iter().map(|row| format!("[{}]", usage(row))));
            }
        }
    }
    let mut lines = vec![String::new()];
    for part in parts {
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && last.len() + 1 + part.len() > WIDTH {
            lines.push(format!("  {part}"));
        } else {
            let gap = if last.is_empty() { "" } else { " " };
            *last = format!("{last}{gap}{part}");
        }
    }
    page.replace_range(from..to, &lines.join("\n"));
}

/// Words, and what stands in brackets as one.
fn split(words: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for char in words.chars() {
        match char {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        match char {
            ' ' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut().expect("there is one").push(char),
        }
    }
    parts
}

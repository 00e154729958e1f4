//! Rows of the documents.

use crate::page::{first_words, put};
use crate::row::{Kind, Row, Unsaid, LADDER_MAX};
use std::io;

pub const COMMANDS: &str = "docs/commands.md";
pub const LIBRARIES: &str = "docs/libraries.md";
const ADD: &str = "\n## DQ.ADD\n";
const MADD: &str = "\n## DQ.MADD\n";
const FIELDS: &str = "## Fields of a job";

/// The options and fields that no table has, as the commands name them; `rule` is several of these to the libraries.
pub fn by_hand(read: impl Fn(&str) -> io::Result<String>) -> io::Result<Vec<String>> {
    let (add, get) = (read("src/commands/add.rs")?, read("src/commands/get.rs")?);
    let options = add.split("options! { ADD: ").nth(1).expect("the options");
    let options = options
        .split([' ', '}'])
        .take_while(|word| !word.is_empty());
    let fields = get.split("fields.").skip(1);
    let fields = fields.filter_map(|it| it.split_once("(\"")?.1.split('"').next());
    Ok(options
        .chain(fields)
        .chain(["rule"])
        .map(str::to_owned)
        .collect())
}

/// Each row and each option of the pages is one of the table, or by hand. One that was taken out of the table is not.
pub fn check((commands, libraries): (&str, &str), rows: &[Row], by_hand: &[String]) {
    const GET: &str = "\n## DQ.GET\n";
    for (page, heading, words) in [
        (COMMANDS, ADD, first_words(commands, ADD)),
        (COMMANDS, ADD, optional_words(commands, ADD)),
        (COMMANDS, MADD, optional_words(commands, MADD)),
        (COMMANDS, GET, first_words(commands, GET)),
        (LIBRARIES, FIELDS, first_words(libraries, FIELDS)),
    ] {
        for word in words {
            let is_of_table = |row: &Row| [row.word(), row.field()].contains(&word);
            let is_there = rows.iter().any(is_of_table);
            assert!(
                is_there || by_hand.iter().any(|it| it == word),
                "{page}: `{word}` below \"{}\" is no option or field any more: delete its row",
                heading.trim()
            );
        }
    }
}

/// The words that begin an option in a command's syntax, if the section begins with one.
fn optional_words<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let section = page.split_once(heading).expect(heading).1;
    let syntax = section.strip_prefix("\n```\n").unwrap_or("");
    let syntax = syntax.split("\n```").next().unwrap_or("");
    let parts = syntax.split('[').skip(1);
    let words = parts.filter_map(|part| part.split([' ', ']']).next());
    words
        .filter(|word| word.starts_with(char::is_uppercase))
        .collect()
}

/// The table of fields, with what the rows add to it. The words for the others are the page's own.
pub fn libraries(page: &str, rows: &[Row]) -> String {
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
    put(&mut page, FIELDS, lines);
    page
}

pub fn commands(page: &str, rows: &[Row]) -> String {
    let mut page = page.to_owned();
    for heading in [ADD, MADD] {
        syntax(&mut page, heading, "DELAY ms | AT ", rows);
    }
    put(&mut page, ADD, rows.iter().map(option));
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
    let words = page[from..to]
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
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

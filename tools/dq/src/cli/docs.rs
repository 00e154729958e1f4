//! What the server says of its commands (COMMAND DOCS): names to complete, options to show.

use std::collections::BTreeMap;

use dq_connect::reply::{array, bytes, text};
use redis::{Connection, Value};
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

#[derive(Default)]
pub struct Docs(BTreeMap<String, Doc>);

struct Doc {
    summary: String,
    /// Of its arguments, one for each.
    syntax: Vec<String>,
}

impl Docs {
    /// Nothing where the user may not ask, or the server is too old to know.
    pub fn of(connection: &mut Connection) -> Docs {
        let said = redis::cmd("COMMAND").arg("DOCS").query::<Value>(connection);
        let pairs = said.ok().map(|said| fields(&said)).unwrap_or_default();
        let docs = pairs.into_iter().map(|(name, said)| {
            let said: BTreeMap<_, _> = fields(&said).into_iter().collect();
            let syntax = said.get("arguments").and_then(array).unwrap_or_default();
            let doc = Doc {
                summary: said.get("summary").and_then(text).unwrap_or_default(),
                syntax: syntax.iter().map(syntax_of).collect(),
            };
            (name.to_uppercase(), doc)
        });
        Docs(docs.collect())
    }

    pub fn help(&self, command: &str) -> Option<String> {
        let name = command.trim().to_uppercase();
        let doc = self.0.get(&name)?;
        Some(format!(
            "\n  {name} {}\n  {}\n\n",
            doc.syntax.join(" "),
            doc.summary
        ))
    }

    /// Words of a command's options that begin so.
    fn options(&self, command: &str, begin: &str) -> Vec<String> {
        let syntax = self
            .0
            .get(command)
            .map(|doc| doc.syntax.join(" "))
            .unwrap_or_default();
        let words = syntax.split(|it: char| !(it.is_ascii_alphanumeric() || it == '-'));
        let is_word =
            |it: &&str| it.len() > 1 && it.chars().all(|it| it.is_ascii_uppercase() || it == '-');
        let mut found: Vec<_> = words
            .filter(is_word)
            .filter(|it| it.starts_with(begin))
            .map(str::to_owned)
            .collect();
        found.sort();
        found.dedup();
        found
    }
}

impl Completer for Docs {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let line = &line[..at];
        let from = line.rfind(' ').map_or(0, |blank| blank + 1);
        let begin = line[from..].to_uppercase();
        let mut before = line[..from].split_whitespace().map(str::to_uppercase);
        let found = match before.next().filter(|word| word != "HELP") {
            Some(command) if !begin.is_empty() => self.options(&command, &begin),
            Some(_) => Vec::new(),
            None => self
                .0
                .keys()
                .filter(|name| name.starts_with(&begin))
                .cloned()
                .collect(),
        };
        Ok((from, found))
    }
}

impl Hinter for Docs {
    type Hint = String;

    /// The arguments that are left.
    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<String> {
        let is_at_word = line.ends_with(' ') && at == line.len();
        let words: Vec<_> = line.split_whitespace().collect();
        let doc = self
            .0
            .get(&words.first()?.to_uppercase())
            .filter(|_| is_at_word)?;
        let left = doc.syntax.get(words.len() - 1..)?;
        (!left.is_empty()).then(|| left.join(" "))
    }
}

impl Highlighter for Docs {
    fn highlight_hint<'h>(&self, hint: &'h str) -> std::borrow::Cow<'h, str> {
        format!("\x1b[90m{hint}\x1b[0m").into()
    }
}

impl Validator for Docs {}
impl Helper for Docs {}

/// Of a map, in RESP2 an array.
fn fields(value: &Value) -> Vec<(String, Value)> {
    let named = |key: &Value, value: &Value| {
        let name = bytes(key)?;
        Some((printable(&name), value.clone()))
    };
    match value {
        Value::Map(pairs) => pairs
            .iter()
            .filter_map(|(key, value)| named(key, value))
            .collect(),
        other => {
            let flat = array(other).unwrap_or_default();
            flat.chunks_exact(2)
                .filter_map(|pair| named(&pair[0], &pair[1]))
                .collect()
        }
    }
}

/// What a server says goes to the terminal.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|it| !it.is_control())
        .collect()
}

/// As the reference writes it: `key`, `[DELAY ms]`, `id [id ...]`, `A | B`.
fn syntax_of(argument: &Value) -> String {
    let said: BTreeMap<_, _> = fields(argument).into_iter().collect();
    let word = |name: &str| said.get(name).and_then(bytes).map(|it| printable(&it));
    let flags: Vec<_> = said
        .get("flags")
        .and_then(array)
        .unwrap_or_default()
        .iter()
        .filter_map(text)
        .collect();
    let has = |flag: &str| flags.iter().any(|it| it == flag);
    let parts = said.get("arguments").and_then(array).unwrap_or_default();
    let parts: Vec<_> = parts.iter().map(syntax_of).collect();
    let kind = word("type").unwrap_or_default();
    let name = word("display_text")
        .or_else(|| word("name"))
        .unwrap_or_default();
    let value = match kind.as_str() {
        "pure-token" => String::new(),
        "oneof" => parts.join(" | "),
        "block" => parts.join(" "),
        _ => name,
    };
    let value = match has("multiple") {
        true if has("multiple_token") => value,
        true => format!("{value} [{value} ...]"),
        false => value,
    };
    let all = [word("token").unwrap_or_default(), value].join(" ");
    match has("optional") {
        true => format!("[{}]", all.trim()),
        false => all.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustyline::history::DefaultHistory;

    fn docs() -> Docs {
        let text = |it: &str| Value::BulkString(it.as_bytes().to_vec());
        let map = |pairs: &[(&str, Value)]| {
            Value::Array(
                pairs
                    .iter()
                    .flat_map(|(name, value)| [text(name), value.clone()])
                    .collect(),
            )
        };
        let flags = |it: &[&str]| {
            Value::Array(
                it.iter()
                    .map(|it| Value::SimpleString((*it).to_owned()))
                    .collect(),
            )
        };
        let arguments = Value::Array(vec![
            map(&[("name", text("key")), ("type", text("key"))]),
            map(&[
                ("name", text("ms")),
                ("type", text("integer")),
                ("token", text("DELAY")),
                ("flags", flags(&["optional"])),
            ]),
            map(&[
                ("name", text("id\x1b[2J")),
                ("type", text("string")),
                ("flags", flags(&["multiple"])),
            ]),
        ]);
        let syntax = array(&arguments).unwrap().iter().map(syntax_of).collect();
        let doc = Doc {
            summary: "Adds".to_owned(),
            syntax,
        };
        Docs([("DQ.ADD".to_owned(), doc)].into())
    }

    #[test]
    fn commands_and_options_are_completed_and_told() {
        let (docs, history) = (docs(), DefaultHistory::new());
        let context = Context::new(&history);
        let completed = |line: &str| docs.complete(line, line.len(), &context).unwrap();
        assert_eq!(completed("dq."), (0, vec!["DQ.ADD".to_owned()]));
        assert_eq!(completed("help dq"), (5, vec!["DQ.ADD".to_owned()]));
        assert_eq!(completed("dq.add q de"), (9, vec!["DELAY".to_owned()]));
        assert_eq!(completed("dq.pop q de").1, Vec::<String>::new());
        let hint = |line: &str| docs.hint(line, line.len(), &context);
        let left = "[DELAY ms] id[2J [id[2J ...]";
        assert_eq!(
            hint("dq.add q ").as_deref(),
            Some(left),
            "and no escape sequence of a server's"
        );
        assert_eq!(hint("dq.add q"), None);
        assert_eq!(
            docs.help("dq.add"),
            Some(format!("\n  DQ.ADD key {left}\n  Adds\n\n"))
        );
        assert_eq!(docs.help("get"), None);
    }
}

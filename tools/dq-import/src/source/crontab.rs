//! A crontab file: each of its lines becomes a recurring job.
//!
//! The payload is JSON: `{"command": ..., "stdin": ..., "user": ...}`, the last two only if the line has them.

use std::fs;
use std::io::Read;

use anyhow::{bail, Context, Result};
use serde::Serialize;

use super::scan::left;
use super::{Pass, Source};
use crate::entry::{id_from, Entry, Item, JobOptions, Rule};

const NO_ZONE: &str = "no CRON_TZ or TZ line precedes it: name its time zone (--tz)";
const AT_BOOT: &str = "@reboot is not a time: add the job when the program starts";
const NO_LINE: &str = "it is not a crontab line";

/// Names that crons know for the same rule.
const SAME: [(&str, &str); 2] = [("@annually", "@yearly"), ("@midnight", "@daily")];

pub struct Crontab {
    file: String,
    items: Vec<Item>,
    shown: bool,
    /// Variables that do not concern the time.
    others: Vec<String>,
}

#[derive(Serialize)]
struct Payload<'a> {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
}

impl Crontab {
    pub fn open(file: &str, zone: Option<&str>, system: bool) -> Result<Crontab> {
        let mut text = String::new();
        match file {
            "-" => std::io::stdin().read_to_string(&mut text).map(drop),
            path => fs::read_to_string(path).map(|read| text = read),
        }
        .with_context(|| file.to_owned())?;
        let mut crontab = Crontab {
            file: file.to_owned(),
            items: Vec::new(),
            shown: false,
            others: Vec::new(),
        };
        crontab.parse(&text, zone, system);
        Ok(crontab)
    }

    /// CRON_TZ applies to the lines after it, and so does TZ where there is no CRON_TZ.
    fn parse(&mut self, text: &str, zone: Option<&str>, system: bool) {
        let (mut cron_zone, mut other_zone) = (None, zone.map(str::to_owned));
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match variable(line) {
                Some(("CRON_TZ", value)) => cron_zone = Some(value.to_owned()),
                Some(("TZ", value)) => other_zone = Some(value.to_owned()),
                Some((name, _)) => self.others.push(name.to_owned()),
                None => {
                    let zone = cron_zone.as_deref().or(other_zone.as_deref());
                    self.items.push(item(line, zone, system));
                }
            }
        }
    }
}

/// `NAME = value`, as cron reads it.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim().trim_matches(['"', '\'']);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(is_name) || name.starts_with(char::is_numeric) {
        return None;
    }
    let value = value.trim();
    let bare = ['"', '\'']
        .iter()
        .find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
    Some((name, bare.unwrap_or(value)))
}

fn item(line: &str, zone: Option<&str>, system: bool) -> Item {
    let name = || line.as_bytes().to_vec();
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let Some((words, rest)) = words(line, fields + usize::from(system)) else {
        return left(name(), NO_LINE);
    };
    let (when, user) = words.split_at(fields);
    let expression = when.join(" ");
    if expression.eq_ignore_ascii_case("@reboot") {
        return left(name(), AT_BOOT);
    }
    let Some(zone) = zone else {
        return left(name(), NO_ZONE);
    };
    let same = SAME.iter().find(|(other, _)| *other == expression);
    let expression = same.map_or(expression, |(_, ours)| (*ours).to_owned());
    let (command, stdin) = command(rest);
    let user = user.first().copied();
    let id = id_of(&command, line);
    let payload = serde_json::to_vec(&Payload {
        command,
        stdin,
        user,
    });
    let rule = Rule {
        words: vec!["CRON".into(), expression, "TZ".into(), zone.into()],
        starts_ms: None,
    };
    Item::Job(Entry {
        id: id.clone(),
        payload: payload.unwrap_or_default(),
        due_ms: 0,
        version: rule.words.join(" ").into_bytes(),
        options: JobOptions {
            rule: Some(rule),
            ..JobOptions::default()
        },
        handle: id,
    })
}

/// The first `count` words, and the text after them; None without such text.
fn words(line: &str, count: usize) -> Option<(Vec<&str>, &str)> {
    let mut rest = line;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (word, after) = rest.split_once([' ', '\t'])?;
        words.push(word);
        rest = after.trim_start();
    }
    (!rest.is_empty()).then_some((words, rest))
}

/// A `%` ends the command, and the rest is its input, in which each further `%` is a line break; `\%` is a percent
/// sign.
fn command(text: &str) -> (String, Option<String>) {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let part = parts.last_mut().expect("one at least");
        match letter {
            '\\' if letters.peek() == Some(&'%') => part.extend(letters.next()),
            '%' => parts.push(String::new()),
            other => part.push(other),
        }
    }
    let command = parts.remove(0).trim_end().to_owned();
    let stdin = (!parts.is_empty()).then(|| parts.join("\n") + "\n");
    (command, stdin)
}

/// The program's name and a hash of the whole line, so the same line has the same id in every run.
fn id_of(command: &str, line: &str) -> Vec<u8> {
    let program = command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let shown: String = program.chars().take(100).collect();
    let hash = id_from(line.as_bytes());
    [shown.as_bytes(), b"-", &hash[..8]].concat()
}

impl Source for Crontab {
    fn title(&self) -> String {
        format!("the crontab {}", self.file)
    }

    fn exists(&mut self) -> Result<bool> {
        Ok(true)
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.items.len() as u64)
    }

    fn begin(&mut self, _: Pass) -> Result<()> {
        self.shown = false;
        Ok(())
    }

    fn next_page(&mut self) -> Result<Option<Vec<Item>>> {
        if self.shown {
            return Ok(None);
        }
        self.shown = true;
        Ok(Some(self.items.clone()))
    }

    fn delete(&mut self, _: &[Entry]) -> Result<Vec<bool>> {
        bail!("dq import does not change crontabs: remove the lines by hand (crontab -e)")
    }

    fn remark(&mut self) -> Result<Option<String>> {
        let others = self.others.join(", ");
        let remark = || format!("Not imported, because they are meant for the command: {others}.");
        Ok((!self.others.is_empty()).then(remark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, zone: Option<&str>, system: bool) -> Vec<Item> {
        let mut crontab = Crontab {
            file: String::new(),
            items: Vec::new(),
            shown: false,
            others: Vec::new(),
        };
        crontab.parse(text, zone, system);
        crontab.items
    }

    fn job(item: &Item) -> (String, String) {
        let Item::Job(entry) = item else {
            panic!("{item:?}");
        };
        let rule = entry.options.rule.as_ref().expect("a rule");
        let payload = String::from_utf8(entry.payload.clone()).expect("JSON");
        (rule.words.join(" "), payload)
    }

    #[test]
    fn lines_become_rules_in_the_zone_that_holds_for_them() {
        let text =
            "# comment\nMAILTO=root\nTZ = \"Europe/Berlin\"\n*/15 8-18\t* * 1-5 sync.sh a=b\n\
                    CRON_TZ=Asia/Tokyo\nTZ=UTC\n @midnight rotate.sh\n";
        let items = read(text, Some("Europe/Paris"), false);
        assert_eq!(
            [job(&items[0]), job(&items[1])],
            [
                (
                    "CRON */15 8-18 * * 1-5 TZ Europe/Berlin".into(),
                    r#"{"command":"sync.sh a=b"}"#.into()
                ),
                (
                    "CRON @daily TZ Asia/Tokyo".into(),
                    r#"{"command":"rotate.sh"}"#.into()
                )
            ]
        );
    }

    #[test]
    fn a_percent_sign_ends_the_command() {
        let items = read(
            "0 9 * * * root mail -s '50\\%' ann%Dear Ann,%%yes",
            Some("UTC"),
            true,
        );
        assert_eq!(
            job(&items[0]).1,
            r#"{"command":"mail -s '50%' ann","stdin":"Dear Ann,\n\nyes\n","user":"root"}"#
        );
    }

    #[test]
    fn what_is_no_time_stays() {
        for (line, why) in [
            ("@reboot start.sh", AT_BOOT),
            ("0 9 * * *", NO_LINE),
            ("@daily", NO_LINE),
            ("nonsense", NO_LINE),
            ("0 9 * * * x", NO_ZONE),
        ] {
            let items = read(line, None, false);
            assert!(
                matches!(items[0], Item::Left { why: it, .. } if it == why),
                "{line}"
            );
        }
    }

    #[test]
    fn the_same_command_at_two_times_is_two_jobs() {
        let items = read(
            "0 9 * * * /bin/a.sh\n0 10 * * * /bin/a.sh",
            Some("UTC"),
            false,
        );
        let ids: Vec<&Vec<u8>> = items
            .iter()
            .map(|item| match item {
                Item::Job(entry) => &entry.id,
                Item::Left { name, .. } => name,
            })
            .collect();
        assert!(ids.iter().all(|id| id.starts_with(b"a.sh-")), "{ids:?}");
        assert_ne!(ids[0], ids[1]);
    }
}

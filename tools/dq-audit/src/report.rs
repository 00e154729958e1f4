//! The text that is printed.

use std::fmt::{self, Write};

use crate::audit::Audit;
use crate::judge::Fault;
use crate::parts::Parts;
use crate::rule::Rule;

/// A line for each fault, up to a limit; then what was read, and what was found.
pub fn text(audit: &Audit, parts: &Parts, limit: usize, is_whole: bool) -> String {
    let mut text = String::new();
    for fault in audit.judge.faults().iter().take(limit) {
        line(&mut text, fault, parts);
    }
    for note in &audit.notes {
        let _ = writeln!(text, "note: {note}");
    }
    summary(&mut text, audit, is_whole);
    text
}

fn line(text: &mut String, fault: &Fault, parts: &Parts) {
    let file = parts
        .files
        .get(fault.at.part)
        .and_then(|path| path.file_name());
    let _ = write!(
        text,
        "{}:{}: {}: {}",
        file.unwrap_or_default().to_string_lossy(),
        fault.at.offset,
        fault.rule,
        Name(&fault.queue)
    );
    if fault.db != 0 {
        let _ = write!(text, " of database {}", fault.db);
    }
    if !fault.id.is_empty() {
        let _ = write!(text, ", job {}", Name(&fault.id));
    }
    let _ = writeln!(text, ": {}", fault.text);
}

fn summary(text: &mut String, audit: &Audit, is_whole: bool) {
    let (tally, keyspace) = (audit.judge.tally, &audit.keyspace);
    let _ = writeln!(
        text,
        "{} commands, {} effects on queues, {} deliveries; at the end {} queues with {} jobs",
        tally.commands,
        tally.effects,
        tally.deliveries,
        keyspace.queues(),
        keyspace.jobs(),
    );
    if tally.unknown > 0 {
        let _ = writeln!(
            text,
            "{} effects on earlier jobs, which are not checked",
            tally.unknown
        );
    }
    if tally.set_back > 0 {
        let _ = writeln!(text, "the clock was set back {} times", tally.set_back);
    }
    let counts = Rule::ALL.map(|rule| (rule, audit.judge.count(rule)));
    let found = counts.iter().filter(|(_, count)| *count > 0);
    let found: Vec<String> = found
        .map(|(rule, count)| format!("{rule} {count}"))
        .collect();
    let _ = match found.is_empty() {
        true if is_whole => writeln!(text, "no faults"),
        true => writeln!(text, "not read to the end: nothing is known of the rest"),
        false => writeln!(text, "faults: {}", found.join(", ")),
    };
}

/// Bytes as text that stays on one line.
struct Name<'a>(&'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        const SHOWN: usize = 64;
        let shown = &self.0[..self.0.len().min(SHOWN)];
        let dots = if shown.len() < self.0.len() {
            "..."
        } else {
            ""
        };
        write!(f, "\"{}{dots}\"", shown.escape_ascii())
    }
}

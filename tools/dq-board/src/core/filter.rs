//! Selects jobs: by state, a part of the id or of the payload, group, label, reason and age.

use dq_watch::read::detail::{Job, State};
use dq_watch::text::{escape, units};
use redis::Cmd;

use super::reasons;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub state: Option<State>,
    id: Vec<u8>,
    payload: Vec<u8>,
    group: Vec<u8>,
    label: Vec<u8>,
    /// A part of the reason, as [`plain`] has it.
    reason: String,
    /// The reason as `reasons` words it.
    kind: String,
    older_ms: Option<u64>,
    /// A part of the result's beginning.
    result: Vec<u8>,
    /// The signal that it waits for.
    awaits: Vec<u8>,
    /// Whether it waits for any signal.
    is_awaiting: bool,
    is_recurring: bool,
}

impl Filter {
    /// The filter of a question's words; None if one of them has no valid value.
    pub fn of<'a>(word: impl Fn(&str) -> &'a [u8]) -> Option<Filter> {
        let text = |name| std::str::from_utf8(word(name)).ok();
        let state = match text("state")? {
            "" | "all" => None,
            name => Some(State::named(name)?),
        };
        let older_ms = match text("older")? {
            "" => None,
            ms => Some(ms.parse().ok()?),
        };
        Some(Filter {
            state,
            id: word("id").to_owned(),
            payload: word("payload").to_owned(),
            group: word("group").to_owned(),
            label: word("label").to_owned(),
            reason: plain(text("reason")?.as_bytes()),
            kind: text("kind")?.to_owned(),
            older_ms,
            result: word("result").to_owned(),
            awaits: word("awaits").to_owned(),
            is_awaiting: false,
            is_recurring: false,
        })
    }

    pub fn of_state(state: State) -> Filter {
        Filter {
            state: Some(state),
            ..Filter::default()
        }
    }

    /// With this in the id.
    pub fn with_id(self, part: &[u8]) -> Filter {
        Filter {
            id: part.to_owned(),
            ..self
        }
    }

    pub fn awaiting() -> Filter {
        Filter {
            is_awaiting: true,
            ..Filter::default()
        }
    }

    pub fn recurring() -> Filter {
        Filter {
            is_recurring: true,
            ..Filter::default()
        }
    }

    /// Selects those of its jobs that are in this state.
    pub fn only(&self, state: State) -> Filter {
        Filter {
            state: Some(state),
            ..self.clone()
        }
    }

    /// Whether it selects every job.
    pub fn is_all(&self) -> bool {
        *self == Filter::default()
    }

    /// The id that was asked for, taken as a whole one.
    pub fn exact(&self) -> Option<&[u8]> {
        (!self.id.is_empty()).then_some(&self.id)
    }

    pub fn asks_for_payload(&self) -> bool {
        !self.payload.is_empty()
    }

    /// Whether the server cannot apply all of it, so that jobs must be read.
    pub fn needs_jobs(&self) -> bool {
        !self.reason.is_empty()
            || !self.kind.is_empty()
            || !self.result.is_empty()
            || self.older_ms.is_some()
    }

    /// Adds what the server itself can filter by.
    pub fn scan(&self, scan: &mut Cmd) {
        if let Some(state) = self.state {
            scan.arg("STATE").arg(state.word());
        }
        for (option, part) in [("MATCH", &self.id), ("PAYLOAD", &self.payload)] {
            if !part.is_empty() {
                scan.arg(option)
                    .arg([b"*".as_slice(), &quoted(part), b"*"].concat());
            }
        }
        if !self.group.is_empty() {
            scan.arg("GROUP").arg(&self.group);
        }
        if !self.label.is_empty() {
            scan.arg("LABEL").arg(quoted(&self.label));
        }
        if self.is_awaiting || !self.awaits.is_empty() {
            let any = self.awaits.is_empty();
            let name = if any {
                b"*".to_vec()
            } else {
                quoted(&self.awaits)
            };
            scan.arg("AWAITS").arg(name);
        }
        if let Some(word) = self.longest_word() {
            let part = [b"*".as_slice(), &quoted(word.as_bytes()), b"*"].concat();
            scan.arg("REASON").arg(part);
        }
        if self.is_recurring {
            scan.arg("RECURRING");
        }
    }

    /// Of the part of the reason the longest word that the server's bytes have as well: what was escaped, and how many
    /// spaces stand between words, only this program knows.
    fn longest_word(&self) -> Option<&str> {
        let begins = self.reason.char_indices();
        let head = begins.take_while(|(at, _)| *at < SURELY_KEPT).last();
        let end = head.map_or(0, |(at, letter)| at + letter.len_utf8());
        let words = self.reason[..end].split_whitespace();
        words
            .filter(|word| !word.contains(['\\', '…']))
            .max_by_key(|word| word.len())
    }

    /// Whether a job matches. The payload is not compared, as only its beginning was read.
    pub fn fits(&self, job: &Job, now_ms: i64) -> bool {
        let of_group = || job.group.as_ref() == Some(&self.group);
        let of_label = || job.label() == Some(self.label.as_slice());
        let result = || job.result.as_ref().map(|cut| cut.bytes.as_slice());
        let of_result = || contains(result().unwrap_or_default(), &self.result);
        let for_reason = || job.reason.as_deref().is_some_and(|it| self.has_reason(it));
        let of_kind = || reasons::of(job.reason.as_deref()) == self.kind;
        self.state.is_none_or(|state| state.word() == job.state)
            && contains(&job.id, &self.id)
            && (self.group.is_empty() || of_group())
            && (self.label.is_empty() || of_label())
            && (self.result.is_empty() || of_result())
            && (self.awaits.is_empty() || job.awaits.as_ref() == Some(&self.awaits))
            && (!self.is_awaiting || job.awaits.is_some())
            && (!self.is_recurring || job.rule.is_some())
            && (self.reason.is_empty() || for_reason())
            && (self.kind.is_empty() || of_kind())
            && self.older_ms.is_none_or(|ms| {
                let since = job.since_ms();
                since.is_some_and(|since| now_ms.saturating_sub(since) >= ms as i64)
            })
    }

    /// Of a reason that the server has cut, also if more than the rest of it is asked for.
    fn has_reason(&self, kept: &[u8]) -> bool {
        let is_cut = || kept.len() >= KEPT_AT_LEAST;
        let begins = || {
            let broken = kept.utf8_chunks().last().map_or(0, |it| it.invalid().len());
            let begin = plain(&kept[..kept.len() - broken]);
            !begin.is_empty() && self.reason.starts_with(&begin)
        };
        plain(kept).contains(&self.reason) || (is_cut() && begins())
    }

    /// The filter as the audit log has it.
    pub fn told(&self) -> String {
        let name = |bytes: &[u8]| escape::name(bytes);
        let words = [
            self.state.map(|state| format!("state {}", state.word())),
            some(&self.id).map(|part| format!("id contains {}", name(part))),
            some(&self.payload).map(|part| format!("payload contains {}", name(part))),
            some(&self.group).map(|group| format!("group {}", name(group))),
            some(&self.label).map(|label| format!("label {}", name(label))),
            some(&self.result).map(|part| format!("result contains {}", name(part))),
            some(&self.awaits).map(|signal| format!("awaits {}", name(signal))),
            some(self.reason.as_bytes()).map(|_| format!("reason contains {}", self.reason)),
            some(self.kind.as_bytes()).map(|_| format!("reason {}", self.kind)),
            self.older_ms
                .map(|ms| format!("older than {}", units::spaced(&units::millis(ms)))),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        match words.is_empty() {
            true => "all jobs".to_owned(),
            false => words.join(", "),
        }
    }
}

/// A reason as it is compared, so that it is found as it is copied from a page, a terminal or a log: what cannot be seen is
/// escaped, and a row of blanks, line ends among them, is one space.
fn plain(reason: &[u8]) -> String {
    let mut text = escape::line(reason);
    if text.contains('\\') {
        BLANKS.iter().for_each(|it| text = text.replace(it, " "));
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Blanks that are escaped where they are shown in one line.
const BLANKS: [&str; 8] = [
    r"\n",
    r"\r",
    r"\t",
    r"\x0b",
    r"\x0c",
    r"\u{85}",
    r"\u{2028}",
    r"\u{2029}",
];

/// The server keeps 1024 bytes of a reason. A library that cuts it before does so between two letters.
const KEPT_AT_LEAST: usize = 1024 - 3;

/// So much of a longer text is in what the server has kept, however many blanks were taken out here.
const SURELY_KEPT: usize = 256;

fn some(part: &[u8]) -> Option<&[u8]> {
    (!part.is_empty()).then_some(part)
}

fn contains(whole: &[u8], part: &[u8]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|it| it == part)
}

/// Quotes the bytes that have a meaning in a pattern.
pub fn quoted(part: &[u8]) -> Vec<u8> {
    let quote = |byte: &u8| match b"*?[]\\^-".contains(byte) {
        true => vec![b'\\', *byte],
        false => vec![*byte],
    };
    part.iter().flat_map(quote).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn filter(words: &[(&str, &'static str)]) -> Option<Filter> {
        let words: HashMap<&str, &str> = words.iter().copied().collect();
        Filter::of(|name| words.get(name).map_or(b"", |word| word.as_bytes()))
    }

    #[test]
    fn a_search_takes_every_byte_as_it_is() {
        assert_eq!(quoted(b"a*[\\\xff"), b"a\\*\\[\\\\\xff");
    }

    #[test]
    fn what_is_no_value_is_no_filter() {
        assert_eq!(filter(&[]), Some(Filter::default()));
        assert_eq!(filter(&[("state", "nonsense")]), None);
        assert_eq!(filter(&[("older", "-1")]), None);
        let told = filter(&[("state", "dead"), ("id", "a\n"), ("older", "60000")]).unwrap();
        assert_eq!(
            told.told(),
            "state dead, id contains a\\n, older than 1 min"
        );
    }

    #[test]
    fn a_reason_is_found_as_it_was_pasted() {
        let found = |kept: &[u8], pasted: &'static str| {
            let filter = filter(&[("reason", pasted)]).unwrap();
            let asked = filter.longest_word().unwrap_or_default().as_bytes();
            let reason = Some(kept.to_vec());
            let job = Job {
                reason,
                ..Job::default()
            };
            // The server applies its part first.
            contains(kept, asked) && filter.fits(&job, 0)
        };
        let kept =
            b"Traceback:\r\n\tFile \"a.py\"\x0b\xe2\x80\xa8ValueError: no\x1b[31m \xff room\n";
        for pasted in [
            "Traceback:\n\tFile \"a.py\"",
            "Traceback:\r\n        File \"a.py\"\n",
            "  Traceback: File \"a.py\" ValueError: no\u{1b}[31m",
            r#"Traceback:\r\n\tFile "a.py"\x0b\u{2028}ValueError: no\x1b[31m \xff room"#,
        ] {
            assert!(found(kept, pasted), "{pasted}");
        }
        assert!(!found(b"no File here", "File\thers"));
        // What the server has cut, in the middle of a letter, is known by its beginning.
        let line = "line of a long traceback \u{e9}\u{e9}\u{e9},\n    ";
        let whole: &str = line.repeat(40).leak();
        let longest: &str = format!("{whole}{}", "w".repeat(300)).leak();
        for end in 1021..=1024 {
            let cut = &whole.as_bytes()[..end];
            for pasted in [whole, longest, &whole[..900]] {
                assert!(found(cut, pasted), "{end}");
            }
        }
        assert!(
            !found(&whole.as_bytes()[..500], whole),
            "the server keeps more"
        );
    }

    #[test]
    fn the_server_is_asked_for_what_it_can_tell() {
        let mut scan = redis::cmd("DQ.SCAN");
        let words = [
            ("state", "dead"),
            ("id", "a*"),
            ("payload", "x"),
            ("group", "g*"),
            ("label", "l*"),
            ("awaits", "s*"),
            ("reason", r"no  room* \x00in"),
        ];
        filter(&words).unwrap().scan(&mut scan);
        let mut none = redis::cmd("DQ.SCAN");
        filter(&[]).unwrap().scan(&mut none);
        assert_eq!(none.args_iter().count(), 1, "nothing is left out");
        let words = scan.args_iter().map(|word| match word {
            redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        });
        let said = words.collect::<Vec<_>>().join(" ");
        assert_eq!(
            said,
            r"DQ.SCAN STATE dead MATCH *a\** PAYLOAD *x* GROUP g* LABEL l\* AWAITS s\* REASON *room\**"
        );
    }
}

//! What a request may say of a job: the options of DQ.ADD, from the table that the module reads. They stand in JSON, under
//! their names, or in headers: `Dq-` and the name.

use percent_encoding::percent_decode;
use serde_json::Value;

pub use row::LADDER_MAX;
use row::{Home, Kind, Row, ROWS};

/// The table itself.
#[path = "../../../../src/queue/attr/row.rs"]
#[allow(dead_code, reason = "others read the other columns")]
mod row;

const ID_BYTES: usize = 1024;
/// The last instant, and the longest duration.
pub const LAST: i64 = 4_398_046_511_103;

/// One thing that may be said.
#[derive(Clone, Copy)]
pub struct Said {
    pub name: &'static str,
    pub word: &'static str,
    pub shape: Shape,
    /// Whether DQ.MADD takes it.
    pub of_many: bool,
    pub about: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Shape {
    Number {
        least: i64,
        most: i64,
    },
    Text {
        most: usize,
    },
    Ladder,
    Ids {
        most: usize,
    },
    /// One of these; what it is in a command.
    Word(&'static [(&'static str, &'static str)]),
}

const fn by_hand(
    name: &'static str,
    word: &'static str,
    shape: Shape,
    about: &'static str,
) -> Said {
    Said {
        name,
        word,
        shape,
        of_many: false,
        about,
    }
}

const fn number(
    name: &'static str,
    word: &'static str,
    least: i64,
    most: i64,
    about: &'static str,
) -> Said {
    by_hand(name, word, Shape::Number { least, most }, about)
}

pub const ID: Said = by_hand(
    "id",
    "",
    Shape::Text { most: ID_BYTES },
    "The job's id; made up if it is left out.",
);
pub const IF_EXISTS: &str = "if_exists";
pub const AFTER: &str = "after";
pub const AFTER_GROUP: &str = "after_group";

/// Those that are not in the table, before and behind it.
const BEFORE: [Said; 3] = [
    Said {
        of_many: true,
        ..by_hand(
            IF_EXISTS,
            "",
            Shape::Word(&[
                ("refuse", "NX"),
                ("replace", "REPLACE"),
                ("only-replace", "XX"),
                ("next", "NEXT"),
            ]),
            "What happens if the queue has a job with this id.",
        )
    },
    Said {
        of_many: true,
        ..number(
            "delay",
            "DELAY",
            0,
            LAST,
            "Due so many milliseconds from now.",
        )
    },
    Said {
        of_many: true,
        ..number("at", "AT", 0, LAST, "Due at this instant.")
    },
];
const BEHIND: [Said; 10] = [
    by_hand(
        AFTER,
        "AFTER",
        Shape::Ids { most: 1000 },
        "The jobs that must have ended before.",
    ),
    by_hand(
        AFTER_GROUP,
        "AFTER GROUP",
        Shape::Text { most: 256 },
        "The group that must be empty before.",
    ),
    by_hand(
        "on_dead",
        "ONDEAD",
        Shape::Word(&[("wait", "WAIT"), ("run", "RUN"), ("die", "DIE")]),
        "What the job does if one of those dies.",
    ),
    number(
        "every",
        "EVERY",
        1000,
        LAST,
        "The job recurs every so many milliseconds.",
    ),
    by_hand(
        "cron",
        "CRON",
        Shape::Text { most: 1024 },
        "The job recurs whenever this expression matches.",
    ),
    by_hand(
        "tz",
        "TZ",
        Shape::Text { most: 256 },
        "The time zone of `cron`.",
    ),
    number(
        "until",
        "UNTIL",
        1,
        LAST,
        "No occurrence after this instant.",
    ),
    number(
        "times",
        "TIMES",
        1,
        i64::MAX,
        "The number of occurrences in all.",
    ),
    number(
        "grace",
        "GRACE",
        0,
        LAST,
        "An occurrence that is so late is skipped; 0: it waits.",
    ),
    number(
        "jitter",
        "JITTER",
        0,
        LAST,
        "Each occurrence is due up to so much later.",
    ),
];

/// All of them, in the order in which a command says them.
pub fn all() -> impl Iterator<Item = Said> {
    let of_table = ROWS.iter().map(Said::of_row);
    BEFORE.into_iter().chain(of_table).chain(BEHIND)
}

pub fn find(name: &str) -> Option<Said> {
    all().chain([ID]).find(|said| said.name == name)
}

/// The option that a reply of the server names.
pub fn in_reply(text: &str) -> Option<&'static str> {
    if text.contains(" id ") {
        return Some(ID.name);
    }
    let words = || text.split(|letter: char| !letter.is_ascii_uppercase());
    let is_there = |said: &Said| !said.word.is_empty() && words().any(|word| word == said.word);
    all().find(is_there).map(|said| said.name)
}

impl Said {
    fn of_row(row: &Row) -> Said {
        let shape = match row.kind {
            Kind::Number { least, most, .. } => Shape::Number { least, most },
            Kind::Text(most) => Shape::Text { most },
            Kind::Ladder => Shape::Ladder,
        };
        Said {
            name: row.name(),
            word: row.word(),
            shape,
            of_many: row.set_by.contains(&"MADD"),
            about: row.about,
        }
    }

    /// Whether a job without it never ends by itself: then the bound is said.
    pub fn is_unbounded(&self) -> bool {
        let row = ROWS.iter().find(|row| row.name() == self.name);
        row.is_some_and(|row| row.home == Home::Expires)
    }

    /// What a job has that does not say it, where that is a number.
    pub fn unsaid(&self) -> Option<i64> {
        let row = ROWS.iter().find(|row| row.name() == self.name)?;
        match row.unsaid {
            row::Unsaid::Is(number) => i64::try_from(number).ok(),
            _ => None,
        }
    }

    /// What numbers it may be, if it is one.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        match self.shape {
            Shape::Number { least, most } => Some((least, most)),
            _ => None,
        }
    }

    /// The header's name.
    pub fn header(&self) -> String {
        format!("dq-{}", self.name.replace('_', "-"))
    }

    /// The words of the command. None: it is not what is expected.
    pub fn words(&self, given: &Given) -> Option<Vec<Vec<u8>>> {
        let number = |it: &Given, (least, most)| {
            let number = it.number().filter(|it| (least..=most).contains(it));
            number.map(|it| it.to_string().into_bytes())
        };
        let text = |it: &Given, most| it.bytes().filter(|it| (1..=most).contains(&it.len()));
        let values = match self.shape {
            Shape::Number { least, most } => vec![number(given, (least, most))?],
            Shape::Text { most } => vec![text(given, most)?],
            Shape::Ladder => {
                let steps = given.list(|step| number(step, (1, LAST)));
                counted(steps.filter(|it| it.len() <= LADDER_MAX)?)
            }
            Shape::Ids { most } => {
                let ids = given.list(|id| text(id, ID_BYTES));
                counted(ids.filter(|it| (1..=most).contains(&it.len()))?)
            }
            Shape::Word(known) => {
                let said = given.bytes()?;
                let found = known.iter().find(|(name, _)| name.as_bytes() == said);
                vec![found?.1.into()]
            }
        };
        let word = self.word.split(' ').filter(|word| !word.is_empty());
        Some(word.map(Into::into).chain(values).collect())
    }

    /// What it may be, for who said something else.
    pub fn expected(&self) -> String {
        match self.shape {
            Shape::Number { least, most } => format!("a whole number from {least} to {most}"),
            Shape::Text { most } => format!("a text of 1 to {most} bytes"),
            Shape::Ladder => format!("at most {LADDER_MAX} numbers, each from 1 to {LAST}"),
            Shape::Ids { most } => format!("1 to {most} ids"),
            Shape::Word(known) => {
                let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                format!("one of {}", known.join(", "))
            }
        }
    }
}

fn counted(mut list: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    list.insert(0, list.len().to_string().into_bytes());
    list
}

/// A value as a request gives it.
#[derive(Clone, Debug)]
pub enum Given {
    Json(Value),
    /// Of a header: a list has commas, and other bytes than visible ASCII are written as `%` and two digits.
    Header(Vec<u8>),
}

impl Given {
    pub fn number(&self) -> Option<i64> {
        match self {
            Given::Json(value) => value.as_i64(),
            Given::Header(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        }
    }

    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Given::Json(value) => Some(value.as_str()?.as_bytes().to_vec()),
            Given::Header(text) => Some(percent_decode(text.trim_ascii()).collect()),
        }
    }

    pub fn list<T>(&self, one: impl Fn(&Given) -> Option<T>) -> Option<Vec<T>> {
        match self {
            Given::Json(value) => {
                let values = value.as_array()?.iter();
                values
                    .map(|value| one(&Given::Json(value.clone())))
                    .collect()
            }
            Given::Header(text) if text.trim_ascii().is_empty() => Some(Vec::new()),
            Given::Header(text) => {
                let parts = text.split(|&byte| byte == b',');
                parts
                    .map(|part| one(&Given::Header(part.to_vec())))
                    .collect()
            }
        }
    }
}

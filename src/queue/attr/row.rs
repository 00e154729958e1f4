//! The columns of the table of what a job may have. Depends on nothing, so that programs which are not built with the
//! module read the very same rows, by including this file as a module of theirs (`#[path]`).

use std::ffi::CStr;

/// Delays in a backoff ladder, at most.
pub const LADDER_MAX: usize = 1024;

/// One thing that a job may have.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Where it is in memory, in snapshots and in effects.
    pub home: Home,
    /// As in commands.
    pub word: &'static CStr,
    /// The option of the libraries, and the argument in COMMAND DOCS.
    pub name: &'static CStr,
    /// The field of DQ.GET.
    pub field: &'static CStr,
    /// What it is, and its bounds.
    pub kind: Kind,
    /// What a job has that does not say it.
    pub unsaid: Unsaid,
    /// The commands that say it; CFGSET as a default.
    pub set_by: &'static [&'static str],
    /// What it does not outlive, beside what its tag says.
    pub ends_with: &'static [&'static str],
    /// The limits that its bytes count for.
    pub counts_for: &'static [&'static str],
    /// The version.
    pub since: &'static str,
    /// For the libraries' users.
    pub about: &'static str,
    /// As an option of DQ.ADD, for docs/commands.md.
    pub means: &'static str,
    /// As a field of DQ.GET, for docs/commands.md.
    pub shows: &'static str,
}

/// See [`Row::home`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Among the job's tagged values. The tag's low bits: see `tagged.rs`.
    Tag(u32),
    /// The field of its terms.
    Priority,
    /// The field of its terms.
    Ttr,
    /// The field of its terms.
    Attempts,
    /// An instant of the job's own, so long after it was added.
    Expires,
    /// A name that the queue keeps once, under a number.
    Group,
}

/// See [`Row::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number. Of milliseconds, if the unit is `ms`.
    #[allow(missing_docs, reason = "as their names say")]
    Number {
        unit: &'static CStr,
        least: i64,
        most: i64,
    },
    /// Bytes, 1 to so many.
    Text(usize),
    /// Delays, of 1 ms or more, and at most [`LADDER_MAX`]. None at all are said, too: then neither the
    /// queue's nor the server's apply.
    Ladder,
}

/// See [`Row::unsaid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsaid {
    /// This number, which is not written down.
    Is(u64),
    /// What the queue's settings say.
    OfQueue,
    /// Nothing: how that reads.
    Nothing(&'static str),
}

const fn text(of: &'static CStr) -> &'static str {
    match of.to_str() {
        Ok(text) => text,
        Err(_) => "",
    }
}

impl Row {
    /// As in commands.
    pub const fn word(&self) -> &'static str {
        text(self.word)
    }

    /// The option of the libraries.
    pub const fn name(&self) -> &'static str {
        text(self.name)
    }

    /// The field of DQ.GET.
    pub const fn field(&self) -> &'static str {
        text(self.field)
    }
}

/// Of a newer version, as far as tests are concerned: the module that they break knows it, and what is generated with it.
pub const CANARY: Row = Row {
    home: Home::Tag(0x7f7),
    word: c"CANARY",
    name: c"canary",
    field: c"canary",
    kind: Kind::Text(64),
    unsaid: Unsaid::Nothing("none"),
    set_by: &["ADD", "MADD"],
    ends_with: &[],
    counts_for: &[],
    since: "9.9.9",
    about: "A text that no release has.",
    means: "A text that no release has.",
    shows: "a text that no release has; nil if it has none",
};

macro_rules! attributes {
    ($($name:ident { $($column:tt)* })*) => {
        /// All that the table has.
        pub const ROWS: &[Row] = &[$(Row { $($column)* }),*];
    };
}
include!("rows.rs");

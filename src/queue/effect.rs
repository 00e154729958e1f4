//! What happened: the facts that a replica, the AOF, snapshots, events and totals are made of.
//!
//! Every instant in them is absolute, every id and token explicit. A queue is the fold of its
//! effects: rules emit them on a master, and the same code applies them on a master, on a replica
//! and from a replayed AOF.

mod came;
mod change;
mod done;
mod ended;

use super::after::{After, Link, Moment, OnDead, Outcome};
use super::event::Event;
use super::history::Attempt;
use super::job::{Failure, State, Terms};
use super::note::Note;
use super::recurring::rule::Next;
use super::settings::{GroupSettings, Settings};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::{self, Write};

pub use came::{Came, How};
pub use change::{Change, DeathCause, EndCause, RemovalCause};
pub use done::{Completion, DoneJob, OfDone};
pub use ended::OccurrenceCause;

/// PAUSE without an end.
pub const FOREVER: u64 = u64::MAX;

/// One fact about a queue. Instants are unix-ms, lengths of time ms; `terms` were decided when the job was added.
#[allow(
    missing_docs,
    reason = "fields are named as in the commands that set them"
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect<'a> {
    /// A job came.
    Came(#[serde(borrow)] Came<'a>),
    /// Jobs came that are new and have the same options, each in place of one with the same id if there was one: that may
    /// be an earlier one of these jobs.
    CameTogether {
        #[serde(with = "serde_bytes", borrow)]
        group: Option<&'a [u8]>,
        due: u64,
        /// 0 is never.
        expires: u64,
        #[serde(borrow)]
        terms: Terms<'a>,
        #[serde(borrow)]
        jobs: Vec<Arrival<'a>>,
    },
    /// Something happened to one job.
    Job {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(borrow)]
        change: Change<'a>,
    },
    /// All settings, and the queue stays until DEL from then on, also without jobs. A dedupe window of 0 forgets all ids.
    Configured(Settings),
    /// The queue is paused until that instant, or [`FOREVER`], and stays until DEL. 0: the pause was ended.
    Paused { until: u64 },
    /// A job with this id was finished, and NX refuses the id until that instant.
    Remembered {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        until: u64,
    },
    /// NX accepts ids again that it was to refuse, or a group's pause has ended.
    Forgot(#[serde(borrow)] Forgotten<'a>),
    /// Numbers from which counting continues: order of adding, order of dying, tokens.
    Floors { seq: u64, death: u64, token: u64 },
    /// The key was removed with its last job.
    Dropped,
    /// Many jobs were removed at once.
    Purged(Purge),
    /// The server generated an id `<unix-ms>-<seq>`; its last token was `token` (0: unknown).
    Minted { ms: u64, seq: u64, token: u64 },
    /// Jobs as they stand, as rows (`queue/state/rows.rs`): all of them are loaded, or none.
    Rows {
        #[serde(with = "serde_bytes")]
        rows: &'a [u8],
    },
    /// An occurrence ended. Without a next one the job is gone.
    Recurred {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        ended: OccurrenceCause,
        next: Option<Next>,
        /// The failure of an occurrence that was nacked.
        #[serde(borrow)]
        failure: Option<Failure<'a>>,
    },
    /// A note of a job, in place of its note of this kind, or its step of this name.
    Noted {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(borrow)]
        note: Note<'a>,
    },
    /// What concerns done jobs.
    Done(#[serde(borrow)] OfDone<'a>),
    /// A job was given back, and is after others.
    Waits {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(borrow)]
        after: After<'a>,
    },
    /// A job that others are after is about to end with this outcome; or, without one, a group of this name that jobs are
    /// after has become empty.
    Over {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        outcome: Option<Outcome>,
        at: Moment,
        #[serde(with = "serde_bytes", borrow)]
        value: Option<&'a [u8]>,
    },
    /// Ends were carried out for `count` of the jobs that are after them. The flags say whether one of these jobs
    /// became ready, died, or gave its place to a successor.
    Stepped {
        count: u64,
        ready: bool,
        dead: bool,
        added: bool,
    },
    /// In a snapshot: how a job or a group that others were after has ended.
    End {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        outcome: Option<Outcome>,
        at: Moment,
        #[serde(with = "serde_bytes", borrow)]
        value: Option<&'a [u8]>,
    },
    /// In a snapshot: what a job is after.
    Links {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        on_dead: OnDead,
        is_timed: bool,
        of_group: bool,
        latest: Moment,
        #[serde(borrow)]
        links: Vec<Link<'a>>,
    },
    /// An attempt of a job failed, of which the job keeps the last `kept`.
    Failed {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(borrow)]
        attempt: Attempt<'a>,
        kept: u64,
    },
    /// All that a group has of its own, and the queue stays until DEL from then on, also without jobs. Nothing: what it
    /// had was taken away.
    Group {
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        own: GroupSettings,
    },
}

/// Which ids NX accepts again, or what else time has ended that WATCH does not hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Forgotten<'a> {
    /// This one, before its time in the dedupe window is over.
    Id(#[serde(with = "serde_bytes")] &'a [u8]),
    /// All that were to be refused until that instant or an earlier one.
    Until(u64),
    /// The pause of the group with this name.
    Pause(#[serde(with = "serde_bytes")] &'a [u8]),
}

/// Which jobs were removed at once.
#[allow(missing_docs, reason = "`cut` is the instant of the purge")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purge {
    /// All jobs of a state, or all. A job is delayed if it is due after `cut`, and reserved if its lease ends after
    /// `cut`.
    State { state: Option<State>, cut: u64 },
    /// Reserved jobs whose leases ended by `cut`, before that was carried out: those that would have become ready, or,
    /// with `dead`, those that would have died. Their TTL may have expired since.
    Overdue { dead: bool, cut: u64 },
    /// The `count` longest dead jobs, by DEADLEN.
    Trim { count: u64 },
}

impl Purge {
    fn events(self) -> &'static [Event] {
        match self {
            Purge::State { .. } | Purge::Trim { .. } => &[Event::Del],
            Purge::Overdue { dead: false, .. } => &[Event::Timeout, Event::Del],
            Purge::Overdue { dead: true, .. } => &[Event::Timeout, Event::Dead, Event::Del],
        }
    }
}

/// What one of the jobs of [`Effect::CameTogether`] has of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival<'a> {
    /// Its id.
    #[serde(with = "serde_bytes", borrow)]
    pub id: Cow<'a, [u8]>,
    /// Any bytes.
    #[serde(with = "serde_bytes")]
    pub payload: &'a [u8],
}

impl Effect<'_> {
    /// The variant's name, for the log: what it carries can be large, and private.
    pub fn name(&self) -> String {
        let mut name = Name(String::new());
        let _ = write!(name, "{self:?}");
        name.0
    }

    /// Whether applying it finds jobs by their ids, so that the index must exist. Not for what snapshots consist of.
    pub(super) fn needs_index(&self) -> bool {
        if let Effect::Done(of_done) = self {
            return of_done.needs_index();
        }
        !matches!(
            self,
            Effect::Rows { .. }
                | Effect::Floors { .. }
                | Effect::Configured(_)
                | Effect::Group { .. }
                | Effect::Paused { .. }
                | Effect::Remembered { .. }
                | Effect::Minted { .. }
        )
    }

    /// Whether a snapshot of this version or an older one may hold it.
    pub fn stands_in_snapshots(&self) -> bool {
        !self.needs_index() || self.is_kept_flow() || matches!(self, Effect::Noted { .. })
    }

    /// Whether it is how a snapshot says what jobs are after, and how that ended.
    pub(super) fn is_kept_flow(&self) -> bool {
        matches!(self, Effect::End { .. } | Effect::Links { .. })
    }

    /// Whether it touches a WATCH of the key. That an id leaves the dedupe window, or a pause ends, does not.
    pub fn touches(&self) -> bool {
        !matches!(self, Effect::Forgot(_))
    }

    /// The events that it raises wherever it is applied.
    pub fn events(&self) -> &'static [Event] {
        match self {
            Effect::Came(came) => came.events(),
            Effect::CameTogether { .. } => &[Event::Add],
            Effect::Waits { after, .. } if after.dies => &[Event::Dead],
            Effect::Stepped {
                ready, dead, added, ..
            } => stepped(*ready, *dead, *added),
            Effect::Recurred { ended, .. } => ended.events(),
            Effect::Job { change, .. } => change.events(),
            Effect::Purged(purge) => purge.events(),
            Effect::Done(of_done) => of_done.events(),
            _ => &[],
        }
    }
}

/// Takes what is written up to the first character that cannot be part of a name.
struct Name(String);

impl fmt::Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let name = text.trim_end_matches(|each: char| !each.is_ascii_alphanumeric());
        self.0.push_str(name);
        if name.len() < text.len() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

fn stepped(ready: bool, dead: bool, added: bool) -> &'static [Event] {
    const ALL: &[Event] = &[Event::Ready, Event::Dead, Event::SuccessorAdd];
    match (ready, dead, added) {
        (false, false, _) => &[],
        (true, false, _) => &ALL[..1],
        (false, true, false) => &ALL[1..2],
        (false, true, true) => &ALL[1..],
        (true, true, false) => &ALL[..2],
        (true, true, true) => ALL,
    }
}

//! What happened: the facts that a replica, the AOF, snapshots, events and totals are made of.
//!
//! Every instant in them is absolute, every id and token explicit. A queue is the fold of its
//! effects: what decides on a master emits them, and what carries them out is the same code on a
//! master, on a replica and in a replayed AOF.

mod change;
mod ended;

use super::event::Event;
use super::job::{Failure, Life, Place, State, Terms};
use super::recurring::rule::{Next, Round, Rule};
use super::settings::{GroupLimits, Settings};
use serde::{Deserialize, Serialize};

pub use change::{Change, Death, End, Removal};
pub use ended::Ended;

/// PAUSE without an end.
pub const FOREVER: u64 = u64::MAX;

/// One fact about a queue. Instants are unix-ms, lengths of time ms; `terms` is what was settled at the adding.
#[allow(
    missing_docs,
    reason = "fields are called as in the commands that set them"
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect<'a> {
    /// A job came, in place of one of the same id if there was one.
    Added {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        due: u64,
        /// 0 is never.
        expires: u64,
        #[serde(borrow)]
        terms: Terms<'a>,
    },
    /// Something happened to one job.
    Job {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        change: Change,
    },
    /// The queue stays until DEL, also without jobs.
    Kept,
    /// And stays. A dedupe window of 0 forgets all ids.
    Configured(Settings),
    /// Until that instant, or [`FOREVER`]; and stays.
    Paused { until: u64 },
    /// PAUSE is over.
    Resumed,
    /// The id was finished, and NX refuses it until that instant.
    Remembered {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        until: u64,
    },
    /// The id is free again before its time.
    ForgotId {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
    },
    /// All ids remembered until that instant or less.
    Forgot { until: u64 },
    /// A job as it stands: snapshots were made of these, and digests are.
    Stored {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        seq: u64,
        due: u64,
        place: Place,
        life: Life,
        #[serde(borrow)]
        terms: Terms<'a>,
    },
    /// Numbers that go on from there: order of adding, order of dying, tokens.
    Floors { seq: u64, death: u64, token: u64 },
    /// The key went with its last job.
    Dropped,
    /// All jobs of a state are gone, or all jobs: delayed is what is due after `cut`.
    Purged { state: Option<State>, cut: u64 },
    /// An id `<unix-ms>-<seq>` was made by the server, whose last token was that (0: not told).
    Minted { ms: u64, seq: u64, token: u64 },
    /// Jobs as they stand, as many [`super::rows`]: all of them come, or none.
    Rows {
        #[serde(with = "serde_bytes")]
        rows: &'a [u8],
    },
    /// All reserved jobs are gone whose leases end after `cut`.
    PurgedLeases { cut: u64 },
    /// So many of the longest dead are gone, by DEADLEN.
    Trimmed { count: u64 },
    /// Something happened to one job, and that was a failure. By a lease's end it fails without being told.
    Failed {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        change: Change,
        #[serde(borrow)]
        failure: Failure<'a>,
    },
    /// A job came that waits for the place of the one of its id, instead of another one that did.
    Followed {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        due: u64,
        /// 0 is never.
        expires: u64,
        #[serde(borrow)]
        terms: Terms<'a>,
    },
    /// MAXBYTES, which [`Effect::Configured`] leaves as it is.
    Bounded { max_bytes: u64 },
    /// A job with a rule came, in place of one of the same id if there was one.
    Recurs {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        #[serde(borrow)]
        terms: Terms<'a>,
        #[serde(borrow)]
        rule: Rule<'a>,
        first: Next,
    },
    /// A job with a rule was replaced by the same rule: what it has of its occurrence stays.
    Renewed {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        #[serde(borrow)]
        terms: Terms<'a>,
        #[serde(borrow)]
        rule: Rule<'a>,
    },
    /// An occurrence ended. Without a next one the job is gone.
    Recurred {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        ended: Ended,
        next: Option<Next>,
        /// Of one that was nacked: what is noted of it.
        #[serde(borrow)]
        failure: Option<Failure<'a>>,
    },
    /// The rule of a job, and how far it has come: digests are made of these.
    Rules {
        #[serde(borrow)]
        rule: Rule<'a>,
        round: Round,
    },
    /// A job with a group came, as without one [`Effect::Added`] and others say it.
    Grouped {
        #[serde(with = "serde_bytes")]
        group: &'a [u8],
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        #[serde(borrow)]
        terms: Terms<'a>,
        #[serde(borrow)]
        coming: Coming<'a>,
    },
    /// GROUPMAX, GROUPRATE and GROUPFIFO, which [`Effect::Configured`] leaves as they are.
    GroupLimits(GroupLimits),
    /// A group's name and turn, or the turn of the jobs without one: digests are made of these.
    Group {
        #[serde(with = "serde_bytes", borrow)]
        name: Option<&'a [u8]>,
        turn: u64,
    },
}

/// How a job comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coming<'a> {
    /// As [`Effect::Added`].
    Added {
        /// When it is due.
        due: u64,
        /// 0 is never.
        expires: u64,
    },
    /// As [`Effect::Followed`].
    Followed {
        /// When it is due.
        due: u64,
        /// 0 is never.
        expires: u64,
    },
    /// As [`Effect::Recurs`].
    Recurs {
        /// How it comes again.
        #[serde(borrow)]
        rule: Rule<'a>,
        /// Its first occurrence.
        first: Next,
    },
    /// As [`Effect::Renewed`].
    Renewed {
        /// The same pattern, and new bounds.
        #[serde(borrow)]
        rule: Rule<'a>,
    },
}

impl Effect<'_> {
    /// Whether jobs must be found by their ids to carry it out. Not so what snapshots are made of.
    pub(super) fn looks_for_jobs(&self) -> bool {
        !matches!(
            self,
            Effect::Rows { .. }
                | Effect::Floors { .. }
                | Effect::Configured(_)
                | Effect::GroupLimits(_)
                | Effect::Paused { .. }
                | Effect::Kept
                | Effect::Remembered { .. }
                | Effect::Minted { .. }
        )
    }

    /// Whether a snapshot may hold it, of this version or an older one.
    pub fn stands_in_snapshots(&self) -> bool {
        !self.looks_for_jobs() || matches!(self, Effect::Stored { .. } | Effect::Bounded { .. })
    }

    /// Whether those who watch the key see a change in it: not in an id's being forgotten.
    pub fn touches(&self) -> bool {
        !matches!(self, Effect::Forgot { .. } | Effect::ForgotId { .. })
    }

    /// What it raises wherever it is carried out.
    pub fn events(&self) -> &'static [Event] {
        match self {
            Effect::Added { .. } | Effect::Recurs { .. } | Effect::Renewed { .. } => &[Event::Add],
            Effect::Grouped { coming, .. } if !matches!(coming, Coming::Followed { .. }) => {
                &[Event::Add]
            }
            Effect::Recurred { ended, .. } => ended.events(),
            Effect::Job { change, .. } | Effect::Failed { change, .. } => change.events(),
            Effect::Purged { .. } | Effect::PurgedLeases { .. } | Effect::Trimmed { .. } => {
                &[Event::Del]
            }
            _ => &[],
        }
    }
}

//! What happened: the facts that a replica, the AOF, snapshots, events and totals are made of.
//!
//! Every instant in them is absolute, every id and token explicit. A queue is the fold of its
//! effects: what decides on a master emits them, and what carries them out is the same code on a
//! master, on a replica and in a replayed AOF.

mod change;
mod done;
mod ended;

use super::after::{After, Link, Moment, OnDead, Outcome};
use super::event::Event;
use super::job::{Failure, Life, Place, State, Terms};
use super::note::Note;
use super::recurring::rule::{Next, Occurrence, Rule};
use super::settings::{GroupLimits, Settings};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::{self, Write};

pub use change::{Change, Death, End, Removal};
pub use done::{DoneEnd, DoneJob, OfDone};
pub use ended::Ended;

/// PAUSE without an end.
pub const FOREVER: u64 = u64::MAX;

/// One fact about a queue. Instants are unix-ms, lengths of time ms; `terms` is what was decided at the adding.
#[allow(
    missing_docs,
    reason = "fields are named as in the commands that set them"
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
    /// An id `<unix-ms>-<seq>` was made by the server, whose last token was that (0: unknown).
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
    /// Something happened to one job, and that was a failure. A lease that expires is a failure, too, and has no such effect.
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
        occurrence: Occurrence,
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
    /// Something is noted of a job, or of its successor, in place of what was.
    Noted {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        successor: bool,
        #[serde(borrow)]
        note: Note<'a>,
    },
    /// Reserved jobs are gone whose leases ended by `cut`, without having come back first, or having died of it:
    /// nothing else had become of them, be it that their TTL ended since.
    PurgedOverdue { dead: bool, cut: u64 },
    /// What concerns done jobs.
    Done(#[serde(borrow)] OfDone<'a>),
    /// Jobs came with the same options, each in place of one of the same id if there was one; it may be one that
    /// came just before.
    AddedTogether {
        #[serde(with = "serde_bytes", borrow)]
        group: Option<&'a [u8]>,
        due: u64,
        /// 0 is never.
        expires: u64,
        #[serde(borrow)]
        terms: Terms<'a>,
        /// Of each.
        #[serde(borrow)]
        notes: Vec<Note<'a>>,
        #[serde(borrow)]
        jobs: Vec<Arrival<'a>>,
    },
    /// A job came that is after others, in place of one of the same id if there was one.
    AddedAfter {
        #[serde(with = "serde_bytes", borrow)]
        group: Option<&'a [u8]>,
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        /// An instant, or a delay.
        due: u64,
        /// 0 is never.
        expires: u64,
        #[serde(borrow)]
        terms: Terms<'a>,
        #[serde(borrow)]
        after: After<'a>,
    },
    /// A job that was given back is after others.
    Waits {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(borrow)]
        after: After<'a>,
    },
    /// A job that others are after is about to end so.
    Over {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        outcome: Outcome,
        at: Moment,
        #[serde(with = "serde_bytes", borrow)]
        value: Option<&'a [u8]>,
    },
    /// A group that others are after holds no job.
    Emptied {
        #[serde(with = "serde_bytes")]
        group: &'a [u8],
        at: Moment,
    },
    /// Ends were carried out for so many of those that are after them; whether one is ready by it, or dead, or
    /// gave its place to a successor.
    Stepped {
        count: u64,
        ready: bool,
        dead: bool,
        added: bool,
    },
    /// A job that was blocked is after nothing any more, by KICK.
    Unblocked {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        due: u64,
    },
    /// In a snapshot: how a job or a group has ended that others were after.
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
}

/// What one of several jobs has of its own that came together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival<'a> {
    /// Its id.
    #[serde(with = "serde_bytes", borrow)]
    pub id: Cow<'a, [u8]>,
    /// Any bytes.
    #[serde(with = "serde_bytes")]
    pub payload: &'a [u8],
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
    /// The variant's name, for the log: what it carries can be large, and private.
    pub fn name(&self) -> String {
        let mut name = Name(String::new());
        let _ = write!(name, "{self:?}");
        name.0
    }

    /// Whether jobs must be found by their ids to carry it out. Not so what snapshots are made of.
    pub(super) fn looks_for_jobs(&self) -> bool {
        if let Effect::Done(of_done) = self {
            return of_done.looks_for_jobs();
        }
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
        !self.looks_for_jobs()
            || self.is_kept_flow()
            || matches!(
                self,
                Effect::Stored { .. } | Effect::Bounded { .. } | Effect::Noted { .. }
            )
    }

    /// Whether it says what jobs are after, as a snapshot does.
    pub(super) fn is_kept_flow(&self) -> bool {
        matches!(self, Effect::End { .. } | Effect::Links { .. })
    }

    /// Whether it is about jobs that are after others.
    pub(super) fn is_of_flows(&self) -> bool {
        matches!(
            self,
            Effect::AddedAfter { .. }
                | Effect::Waits { .. }
                | Effect::Over { .. }
                | Effect::Emptied { .. }
                | Effect::Stepped { .. }
                | Effect::Unblocked { .. }
                | Effect::End { .. }
                | Effect::Links { .. }
        )
    }

    /// Whether those who watch the key see a change in it: not in an id's being forgotten.
    pub fn touches(&self) -> bool {
        !matches!(self, Effect::Forgot { .. } | Effect::ForgotId { .. })
    }

    /// What it raises wherever it is carried out.
    pub fn events(&self) -> &'static [Event] {
        match self {
            Effect::Added { .. }
            | Effect::AddedTogether { .. }
            | Effect::Recurs { .. }
            | Effect::Renewed { .. } => &[Event::Add],
            Effect::Grouped { coming, .. } if !matches!(coming, Coming::Followed { .. }) => {
                &[Event::Add]
            }
            Effect::AddedAfter { after, .. } if after.dies => &[Event::Add, Event::Dead],
            Effect::AddedAfter { .. } => &[Event::Add],
            Effect::Waits { after, .. } if after.dies => &[Event::Dead],
            Effect::Stepped {
                ready, dead, added, ..
            } => stepped(*ready, *dead, *added),
            Effect::Unblocked { .. } => &[Event::Ready],
            Effect::Recurred { ended, .. } => ended.events(),
            Effect::Job { change, .. } | Effect::Failed { change, .. } => change.events(),
            Effect::Purged { .. } | Effect::PurgedLeases { .. } | Effect::Trimmed { .. } => {
                &[Event::Del]
            }
            Effect::PurgedOverdue { dead: false, .. } => &[Event::Timeout, Event::Del],
            Effect::PurgedOverdue { dead: true, .. } => &[Event::Timeout, Event::Dead, Event::Del],
            Effect::Done(of_done) => of_done.events(),
            _ => &[],
        }
    }
}

/// Takes what is written up to the first character that no name has.
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

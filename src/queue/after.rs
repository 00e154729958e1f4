//! What a job is after: other jobs, or a group; and how those end.

use super::error::QueueError;
pub use super::outcome::Outcome;
use crate::storage::few::Few;
use serde::{Deserialize, Serialize};

/// Bytes in a group's name, at most; at least one.
pub const GROUP_MAX: usize = 256;
/// Ids behind one AFTER, at most.
pub const AFTER_MAX: usize = 1000;
/// Blocked jobs that the search for a circle reads, at most.
pub const BEFORE_MAX: usize = 10_000;

/// What the death of a job means to a job that is after it.
#[allow(missing_docs, reason = "called as on the wire")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OnDead {
    #[default]
    Wait,
    Run,
    Die,
}

impl OnDead {
    /// All of them.
    pub const ALL: [OnDead; 3] = [OnDead::Wait, OnDead::Run, OnDead::Die];

    /// As on the wire.
    pub fn name(self) -> &'static str {
        match self {
            OnDead::Wait => "wait",
            OnDead::Run => "run",
            OnDead::Die => "die",
        }
    }

    /// What the end of a job means to a job that is after it.
    pub fn verdict(self, outcome: Outcome) -> Verdict {
        match (outcome, self) {
            (Outcome::Done, _) | (_, OnDead::Run) => Verdict::Over,
            (Outcome::Dead, OnDead::Wait) => Verdict::Stays,
            _ => Verdict::Dies,
        }
    }
}

/// See [`OnDead::verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The blocked job no longer waits for the one that ended.
    Over,
    /// The blocked job still waits: the dead one may yet be done.
    Stays,
    /// The blocked job dies, too.
    Dies,
}

/// When something ended. A DELAY counts from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// The last full millisecond by then, unix-ms.
    pub ms: u64,
    /// Whether part of the next millisecond had passed, too.
    pub is_within: bool,
}

impl Moment {
    /// The instant at least `delay_ms` after it.
    pub fn after(self, delay_ms: u64) -> u64 {
        match delay_ms {
            0 => self.ms,
            delay => (self.ms + u64::from(self.is_within))
                .saturating_add(delay)
                .min(super::instant::INSTANT_MAX),
        }
    }
}

/// What a job waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum For<'a> {
    /// The ends of these jobs; no id is there twice.
    Jobs(#[serde(borrow)] Few<&'a serde_bytes::Bytes>, OnDead),
    /// That no job is left in this group but dead ones.
    Group(#[serde(with = "serde_bytes", borrow)] &'a [u8]),
}

impl For<'_> {
    /// An error if it names a group by what no group can be called: known before any job is looked at.
    pub fn check_name(&self) -> Result<(), QueueError> {
        match self {
            For::Group(name) => check_group_name(name),
            For::Jobs(..) => Ok(()),
        }
    }
}

/// An error if no group can have this name.
pub fn check_group_name(name: &[u8]) -> Result<(), QueueError> {
    match (1..=GROUP_MAX).contains(&name.len()) {
        true => Ok(()),
        false => Err(QueueError::GroupLength),
    }
}

/// What AFTER says, and when it was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After<'a> {
    /// What is waited for.
    #[serde(borrow)]
    pub until: For<'a>,
    /// The instant of the command.
    pub at: Moment,
    /// Whether the due time is an instant; otherwise it is a delay that counts from the last end.
    pub is_timed: bool,
    /// The job dies at once, as a job that it is after is dead. It says which event is raised.
    pub dies: bool,
}

/// An [`After`] whose `until` is borrowed: copied into an [`After`] only if an effect needs one.
#[derive(Clone, Copy)]
pub(super) struct AfterThat<'a> {
    pub until: &'a For<'a>,
    pub at: Moment,
    pub is_timed: bool,
    pub dies: bool,
}

impl AfterThat<'_> {
    pub fn as_after(&self) -> After<'_> {
        After {
            until: self.until.clone(),
            at: self.at,
            is_timed: self.is_timed,
            dies: self.dies,
        }
    }
}

impl<'a> After<'a> {
    pub(super) fn that(&'a self) -> AfterThat<'a> {
        AfterThat {
            until: &self.until,
            at: self.at,
            is_timed: self.is_timed,
            dies: self.dies,
        }
    }
}

/// How a job that another one was after ended. Nothing is known of a job that was not waited for any more.
#[allow(missing_docs, reason = "called as in the reply")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobResult<'a> {
    pub id: &'a [u8],
    pub outcome: Option<Outcome>,
    pub value: Option<&'a [u8]>,
}

/// What DQ.GET shows of a job that is after others, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits<'a> {
    /// The jobs that it still waits for, in the order of its AFTER.
    pub after: Vec<&'a [u8]>,
    /// The group that it waits for.
    pub group: Option<&'a [u8]>,
    /// What happens to it if one of them dies.
    pub on_dead: OnDead,
    /// How the jobs that it was after ended, as far as they have.
    pub results: Vec<JobResult<'a>>,
}

/// One of the jobs that a job is after, or its group, in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link<'a> {
    /// A job that exists.
    Held(#[serde(with = "serde_bytes", borrow)] &'a [u8]),
    /// What it is after has ended: the number of that end, in the order in which a snapshot has them.
    Over(u64),
    /// As [`Link::Over`], but no step has yet carried out what that end means.
    Pending(u64),
    /// A group that is not empty.
    Group(#[serde(with = "serde_bytes", borrow)] &'a [u8]),
}

//! What a job is after: other jobs, or a group; and how those end.

pub use super::outcome::Outcome;
use crate::storage::few::Few;
use serde::{Deserialize, Serialize};

/// Ids behind one AFTER, at most.
pub const AFTER_MAX: usize = 1000;
/// Blocked jobs that are looked at for a circle, at most.
pub const BEFORE_MAX: usize = 10_000;

/// What the death of a job means to one that is after it.
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

    /// What an end means to a job that is after it.
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
    /// It need not be waited for any more.
    Over,
    /// It may yet be done.
    Stays,
    /// Who waits dies, too.
    Dies,
}

/// When something ended: from then on a DELAY counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// The millisecond that had come, unix-ms.
    pub ms: u64,
    /// And some of the next one.
    pub is_within: bool,
}

impl Moment {
    /// So long after it, and no less.
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
    /// The ends of these, no two alike.
    Jobs(#[serde(borrow)] Few<&'a serde_bytes::Bytes>, OnDead),
    /// That no job is left in this group but dead ones.
    Group(#[serde(with = "serde_bytes", borrow)] &'a [u8]),
}

/// What AFTER says, and when it was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After<'a> {
    /// What is waited for.
    #[serde(borrow)]
    pub until: For<'a>,
    /// The instant of the command.
    pub at: Moment,
    /// The due time is an instant, else a delay that counts from the last end.
    pub is_timed: bool,
    /// It dies of one that is dead: says which event is raised.
    pub dies: bool,
}

/// The same, of what another one has: made into an [`After`] only where that is asked for.
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

/// How one job ended that another was after: nothing is known of one that was not waited for any more.
#[allow(missing_docs, reason = "called as in the reply")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    pub id: &'a [u8],
    pub outcome: Option<Outcome>,
    pub value: Option<&'a [u8]>,
}

/// What DQ.GET tells of a job that is after others, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits<'a> {
    /// Those that are not over for it, in the order of its AFTER.
    pub after: Vec<&'a [u8]>,
    /// The group that it waits for.
    pub group: Option<&'a [u8]>,
    /// What it does if one dies.
    pub on_dead: OnDead,
    /// How all that it was after ended, as far as they have.
    pub results: Vec<Ended<'a>>,
}

/// One of those that a job is after, in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link<'a> {
    /// It is there.
    Held(#[serde(with = "serde_bytes", borrow)] &'a [u8]),
    /// It has ended: the number of its end, in the order in which they come.
    Over(u64),
    /// The same, and no step has carried out yet what that means.
    Pending(u64),
    /// A group that is not empty.
    Group(#[serde(with = "serde_bytes", borrow)] &'a [u8]),
}

//! What happens to done jobs, and how jobs become done and are kept.

use crate::queue::event::Event;
use crate::queue::job::Terms;
use crate::queue::note::Notes;
use crate::queue::recurring::rule::Next;
use serde::{Deserialize, Serialize};

/// One fact about done jobs.
#[allow(
    missing_docs,
    reason = "fields are called as in the commands that set them"
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OfDone<'a> {
    /// A job was acked, and stays as done.
    Kept {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        /// NX refuses the id until that instant (0: it does not).
        remember: u64,
        #[serde(borrow)]
        end: Completion<'a>,
    },
    /// An occurrence was acked, and stays as a separate done job. Without a next one the recurring job is gone.
    OccurrenceKept {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        next: Option<Next>,
        #[serde(borrow)]
        end: Completion<'a>,
    },
    /// A done job as it stands: snapshots and digests have these, in the order of ending.
    Stored(#[serde(borrow)] DoneJob<'a>),
    /// A done job was removed, as its time was over, or as nothing keeps it any more.
    Gone {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
    },
    /// A done job was removed by DEL.
    Deleted {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
    },
    /// The `count` longest done jobs were removed, by DONELEN or DONEBYTES.
    Trimmed { count: u64 },
    /// A done job became ready again, by KICK.
    Kicked {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        due: u64,
    },
}

/// How a job became done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion<'a> {
    /// When it ended.
    pub finished: u64,
    /// The instant from which on it is gone; 0 is never.
    pub until: u64,
    /// The result, if it has one.
    #[serde(with = "serde_bytes", borrow)]
    pub result: Option<&'a [u8]>,
}

/// A done job as it stands.
#[allow(missing_docs, reason = "called as in DQ.GET's reply")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneJob<'a> {
    #[serde(with = "serde_bytes")]
    pub id: &'a [u8],
    #[serde(with = "serde_bytes")]
    pub payload: &'a [u8],
    #[serde(with = "serde_bytes", borrow)]
    pub result: Option<&'a [u8]>,
    /// The notes that it has as a done job.
    #[serde(with = "serde_bytes")]
    pub notes: &'a [u8],
    #[serde(with = "serde_bytes", borrow)]
    pub group: Option<&'a [u8]>,
    #[serde(borrow)]
    pub terms: Terms<'a>,
    pub seq: u64,
    pub due: u64,
    pub attempts: u32,
    pub started: u64,
    pub finished: u64,
    /// The instant from which on it is gone; 0 is never.
    pub until: u64,
}

impl DoneJob<'_> {
    /// What DONEBYTES counts.
    pub fn bytes(&self) -> u64 {
        let behind = self.result.map_or(0, <[u8]>::len) + Notes::of(self.notes).counted_when_done();
        (self.id.len() + self.payload.len() + behind) as u64
    }
}

impl<'a> OfDone<'a> {
    /// The done job, if this is one as it stands.
    pub fn stored(&self) -> Option<&DoneJob<'a>> {
        match self {
            OfDone::Stored(job) => Some(job),
            OfDone::Kept { .. }
            | OfDone::OccurrenceKept { .. }
            | OfDone::Gone { .. }
            | OfDone::Deleted { .. }
            | OfDone::Trimmed { .. }
            | OfDone::Kicked { .. } => None,
        }
    }

    /// As [`super::Effect::needs_index`]. Not for what snapshots consist of.
    pub(in crate::queue) fn needs_index(&self) -> bool {
        self.stored().is_none()
    }

    pub(in crate::queue) fn events(&self) -> &'static [Event] {
        match self {
            OfDone::Kept { .. } | OfDone::OccurrenceKept { .. } => &[Event::Ack],
            OfDone::Deleted { .. } => &[Event::Del],
            OfDone::Kicked { .. } => &[Event::Ready],
            OfDone::Stored(_) | OfDone::Gone { .. } | OfDone::Trimmed { .. } => &[],
        }
    }
}

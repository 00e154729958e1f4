//! How a job ended, as clients that wait for it are told.

use serde::{Deserialize, Serialize};

/// The word for how a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// Acked, or popped with NOACK.
    Done,
    /// Its attempts are used up, or it failed for good.
    Dead,
    /// By DEL, PURGE or DEADLEN.
    Deleted,
    /// Its TTL or GRACE expired.
    Expired,
}

impl Outcome {
    /// As on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Dead => "dead",
            Outcome::Deleted => "deleted",
            Outcome::Expired => "expired",
        }
    }
}

/// The end of a job, or of an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// The result of a done one, the reason of a dead one.
    pub value: Option<Vec<u8>>,
    /// Unix-ms; `None`: the instant at which this record arrives.
    pub at: Option<u64>,
    /// Deliveries so far that count.
    pub attempts: u32,
}

/// A job ended, or a delivery of it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The job's id.
    pub id: Vec<u8>,
    /// The token of the delivery that ended; 0 is none.
    pub token: u64,
    /// A command that named this token ended it.
    pub is_claimed: bool,
    /// How the job ended; `None` if it lives on, or was replaced.
    pub end: Option<JobEnd>,
}

impl Departure {
    /// Sets the value of a job that ended, if its end itself does not say it.
    pub(super) fn set_value(&mut self, value: Option<&[u8]>) {
        if let Some(end) = &mut self.end {
            end.value = value.map(<[u8]>::to_vec);
        }
    }
}

/// What the queue knows of the job with an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It has not ended.
    Lives,
    /// It has ended, and is kept as dead or done.
    Ended(JobEnd),
    /// There is no job with the id.
    Nothing,
}

//! How a job ended, as clients that wait for it are answered.

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
    /// Its TTL is over, or GRACE.
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
    /// Unix-ms; none is the instant at which this arrives.
    pub at: Option<u64>,
    /// Deliveries so far that count.
    pub attempts: u32,
}

/// A job ended, or who had it has it no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The job's.
    pub id: Vec<u8>,
    /// Of the delivery that ended; 0 is none.
    pub token: u64,
    /// Who named this token ended it.
    pub is_claimed: bool,
    /// None where the job lives on, or another one stands in its place.
    pub end: Option<JobEnd>,
}

/// What is known of the job of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It has not ended.
    Lives,
    /// It has, and is kept.
    Ended(JobEnd),
    /// There is none.
    Nothing,
}

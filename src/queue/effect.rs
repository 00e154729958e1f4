//! What happened: the facts that a replica, the AOF, snapshots, events and totals are made of.
//!
//! Every instant in them is absolute, every id and token explicit. A queue is the fold of its
//! effects: what decides on a master emits them, and what carries them out is the same code on a
//! master, on a replica and in a replayed AOF.

use super::event::Event;
use super::job::{Failure, Life, Place, State, Terms};
use super::recurring::rule::{Next, Round, Rule};
use super::settings::{GroupLimits, Settings};
use super::stats::Totals;
use serde::{Deserialize, Serialize};

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

/// How an occurrence ended.
#[allow(
    missing_docs,
    reason = "`at` is the instant of death everywhere, `kept` whether it stays as dead"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    Acked,
    Popped,
    /// GRACE was over.
    Missed,
    Expired,
    /// Its TTL was past when its lease ended.
    TimedOutExpired,
    /// Dead, by its lease's end or by NACK; whether it is kept as a job of its own.
    TimedOut {
        at: u64,
        kept: bool,
    },
    Nacked {
        at: u64,
        priority: i32,
        kept: bool,
    },
}

impl Ended {
    pub(super) fn events(self) -> &'static [Event] {
        match self {
            Ended::Acked => &[Event::Ack],
            Ended::Popped => &[Event::Pop],
            Ended::Missed => &[Event::Missed],
            Ended::Expired => &[Event::Expired],
            Ended::TimedOutExpired => &[Event::Timeout, Event::Expired],
            Ended::TimedOut { .. } => &[Event::Timeout, Event::Dead],
            Ended::Nacked { .. } => &[Event::Nack, Event::Dead],
        }
    }

    pub(super) fn count(self, totals: &mut Totals) {
        match self {
            Ended::Acked => totals.acked += 1,
            Ended::Popped => totals.delivered += 1,
            Ended::Missed => totals.missed += 1,
            Ended::Expired => totals.expired += 1,
            Ended::TimedOutExpired => {
                totals.timed_out += 1;
                totals.expired += 1;
            }
            Ended::TimedOut { kept, .. } => {
                totals.timed_out += 1;
                totals.died += 1;
                totals.deleted += u64::from(!kept);
            }
            Ended::Nacked { kept, .. } => {
                totals.nacked += 1;
                totals.died += 1;
                totals.deleted += u64::from(!kept);
            }
        }
    }

    /// Whether its occurrence stays in the dead list, and since when.
    pub fn death(self) -> Option<u64> {
        match self {
            Ended::TimedOut { at, kept } | Ended::Nacked { at, kept, .. } => kept.then_some(at),
            _ => None,
        }
    }

    pub(super) fn died(self) -> bool {
        matches!(self, Ended::TimedOut { .. } | Ended::Nacked { .. })
    }
}

/// What can happen to a job.
#[allow(
    missing_docs,
    reason = "fields are called as in the commands that set them"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    Reserved {
        token: u64,
        deadline: u64,
        lease_ms: u64,
    },
    /// A fresh lease.
    Touched {
        deadline: u64,
        lease_ms: u64,
    },
    /// The lease ended; the token stays current.
    TimedOut,
    Nacked {
        due: u64,
        priority: i32,
        attempts: u32,
    },
    /// The instant of death; a job that died of its lease's end keeps its token.
    Died {
        at: u64,
        cause: Death,
    },
    Rescheduled {
        due: u64,
    },
    Kicked {
        due: u64,
    },
    /// It is gone; NX refuses the id until that instant (0: does not).
    Removed {
        cause: Removal,
        remember: u64,
    },
    Prioritized {
        priority: i32,
    },
    /// It is gone as [`Change::Removed`] or dead, and its successor stands in its place; whether that was ready.
    Succeeded {
        end: End,
        remember: u64,
        ready: bool,
    },
    /// It has no successor any more, since that one's TTL is over.
    SuccessorExpired,
}

/// How a job went whose successor took its place.
#[allow(missing_docs, reason = "called as what ended it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Acked,
    Popped,
    /// Dead, but for its successor.
    TimedOut,
    Nacked,
}

/// What made a job dead.
#[allow(missing_docs, reason = "called as what ended it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Death {
    TimedOut,
    Nacked { priority: i32 },
}

/// Why a job is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Removal {
    /// By ACK.
    Acked,
    /// At delivery, by NOACK.
    Popped,
    /// DEL, PURGE and DEADLEN.
    Deleted,
    /// Its TTL is past.
    Expired,
    /// Its TTL was past when its lease ended.
    TimedOutExpired,
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

impl Change {
    pub(super) fn events(self) -> &'static [Event] {
        match self {
            Change::Reserved { .. } => &[Event::Pop],
            Change::Touched { .. } => &[],
            Change::TimedOut => &[Event::Timeout],
            Change::Nacked { .. } => &[Event::Nack],
            Change::Died { cause, .. } => match cause {
                Death::TimedOut => &[Event::Timeout, Event::Dead],
                Death::Nacked { .. } => &[Event::Nack, Event::Dead],
            },
            Change::Rescheduled { .. } => &[],
            Change::Kicked { .. } => &[Event::Ready],
            Change::Removed { cause, .. } => match cause {
                Removal::Acked => &[Event::Ack],
                Removal::Popped => &[Event::Pop],
                Removal::Deleted => &[Event::Del],
                Removal::Expired => &[Event::Expired],
                Removal::TimedOutExpired => &[Event::Timeout, Event::Expired],
            },
            Change::Prioritized { .. } => &[],
            Change::Succeeded { end, ready, .. } => {
                use Event::{Ack, Dead, Nack, Pop, SuccessorAdd, SuccessorReady, Timeout};
                // What is raised where the successor is ready stands last.
                let events: &[Event] = match end {
                    End::Acked => &[Ack, SuccessorAdd, SuccessorReady],
                    End::Popped => &[Pop, SuccessorAdd, SuccessorReady],
                    End::TimedOut => &[Timeout, Dead, SuccessorAdd, SuccessorReady],
                    End::Nacked => &[Nack, Dead, SuccessorAdd, SuccessorReady],
                };
                let others = events.len() - usize::from(!ready);
                &events[..others]
            }
            Change::SuccessorExpired => &[Event::Expired],
        }
    }

    /// Whether a consumer gets the job by it.
    pub(super) fn is_delivery(self) -> bool {
        let popped = |cause| cause == Removal::Popped;
        match self {
            Change::Reserved { .. } => true,
            Change::Removed { cause, .. } => popped(cause),
            Change::Succeeded { end, .. } => end == End::Popped,
            _ => false,
        }
    }

    pub(super) fn count(self, totals: &mut Totals) {
        match self {
            Change::Reserved { .. } => totals.delivered += 1,
            Change::Touched { .. }
            | Change::Rescheduled { .. }
            | Change::Prioritized { .. }
            | Change::Kicked { .. } => {}
            Change::Succeeded { end, .. } => end.count(totals),
            Change::SuccessorExpired => totals.expired += 1,
            Change::TimedOut => totals.timed_out += 1,
            Change::Nacked { .. } => totals.nacked += 1,
            Change::Died { cause, .. } => {
                totals.died += 1;
                match cause {
                    Death::TimedOut => totals.timed_out += 1,
                    Death::Nacked { .. } => totals.nacked += 1,
                }
            }
            Change::Removed { cause, .. } => match cause {
                Removal::Acked => totals.acked += 1,
                Removal::Popped => totals.delivered += 1,
                Removal::Deleted => totals.deleted += 1,
                Removal::Expired => totals.expired += 1,
                Removal::TimedOutExpired => {
                    totals.timed_out += 1;
                    totals.expired += 1;
                }
            },
        }
    }
}

impl End {
    /// The job's end, and the coming of its successor. One that dies is replaced at once.
    fn count(self, totals: &mut Totals) {
        totals.added += 1;
        match self {
            End::Acked => totals.acked += 1,
            End::Popped => totals.delivered += 1,
            End::TimedOut | End::Nacked => {
                totals.died += 1;
                totals.deleted += 1;
            }
        }
        match self {
            End::TimedOut => totals.timed_out += 1,
            End::Nacked => totals.nacked += 1,
            End::Acked | End::Popped => {}
        }
    }
}

//! What happens to one existing job, from its delivery to its end.

use crate::queue::event::Event;
use crate::queue::job::Failure;
use crate::queue::stats::Totals;
use crate::queue::tagged::Lasting;
use serde::{Deserialize, Serialize};

/// What can happen to a job.
#[allow(
    missing_docs,
    reason = "fields are named as in the commands that set them"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change<'a> {
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
        /// `None`: given back without a failure.
        #[serde(borrow)]
        failure: Option<Failure<'a>>,
    },
    /// `at` is the instant of death. A job that died when its lease ended keeps its token.
    Died {
        at: u64,
        #[serde(borrow)]
        cause: DeathCause<'a>,
    },
    Rescheduled {
        due: u64,
    },
    Kicked {
        due: u64,
    },
    /// The job was removed; NX refuses the id until `remember` (0: it does not).
    Removed {
        cause: RemovalCause,
        remember: u64,
    },
    Prioritized {
        priority: i32,
    },
    /// The job was removed as by [`Change::Removed`], or died, and its successor took its place. `ready` says whether
    /// the successor was ready.
    Succeeded {
        end: EndCause,
        remember: u64,
        ready: bool,
    },
    /// The job's successor was removed, as the successor's TTL expired.
    SuccessorExpired,
    /// A blocked job is after nothing any more, by KICK, or because it would have stayed blocked for ever.
    Unblocked {
        due: u64,
    },
}

/// How a job ended whose successor took its place.
#[allow(missing_docs, reason = "called as what ended it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndCause {
    Acked,
    Popped,
    /// Without a successor the job would be dead, as with `Nacked`.
    TimedOut,
    Nacked,
}

/// What made a job dead.
#[allow(missing_docs, reason = "called as what ended it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeathCause<'a> {
    TimedOut,
    Nacked {
        priority: i32,
        #[serde(borrow)]
        failure: Option<Failure<'a>>,
    },
}

/// Why a job is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemovalCause {
    /// By ACK.
    Acked,
    /// At delivery, by NOACK.
    Popped,
    /// DEL, PURGE and DEADLEN.
    Deleted,
    /// Its TTL has expired.
    Expired,
    /// Its TTL had expired when its lease ended.
    TimedOutExpired,
}

impl<'a> Change<'a> {
    /// The failure that this tells of. A lease that ends is one, too, but needs no telling.
    #[inline]
    pub(in crate::queue) fn failure(self) -> Option<Failure<'a>> {
        match self {
            Change::Nacked { failure, .. } => failure,
            Change::Died {
                cause: DeathCause::Nacked { failure, .. },
                ..
            } => failure,
            _ => None,
        }
    }

    pub(in crate::queue) fn events(self) -> &'static [Event] {
        match self {
            Change::Reserved { .. } => &[Event::Pop],
            Change::Touched { .. } => &[],
            Change::TimedOut => &[Event::Timeout],
            Change::Nacked { .. } => &[Event::Nack],
            Change::Died { cause, .. } => match cause {
                DeathCause::TimedOut => &[Event::Timeout, Event::Dead],
                DeathCause::Nacked { .. } => &[Event::Nack, Event::Dead],
            },
            Change::Rescheduled { .. } => &[],
            Change::Kicked { .. } | Change::Unblocked { .. } => &[Event::Ready],
            Change::Removed { cause, .. } => match cause {
                RemovalCause::Acked => &[Event::Ack],
                RemovalCause::Popped => &[Event::Pop],
                RemovalCause::Deleted => &[Event::Del],
                RemovalCause::Expired => &[Event::Expired],
                RemovalCause::TimedOutExpired => &[Event::Timeout, Event::Expired],
            },
            Change::Prioritized { .. } => &[],
            Change::Succeeded { end, ready, .. } => {
                use Event::{Ack, Dead, Nack, Pop, SuccessorAdd, SuccessorReady, Timeout};
                // The event that is raised only if the successor is ready is last.
                let events: &[Event] = match end {
                    EndCause::Acked => &[Ack, SuccessorAdd, SuccessorReady],
                    EndCause::Popped => &[Pop, SuccessorAdd, SuccessorReady],
                    EndCause::TimedOut => &[Timeout, Dead, SuccessorAdd, SuccessorReady],
                    EndCause::Nacked => &[Nack, Dead, SuccessorAdd, SuccessorReady],
                };
                let others = events.len() - usize::from(!ready);
                &events[..others]
            }
            Change::SuccessorExpired => &[Event::Expired],
        }
    }

    /// Whether a job loses by it what lasts so long. A job that is no more has nothing.
    pub(in crate::queue) fn ends(self, lasting: Lasting) -> bool {
        match lasting {
            // The job's due time and place stay.
            Lasting::Place => !matches!(
                self,
                Change::Touched { .. } | Change::Prioritized { .. } | Change::SuccessorExpired
            ),
            Lasting::Run => matches!(self, Change::Kicked { .. }),
            Lasting::Occurrence | Lasting::Terms => false,
        }
    }

    /// Whether it delivers the job to a consumer.
    pub(in crate::queue) fn is_delivery(self) -> bool {
        let popped = |cause| cause == RemovalCause::Popped;
        match self {
            Change::Reserved { .. } => true,
            Change::Removed { cause, .. } => popped(cause),
            Change::Succeeded { end, .. } => end == EndCause::Popped,
            _ => false,
        }
    }

    /// The token of a delivery with a lease; 0 for anything else.
    pub(in crate::queue) fn token(self) -> u64 {
        match self {
            Change::Reserved { token, .. } => token,
            _ => 0,
        }
    }

    pub(in crate::queue) fn count(self, totals: &mut Totals) {
        match self {
            Change::Reserved { .. } => totals.delivered += 1,
            Change::Touched { .. }
            | Change::Rescheduled { .. }
            | Change::Prioritized { .. }
            | Change::Kicked { .. }
            | Change::Unblocked { .. } => {}
            Change::Succeeded { end, .. } => end.count(totals),
            Change::SuccessorExpired => totals.expired += 1,
            Change::TimedOut => totals.timed_out += 1,
            Change::Nacked { .. } => totals.nacked += 1,
            Change::Died { cause, .. } => {
                totals.died += 1;
                match cause {
                    DeathCause::TimedOut => totals.timed_out += 1,
                    DeathCause::Nacked { .. } => totals.nacked += 1,
                }
            }
            Change::Removed { cause, .. } => match cause {
                RemovalCause::Acked => totals.acked += 1,
                RemovalCause::Popped => totals.delivered += 1,
                RemovalCause::Deleted => totals.deleted += 1,
                RemovalCause::Expired => totals.expired += 1,
                RemovalCause::TimedOutExpired => {
                    totals.timed_out += 1;
                    totals.expired += 1;
                }
            },
        }
    }
}

impl EndCause {
    /// Counts the end of the job, and its successor as added. A job that dies also counts as deleted, since its
    /// successor replaces it at once.
    fn count(self, totals: &mut Totals) {
        totals.added += 1;
        match self {
            EndCause::Acked => totals.acked += 1,
            EndCause::Popped => totals.delivered += 1,
            EndCause::TimedOut | EndCause::Nacked => {
                totals.died += 1;
                totals.deleted += 1;
            }
        }
        match self {
            EndCause::TimedOut => totals.timed_out += 1,
            EndCause::Nacked => totals.nacked += 1,
            EndCause::Acked | EndCause::Popped => {}
        }
    }
}

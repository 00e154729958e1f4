//! Where a job is, and where it is after a change.

use super::schedule::OrderKey;
use super::store::Status;
use crate::queue::effect::{Change, DeathCause};
use crate::queue::job::{Life, Place, INSTANT_MAX};

/// Where a job is, and on which lists by which keys.
#[derive(Clone, Copy)]
pub struct Position {
    pub status: Status,
    pub priority: i32,
    /// How long after its due time the occurrence of a recurring job is skipped; 0 means never.
    pub grace_ms: u64,
    /// It has a rule.
    pub recurs: bool,
    /// Deliveries allowed; 0 means no limit.
    pub max_attempts: u32,
}

/// What becomes of a reserved job when its lease ends. Each fate has a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Ready again.
    Ready,
    Dies,
    /// It expires: its TTL has passed by then.
    Expires,
    /// Known only when the end of the lease is carried out. A recurring job's rule decides it, or the clock was set
    /// back, and the due time lies after the lease.
    Undecided,
}

impl Fate {
    pub const ALL: [Fate; 4] = [Fate::Ready, Fate::Dies, Fate::Expires, Fate::Undecided];
}

/// What ends by a TTL or GRACE. Each kind has a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// A job that is ready by then, perhaps because its lease has ended before.
    Ready,
    /// A job that is not due by then.
    Delayed,
    /// A job that is dead by then.
    Dead,
    Successor,
    /// An occurrence, by its TTL or by GRACE.
    Occurrence,
}

/// A job's place in the lists of TTLs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EndsAt {
    pub expiry: Expiry,
    pub at: u64,
    /// The due time of a job that is not due by then.
    pub late_due: Option<u64>,
}

/// When a job that is not reserved expires, or its occurrence ends, by TTL or GRACE; 0 means never.
pub fn end_of(due: u64, expires: u64, grace_ms: u64) -> u64 {
    if grace_ms == 0 {
        return expires;
    }
    let skipped = (due + grace_ms).min(INSTANT_MAX);
    match expires {
        0 => skipped,
        expires => skipped.min(expires),
    }
}

impl Position {
    pub fn order_key(self) -> OrderKey {
        OrderKey {
            priority: self.priority,
            due: self.status.due,
        }
    }

    fn end(self) -> u64 {
        end_of(self.status.due, self.status.life.expires, self.grace_ms)
    }

    /// What happens when the lease ends, for a reserved job.
    #[inline]
    pub fn fate(self) -> Fate {
        let life = &self.status.life;
        if self.recurs {
            Fate::Undecided
        } else if life.expires != 0 && life.expires <= life.at {
            Fate::Expires
        } else if self.max_attempts != 0 && life.attempts >= self.max_attempts {
            Fate::Dies
        } else if self.status.due > life.at {
            Fate::Undecided
        } else {
            Fate::Ready
        }
    }

    /// Whether it may be in a list of TTLs. No change makes this true: a TTL and GRACE are fixed with the job.
    #[inline]
    pub fn may_end(self) -> bool {
        self.status.life.expires != 0 || self.grace_ms != 0
    }

    /// `None` without TTL and GRACE, and for a reserved job that expires with its lease, or whose fate is not known yet.
    #[inline]
    pub fn ends_at(self) -> Option<EndsAt> {
        let at = self.end();
        if at == 0 {
            return None;
        }
        let expiry = match self.status.place {
            Place::Scheduled if self.recurs => Expiry::Occurrence,
            Place::Scheduled if at < self.status.due => Expiry::Delayed,
            Place::Scheduled => Expiry::Ready,
            Place::Reserved => match self.fate() {
                Fate::Ready => Expiry::Ready,
                Fate::Dies => Expiry::Dead,
                Fate::Expires | Fate::Undecided => return None,
            },
            Place::Dead => Expiry::Dead,
            Place::Successor => Expiry::Successor,
            // Carried out before any query, as that of an occurrence.
            Place::Blocked => Expiry::Occurrence,
        };
        let late_due = (expiry == Expiry::Delayed).then_some(self.status.due);
        Some(EndsAt {
            expiry,
            at,
            late_due,
        })
    }

    /// How the job stands afterwards; `death` is its place in the order of dying, if it died.
    pub fn changed(mut self, change: Change<'_>, death: u64) -> Self {
        let Status {
            place,
            due: job_due,
            life,
        } = &mut self.status;
        match change {
            Change::Reserved {
                token,
                deadline,
                lease_ms,
            } => {
                life.attempts = life.attempts.saturating_add(1);
                (life.token, life.at, life.lease_ms) = (token, deadline, lease_ms);
                *place = Place::Reserved;
                self.grace_ms = 0;
            }
            Change::Touched { deadline, lease_ms } => {
                (life.at, life.lease_ms) = (deadline, lease_ms);
            }
            Change::TimedOut => {
                life.at = 0;
                *place = Place::Scheduled;
            }
            Change::Nacked {
                due,
                priority,
                attempts,
                ..
            } => {
                (life.attempts, life.token, life.at, life.lease_ms) = (attempts, 0, 0, 0);
                (*job_due, *place, self.priority) = (due, Place::Scheduled, priority);
            }
            Change::Died { at, cause } => {
                (life.at, life.death) = (at, death);
                if let DeathCause::Nacked { priority, .. } = cause {
                    (life.token, life.lease_ms) = (0, 0);
                    self.priority = priority;
                }
                *place = Place::Dead;
            }
            Change::Rescheduled { due } => {
                (life.token, life.lease_ms) = (0, 0);
                *job_due = due;
            }
            Change::Kicked { due } => {
                *life = Life {
                    expires: life.expires,
                    ..Life::default()
                };
                (*job_due, *place) = (due, Place::Scheduled);
            }
            Change::Prioritized { priority } => self.priority = priority,
            // None of these goes on as it stands.
            Change::Removed { .. }
            | Change::Succeeded { .. }
            | Change::SuccessorExpired
            | Change::Unblocked { .. } => {}
        }
        self
    }
}

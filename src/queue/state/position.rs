//! Where a job is, and where it is after a change.

use super::schedule::Standing;
use super::store::Course;
use crate::queue::effect::{Change, Death};
use crate::queue::job::{Life, Place, INSTANT_MAX};

/// Where a job is, and on which lists by which keys.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) course: Course,
    pub(super) priority: i32,
    /// After its due the occurrence of a recurring job is skipped; 0 is never.
    pub(super) grace_ms: u64,
}

/// When a job that is not reserved goes by itself, or its occurrence does; 0 is never.
pub(super) fn end_of(due: u64, expires: u64, grace_ms: u64) -> u64 {
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
    pub(super) fn standing(self) -> Standing {
        Standing {
            priority: self.priority,
            due: self.course.due,
        }
    }

    pub(super) fn end(self) -> u64 {
        end_of(self.course.due, self.course.life.expires, self.grace_ms)
    }

    /// How the job stands afterwards; `death` is its place in the order of dying, if it died.
    pub(super) fn changed(mut self, change: Change, death: u64) -> Self {
        let Course {
            place,
            due: job_due,
            life,
        } = &mut self.course;
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
            } => {
                (life.attempts, life.token, life.at, life.lease_ms) = (attempts, 0, 0, 0);
                (*job_due, *place, self.priority) = (due, Place::Scheduled, priority);
            }
            Change::Died { at, cause } => {
                (life.at, life.death) = (at, death);
                if let Death::Nacked { priority } = cause {
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
            Change::Removed { .. } | Change::Succeeded { .. } | Change::SuccessorExpired => {}
        }
        self
    }
}

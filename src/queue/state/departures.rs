//! Jobs that end, and deliveries that do, noted where they are carried out: on a master and on a replica alike, whether
//! or not anybody reads effects. They are noted only while a client waits for them, from the beginning of a command to
//! its end. What an ended job leaves behind may be gone a moment later, so nobody can ask for it then.

use super::store::Id;
use super::Queue;
use crate::queue::effect::{Change, Death, DoneEnd, End, Ended, Removal};
use crate::queue::job::{Failure, Handle, Place, LEASE_ENDED};
use crate::queue::outcome::{Departure, JobEnd, Known, Outcome};

/// Returns the ids that clients wait for: used when so many jobs are removed that these ids are fewer.
pub type Listened = Box<dyn Fn() -> Vec<Vec<u8>> + Send + Sync>;

/// What has departed since `listen`.
pub struct Departures {
    listened: Listened,
    noted: Vec<Departure>,
}

impl Departures {
    /// The departures, in order.
    pub fn noted(self) -> Vec<Departure> {
        self.noted
    }
}

impl Queue {
    /// Notes departures from now on, until they are taken.
    pub fn listen(&mut self, listened: Listened) {
        self.cold.make().departures = Some(Box::new(Departures {
            listened,
            noted: Vec::new(),
        }));
    }

    /// Takes what was noted, and ends noting.
    #[inline]
    pub fn take_departures(&mut self) -> Option<Box<Departures>> {
        self.cold.made()?.departures.take()
    }

    /// What a master or its replica knows of this job.
    pub fn known_of(&self, id: &[u8]) -> Known {
        let id = self.jobs.hashed(id);
        let Some(handle) = self.jobs.find(id) else {
            return self.known_of_done(id);
        };
        let job = self.jobs.job(handle);
        let life = job.life();
        if job.place() != Place::Dead {
            return Known::Lives;
        }
        let reason = job.failure().and_then(|failure| failure.reason);
        Known::Ended(JobEnd {
            outcome: Outcome::Dead,
            value: reason.map(<[u8]>::to_vec),
            at: Some(life.at),
            attempts: life.attempts,
        })
    }

    fn known_of_done(&self, id: Id<'_>) -> Known {
        let Some(handle) = self.find_done(id) else {
            return Known::Nothing;
        };
        let job = self.done().get(handle);
        Known::Ended(JobEnd {
            outcome: Outcome::Done,
            value: job.result.map(<[u8]>::to_vec),
            at: Some(job.finished),
            attempts: job.attempts,
        })
    }

    /// When the lease with this token ends.
    pub fn held_until(&self, id: &[u8], token: u64) -> Option<u64> {
        let job = self.jobs.job(self.jobs.find(self.jobs.hashed(id))?);
        let life = job.life();
        (job.place() == Place::Reserved && life.token == token).then_some(life.at)
    }

    #[inline]
    pub(in crate::queue::state) fn is_listened_to(&self) -> bool {
        let cold = self.cold.if_made();
        cold.is_some_and(|it| it.departures.is_some())
    }

    /// Notes a departure before a change is carried out.
    #[cold]
    #[inline(never)]
    pub(super) fn note_change(&mut self, handle: Handle, change: Change<'_>) {
        let job = self.jobs.job(handle);
        let life = job.life();
        let lease_ended = (Outcome::Dead, Some(LEASE_ENDED));
        let (how, at) = match change {
            Change::Removed { cause, .. } => match cause {
                Removal::Acked | Removal::Popped => ((Outcome::Done, None), None),
                Removal::Deleted => ((Outcome::Deleted, None), None),
                Removal::Expired | Removal::TimedOutExpired => {
                    ((Outcome::Expired, None), Some(life.expires))
                }
            },
            Change::Succeeded { end, .. } => match end {
                End::Acked | End::Popped => ((Outcome::Done, None), None),
                End::TimedOut => (lease_ended, Some(life.at)),
                End::Nacked => ((Outcome::Dead, None), None),
            },
            Change::Died { at, cause } => match cause {
                Death::TimedOut => (lease_ended, Some(at)),
                Death::Nacked { .. } => ((Outcome::Dead, None), Some(at)),
            },
            Change::TimedOut | Change::Nacked { .. } => return self.note_loss(handle),
            Change::Reserved { .. }
            | Change::Touched { .. }
            | Change::Rescheduled { .. }
            | Change::Kicked { .. }
            | Change::Prioritized { .. }
            | Change::SuccessorExpired
            | Change::Unblocked { .. } => return,
        };
        let popped = matches!(
            change,
            Change::Removed {
                cause: Removal::Popped,
                ..
            } | Change::Succeeded {
                end: End::Popped,
                ..
            }
        );
        self.note_end(handle, how, at, popped);
    }

    /// Notes the end of an occurrence before it is carried out.
    #[cold]
    #[inline(never)]
    pub(super) fn note_occurrence(
        &mut self,
        handle: Handle,
        ended: Ended,
        failure: Option<Failure<'_>>,
    ) {
        let life = self.jobs.job(handle).life();
        let (how, at) = match ended {
            Ended::Acked | Ended::Popped => ((Outcome::Done, None), None),
            Ended::Missed => ((Outcome::Expired, None), self.jobs.skipped_at(handle)),
            Ended::Expired | Ended::TimedOutExpired => {
                ((Outcome::Expired, None), Some(life.expires))
            }
            Ended::TimedOut { at, .. } => ((Outcome::Dead, Some(LEASE_ENDED)), Some(at)),
            Ended::Nacked { at, .. } => {
                let reason = failure.and_then(|failure| failure.reason);
                ((Outcome::Dead, reason), Some(at))
            }
        };
        self.note_end(handle, how, at, ended == Ended::Popped);
    }

    /// Notes the end of a job before it becomes done and is kept.
    #[cold]
    #[inline(never)]
    pub(super) fn note_done_end(&mut self, handle: Handle, end: DoneEnd<'_>) {
        let how = (Outcome::Done, end.result);
        self.note_end(handle, how, Some(end.finished), false);
    }

    pub(in crate::queue::state) fn note_end(
        &mut self,
        handle: Handle,
        (outcome, value): (Outcome, Option<&[u8]>),
        at: Option<u64>,
        popped: bool,
    ) {
        let attempts = self.jobs.job(handle).life().attempts;
        let end = JobEnd {
            outcome,
            value: value.map(<[u8]>::to_vec),
            at,
            attempts: attempts.saturating_add(popped.into()),
        };
        self.depart(handle, Some(end));
    }

    /// Notes that a job that lives on, or is replaced, is no longer held by its worker.
    #[cold]
    #[inline(never)]
    pub(super) fn note_loss(&mut self, handle: Handle) {
        self.depart(handle, None);
    }

    fn depart(&mut self, handle: Handle, end: Option<JobEnd>) {
        let job = self.jobs.job(handle);
        let departure = Departure {
            id: job.id().to_vec(),
            token: job.life().token,
            is_claimed: false,
            end,
        };
        if let Some(departures) = self.departures() {
            departures.noted.push(departure);
        }
    }

    /// Sets the value of the job that ended last, if its end itself does not say it.
    pub(in crate::queue) fn note_value(&mut self, value: Option<&[u8]>) {
        if let Some(end) = self.last_departure().and_then(|it| it.end.as_mut()) {
            end.value = value.map(<[u8]>::to_vec);
        }
    }

    /// Says of the delivery that ended last whether its own worker ended it.
    pub(in crate::queue) fn note_claimed(&mut self, is_claimed: bool) {
        if let Some(departure) = self.last_departure() {
            departure.is_claimed = is_claimed;
        }
    }

    #[inline]
    fn last_departure(&mut self) -> Option<&mut Departure> {
        self.departures()?.noted.last_mut()
    }

    #[inline]
    fn departures(&mut self) -> Option<&mut Departures> {
        self.cold.made()?.departures.as_deref_mut()
    }

    /// Removes many jobs at once, by `remove`. Those that clients wait for are looked up before and after.
    pub(super) fn noting_removed(&mut self, remove: impl FnOnce(&mut Self)) {
        let Some(departures) = &self.cold.departures else {
            return remove(self);
        };
        let mut noted = Vec::new();
        for id in (departures.listened)() {
            if let Some(handle) = self.jobs.find(self.jobs.hashed(&id)) {
                let life = self.jobs.job(handle).life();
                let end = JobEnd {
                    outcome: Outcome::Deleted,
                    value: None,
                    at: None,
                    attempts: life.attempts,
                };
                noted.push(Departure {
                    id,
                    token: life.token,
                    is_claimed: false,
                    end: Some(end),
                });
            }
        }
        remove(self);
        noted.retain(|departure| self.jobs.find(self.jobs.hashed(&departure.id)).is_none());
        if let Some(departures) = self.departures() {
            departures.noted.append(&mut noted);
        }
    }
}

//! Jobs that end, and deliveries that do, noted where they are carried out: on a master and on a replica alike, whether
//! or not anybody reads effects. They are noted only while a client waits for them, from the beginning of a command to
//! its end. What an ended job leaves behind may be gone a moment later, so nobody can ask for it then.

use super::jobs::Jobs;
use crate::queue::effect::{Change, DeathCause, EndCause, OccurrenceCause, RemovalCause};
use crate::queue::job::{Failure, Handle, LEASE_ENDED};
use crate::queue::outcome::{Departure, JobEnd, Outcome};

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

    pub(super) fn new(listened: Listened) -> Self {
        Departures {
            listened,
            noted: Vec::new(),
        }
    }

    /// Notes a departure before a change is carried out.
    #[cold]
    #[inline(never)]
    pub(super) fn changed(&mut self, handle: Handle, change: Change<'_>, jobs: &Jobs) {
        let life = jobs.job(handle).life();
        let lease_ended = (Outcome::Dead, Some(LEASE_ENDED));
        let (how, at) = match change {
            Change::Removed { cause, .. } => match cause {
                RemovalCause::Acked | RemovalCause::Popped => ((Outcome::Done, None), None),
                RemovalCause::Deleted => ((Outcome::Deleted, None), None),
                RemovalCause::Expired | RemovalCause::TimedOutExpired => {
                    ((Outcome::Expired, None), Some(life.expires))
                }
            },
            Change::Succeeded { end, .. } => match end {
                EndCause::Acked | EndCause::Popped => ((Outcome::Done, None), None),
                EndCause::TimedOut => (lease_ended, Some(life.at)),
                EndCause::Nacked => ((Outcome::Dead, None), None),
            },
            Change::Died { at, cause } => match cause {
                DeathCause::TimedOut => (lease_ended, Some(at)),
                DeathCause::Nacked { .. } => ((Outcome::Dead, None), Some(at)),
            },
            Change::TimedOut | Change::Nacked { .. } => return self.lost(handle, jobs),
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
                cause: RemovalCause::Popped,
                ..
            } | Change::Succeeded {
                end: EndCause::Popped,
                ..
            }
        );
        self.ended(handle, how, (at, popped), jobs);
    }

    /// Notes the end of an occurrence before it is carried out.
    #[cold]
    #[inline(never)]
    pub(super) fn occurred(
        &mut self,
        handle: Handle,
        ended: OccurrenceCause,
        failure: Option<Failure<'_>>,
        jobs: &Jobs,
    ) {
        let life = jobs.job(handle).life();
        let (how, at) = match ended {
            OccurrenceCause::Acked | OccurrenceCause::Popped => ((Outcome::Done, None), None),
            OccurrenceCause::Missed => ((Outcome::Expired, None), jobs.skipped_at(handle)),
            OccurrenceCause::Expired | OccurrenceCause::TimedOutExpired => {
                ((Outcome::Expired, None), Some(life.expires))
            }
            OccurrenceCause::TimedOut { at, .. } => ((Outcome::Dead, Some(LEASE_ENDED)), Some(at)),
            OccurrenceCause::Nacked { at, .. } => {
                let reason = failure.and_then(|failure| failure.reason);
                ((Outcome::Dead, reason), Some(at))
            }
        };
        self.ended(handle, how, (at, ended == OccurrenceCause::Popped), jobs);
    }

    /// Notes the end of a job; `popped`: by a delivery that is not counted yet.
    pub(super) fn ended(
        &mut self,
        handle: Handle,
        (outcome, value): (Outcome, Option<&[u8]>),
        (at, popped): (Option<u64>, bool),
        jobs: &Jobs,
    ) {
        let attempts = jobs.job(handle).life().attempts;
        let end = JobEnd {
            outcome,
            value: value.map(<[u8]>::to_vec),
            at,
            attempts: attempts.saturating_add(popped.into()),
        };
        self.depart(handle, Some(end), jobs);
    }

    /// Notes that a job that lives on, or is replaced, is no longer held by its worker.
    #[cold]
    #[inline(never)]
    pub(super) fn lost(&mut self, handle: Handle, jobs: &Jobs) {
        self.depart(handle, None, jobs);
    }

    fn depart(&mut self, handle: Handle, end: Option<JobEnd>, jobs: &Jobs) {
        let job = jobs.job(handle);
        self.noted.push(Departure {
            id: job.id().to_vec(),
            token: job.life().token,
            is_claimed: false,
            end,
        });
    }

    pub(super) fn last(&mut self) -> Option<&mut Departure> {
        self.noted.last_mut()
    }

    /// The jobs that clients wait for, of which many may be about to be removed at once.
    pub(super) fn about_to_go(&self, jobs: &Jobs) -> Vec<Departure> {
        let going = (self.listened)().into_iter().filter_map(|id| {
            let life = jobs.job(jobs.find(jobs.hashed(&id))?).life();
            let end = JobEnd {
                outcome: Outcome::Deleted,
                value: None,
                at: None,
                attempts: life.attempts,
            };
            Some(Departure {
                id,
                token: life.token,
                is_claimed: false,
                end: Some(end),
            })
        });
        going.collect()
    }

    /// Notes those that were about to go and are gone.
    pub(super) fn gone(&mut self, going: Vec<Departure>, jobs: &Jobs) {
        let is_gone = |it: &Departure| jobs.find(jobs.hashed(&it.id)).is_none();
        self.noted.extend(going.into_iter().filter(is_gone));
    }
}

//! Carrying out effects on recurring jobs. When an occurrence ends, and what follows, is decided in
//! [`crate::queue::end`].

use super::bounds::{check_instant, check_next, malformed};
use super::jobs::Jobs;
use super::moves::Known;
use super::notes::OwnNotes;
use super::parts::Parts;
use super::store::{NewJob, Status, NO_RULE};
use super::Queue;
use crate::queue::effect::{Came, OccurrenceCause};
use crate::queue::error::QueueError;
use crate::queue::job::{Failure, Handle, Life, Place, Terms, ID_MAX, SEQ_MAX};
use crate::queue::recurring::rule::{Compiled, Next, Occurrence, Rule};
use crate::queue::tagged::Lasting;
use crate::storage::broken::there;

/// The id of an occurrence that stays as a job of its own, dead or done.
pub fn id_of_occurrence(id: &[u8], occurrence: u64) -> Vec<u8> {
    [id, format!("@{occurrence}").as_bytes()].concat()
}

impl Queue {
    pub(super) fn apply_recurs(
        &mut self,
        came: &Came<'_>,
        rule: &Rule<'_>,
        first: Next,
    ) -> Result<(), QueueError> {
        Compiled::of(rule)?;
        check_next(first)?;
        let id = self.jobs.hashed(came.id);
        let old = self.jobs.find(id);
        if old.is_none() && !self.jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        let occurrence = Occurrence {
            at: first.occurrence,
            runs: 0,
            delivered: false,
            offset_s: first.offset_s,
        };
        let mut job = NewJob {
            recurring: Some((rule.borrowed(), occurrence)),
            ..NewJob::of(came, (first.due, first.expires))
        };
        self.put(old, &mut job, id, Known::default());
        Ok(())
    }

    pub(super) fn apply_renewed(
        &mut self,
        came: &Came<'_>,
        rule: &Rule<'_>,
    ) -> Result<(), QueueError> {
        Compiled::of(rule)?;
        let handle = self.jobs.expect(came.id)?;
        let old = self.jobs.job(handle);
        let Some(recurring) = old.recurring() else {
            return Err(malformed("a rule made anew for a job that has none"));
        };
        let occurrence = recurring.occurrence;
        let Status { place, due, life } = old.status();
        let began = recurring.rule.rule.began(occurrence, due, life.expires);
        let reason = old.failure().and_then(|failure| failure.reason);
        let (reason, failed) = (reason.map(<[u8]>::to_vec), old.failure().map(|it| it.at));
        let job = NewJob {
            seq: old.seq(),
            place,
            life: Life {
                expires: rule.expires_after(began),
                ..life
            },
            failure: failed.map(|at| Failure {
                at,
                reason: reason.as_deref(),
            }),
            recurring: Some((rule.borrowed(), occurrence)),
            ..NewJob::of(came, (due, 0))
        };
        let client = self.jobs.client_of(handle);
        let notes = self.jobs.take_notes(handle, |_| true);
        self.parts.remove(&mut self.jobs, handle);
        let handle = self.insert(&job, self.jobs.hashed(came.id), Known::default());
        self.jobs.give_notes(handle, notes);
        if let Some(client) = client {
            self.jobs.set_client(handle, client);
        }
        Ok(())
    }

    /// Ends an occurrence: a dead one stays as a job of its own, and the next one begins.
    pub(super) fn recur(
        &mut self,
        handle: Handle,
        ended: OccurrenceCause,
        next: Option<Next>,
        failure: Option<Failure<'_>>,
    ) {
        if let Some(departures) = self.parts.departures() {
            departures.occurred(handle, ended, failure, &self.jobs);
        }
        if ended == OccurrenceCause::Popped {
            self.serving_mut().note_served(handle);
        }
        if let OccurrenceCause::Nacked { priority, .. } = ended {
            if priority != self.jobs.job(handle).terms().priority {
                let mut at = self.jobs.position(handle);
                self.parts.unlink(&mut self.jobs, handle, &at);
                self.jobs.set_priority(handle, priority);
                at.priority = priority;
                self.parts.link(&mut self.jobs, handle, &at);
            }
        }
        let dead = ended
            .death()
            .map(|at| self.parts.dead_copy(&mut self.jobs, handle, at));
        match next {
            None => self.parts.remove(&mut self.jobs, handle),
            Some(next) => self.parts.begin(&mut self.jobs, handle, next, ended.died()),
        }
        let Some(mut dead) = dead else {
            return;
        };
        let failure = match ended {
            OccurrenceCause::TimedOut { at, .. } => Some(Failure::of_lease(at)),
            _ => failure,
        };
        self.parts.count_death(&mut self.jobs);
        let seq = self.parts.next_seq(&mut self.jobs);
        dead.life.death = self.jobs.numbers.deaths;
        let job = NewJob {
            seq,
            place: Place::Dead,
            group: dead.group.as_deref(),
            life: dead.life,
            failure,
            ..NewJob::scheduled(&dead.id, &dead.payload, (dead.due, 0), &dead.terms)
        };
        let handle = self.insert(&job, self.jobs.hashed(&dead.id), Known::default());
        self.jobs.give_notes(handle, dead.notes);
    }
}

impl Parts {
    /// Whether the current occurrence may stay as a job of its own, dead or done.
    pub(in crate::queue) fn has_room_for_occurrence(&self, jobs: &Jobs, handle: Handle) -> bool {
        let job = jobs.job(handle);
        let Some(recurring) = job.recurring() else {
            return false;
        };
        let id = id_of_occurrence(job.id(), recurring.occurrence.at);
        let hashed = jobs.hashed(&id);
        let is_free = jobs.find(hashed).is_none() && self.done.find(hashed).is_none();
        id.len() <= ID_MAX && is_free && jobs.has_room()
    }

    pub(super) fn check_recurred(
        &self,
        jobs: &Jobs,
        handle: Handle,
        ended: OccurrenceCause,
        next: Option<Next>,
    ) -> Result<(), QueueError> {
        next.map_or(Ok(()), check_next)?;
        if let OccurrenceCause::TimedOut { at, .. } | OccurrenceCause::Nacked { at, .. } = ended {
            check_instant(at)?;
        }
        let runs = jobs.job(handle).recurring().map(|it| it.occurrence.runs);
        let fits = runs.is_some_and(|runs| runs < SEQ_MAX)
            && (ended.death().is_none() || self.has_room_for_occurrence(jobs, handle));
        if !fits {
            return Err(malformed("an effect that the job's state does not allow"));
        }
        Ok(())
    }

    /// The occurrence that has died, with its notes, which the next one does not get.
    fn dead_copy(&mut self, jobs: &mut Jobs, handle: Handle, at: u64) -> DeadCopy {
        let stays = |tag| Lasting::of(tag) != Lasting::Place;
        let notes = jobs.take_notes(handle, stays);
        let job = jobs.job(handle);
        let Status { due, life, .. } = job.status();
        let recurring = there(job.recurring(), NO_RULE);
        DeadCopy {
            id: id_of_occurrence(job.id(), recurring.occurrence.at),
            group: self.group_of(jobs, handle).map(Into::into),
            payload: job.payload().to_vec(),
            notes,
            terms: job.terms().clone(),
            due,
            life: Life {
                at,
                attempts: life.attempts,
                ..Life::default()
            },
        }
    }

    fn begin(&mut self, jobs: &mut Jobs, handle: Handle, next: Next, died: bool) {
        let before = jobs.position(handle);
        self.unlink(jobs, handle, &before);
        let status = Status {
            place: Place::Scheduled,
            due: next.due,
            life: Life {
                expires: next.expires,
                ..Life::default()
            },
        };
        jobs.set_status(handle, status);
        if jobs.has_notes() {
            jobs.retain_notes(handle, |_| false);
        }
        let ended = there(jobs.job(handle).recurring(), NO_RULE).occurrence;
        let occurrence = Occurrence {
            at: next.occurrence,
            runs: ended.runs + 1,
            delivered: false,
            offset_s: next.offset_s,
        };
        jobs.set_occurrence(handle, occurrence);
        // The failure stays with the occurrence that died.
        if died {
            jobs.clear_failure(handle);
        }
        let at = jobs.position(handle);
        self.link(jobs, handle, &at);
    }
}

/// A dead occurrence that is to be a job of its own.
struct DeadCopy {
    id: Vec<u8>,
    group: Option<Box<[u8]>>,
    payload: Vec<u8>,
    notes: OwnNotes,
    terms: Terms<'static>,
    due: u64,
    life: Life,
}

//! Successors, which NEXT adds: a job that waits until the one of its id is over, and takes its place.
//!
//! It is on no list, but for that of TTLs. How the job before it goes decides: finished or dead, the successor
//! stands in its place; gone in any other way, it takes the successor along.

use super::changes::{check_stored, CONTRADICTION};
use super::clock::Now;
use super::effect::{Change, Effect, Effects, End};
use super::error::QueueError;
use super::job::{Handle, Place, Terms};
use super::settings::check_terms;
use super::store::NewJob;
use super::Queue;

/// Whether each successor among jobs that come as rows stands behind the job it follows.
pub(super) fn check_successors<'a>(
    jobs: impl Iterator<Item = NewJob<'a>>,
) -> Result<(), QueueError> {
    let mut before: Option<NewJob<'_>> = None;
    for job in jobs {
        let follows = before.is_some_and(|before| {
            before.id == job.id && matches!(before.place, Place::Scheduled | Place::Reserved)
        });
        if job.place == Place::Successor && !follows {
            return Err(QueueError::Malformed(CONTRADICTION));
        }
        before = Some(job);
    }
    Ok(())
}

impl Queue {
    pub(super) fn apply_followed(
        &mut self,
        id: &[u8],
        payload: &[u8],
        instants: (u64, u64),
        terms: &Terms<'_>,
    ) -> Result<(), QueueError> {
        let handle = self.expect(id)?;
        check_terms(terms)?;
        let job = NewJob {
            place: Place::Successor,
            ..NewJob::scheduled(id, payload, instants, terms)
        };
        check_stored(&job)?;
        if !matches!(
            self.jobs.job(handle).place(),
            Place::Scheduled | Place::Reserved
        ) {
            return Err(QueueError::Malformed(CONTRADICTION));
        }
        if !self.jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        self.follow(handle, job);
        Ok(())
    }

    /// Puts a job, the last in the order of adding, behind the one of its id.
    fn follow(&mut self, handle: Handle, mut job: NewJob<'_>) {
        self.remove_successor(handle);
        self.seq += 1;
        job.seq = self.seq;
        let successor = self.insert(&job, self.jobs.hashed(job.id), None);
        self.jobs.set_successor(handle, successor);
    }

    /// Records a successor, and keeps it.
    pub(super) fn commit_followed(&mut self, handle: Handle, job: NewJob<'_>, out: &mut Effects) {
        let replaces = self.jobs.successor(handle).is_some();
        out.push(&Effect::Followed {
            id: job.id,
            payload: job.payload,
            due: job.due,
            expires: job.life.expires,
            terms: job.terms.borrowed(),
        });
        for totals in [&mut *self.totals, &mut out.totals] {
            totals.deleted += u64::from(replaces);
        }
        self.follow(handle, job);
    }

    pub(super) fn remove_successor(&mut self, handle: Handle) {
        if let Some(successor) = self.jobs.take_successor(handle) {
            self.remove(successor);
        }
    }

    /// The job goes, its successor takes its place.
    pub(super) fn succeed(&mut self, handle: Handle, remember: u64) {
        self.remember_job(handle, remember);
        let Some(successor) = self.jobs.take_successor(handle) else {
            return;
        };
        self.remove(handle);
        let mut at = self.position(successor);
        self.unlink(successor, at);
        at.course.place = Place::Scheduled;
        self.jobs.set_course(successor, at.course);
        self.jobs.index_successor(successor);
        self.link(successor, at, None);
    }

    /// How a job goes that ends so now: as said, unless it has a successor.
    pub(super) fn ended(
        &mut self,
        handle: Handle,
        otherwise: Change,
        end: End,
        now: Now,
        out: &mut Effects,
    ) -> Change {
        self.expire_successor(handle, now.ms() + 1, now, out);
        self.succeeded_at(handle, otherwise, end, now.ms())
    }

    /// The same at an instant up to which successors' TTLs have been carried out.
    pub(super) fn succeeded_at(
        &self,
        handle: Handle,
        otherwise: Change,
        end: End,
        at: u64,
    ) -> Change {
        let Some(successor) = self.jobs.successor(handle) else {
            return otherwise;
        };
        let remember = match otherwise {
            Change::Removed { remember, .. } => remember,
            _ => 0,
        };
        let ready = self.jobs.job(successor).due() <= at;
        Change::Succeeded {
            end,
            remember,
            ready,
        }
    }

    /// Carries out that a successor's TTL ended before that instant.
    #[inline]
    pub(super) fn expire_successor(
        &mut self,
        handle: Handle,
        before: u64,
        now: Now,
        out: &mut Effects,
    ) {
        let Some(successor) = self.jobs.successor(handle) else {
            return;
        };
        let expires = self.jobs.job(successor).life().expires;
        if expires != 0 && expires < before {
            self.commit_job(handle, Change::SuccessorExpired, now, out);
        }
    }

    /// The same where all that is known is the successor, which the list of TTLs has told of.
    pub(super) fn expire_as_successor(&mut self, successor: Handle, now: Now, out: &mut Effects) {
        let id = self.jobs.hashed(self.jobs.job(successor).id());
        let Some(handle) = self.jobs.find(id) else {
            debug_assert!(false, "a successor of nobody");
            return;
        };
        if self.is_ghost(handle) {
            self.free_ghosts_successor(handle);
        } else {
            self.commit_job(handle, Change::SuccessorExpired, now, out);
        }
    }
}

//! Jobs of snapshots: checking them, and putting them back. The bytes may be forged.

use super::bounds::{malformed, CONTRADICTION};
use super::fits::check_stored;
use super::groups::check_turns;
use super::jobs::Jobs;
use super::moves::Known;
use super::rows;
use super::store::NewJob;
use super::Queue;
use crate::queue::error::QueueError;
use crate::queue::job::Place;
use crate::queue::recurring::rule::Compiled;
use crate::queue::settings::check_terms;

/// Whether each successor among jobs that come as rows stands behind the job it follows.
fn check_successors<'a>(jobs: impl Iterator<Item = NewJob<'a>>) -> Result<(), QueueError> {
    let mut before: Option<NewJob<'_>> = None;
    for job in jobs {
        let follows = before.is_some_and(|before| {
            before.id == job.id
                && matches!(
                    before.place,
                    Place::Scheduled | Place::Reserved | Place::Blocked
                )
                && before.recurring.is_none()
        });
        if job.place == Place::Successor && !follows {
            return Err(QueueError::Malformed(CONTRADICTION));
        }
        before = Some(job);
    }
    Ok(())
}

impl Queue {
    pub(super) fn apply_rows(&mut self, bytes: &[u8]) -> Result<(), QueueError> {
        if self.jobs.has_notes() {
            return Err(malformed("jobs as they stand, behind notes"));
        }
        let all = rows::read(bytes)?;
        all.terms.iter().try_for_each(check_terms)?;
        let of_rule = |rule| Compiled::of(rule).map(drop);
        all.rules.iter().try_for_each(of_rule)?;
        let jobs = || all.jobs();
        jobs().try_for_each(|job| check_stored(&job))?;
        check_successors(jobs())?;
        if all.has_groups {
            check_turns(self.parts.groups(), jobs(), &self.jobs)?;
        }
        if !self.jobs.is_unindexed() {
            let others = jobs().filter(|job| job.place != Place::Successor);
            self.jobs.check_distinct(others.map(|job| job.id))?;
        }
        if !self.jobs.has_room_for(all.rows.len()) {
            return Err(QueueError::TooManyJobs);
        }
        let has_blocked = jobs().any(|job| job.place == Place::Blocked);
        let mut last = None;
        for job in jobs() {
            let is_successor = job.place == Place::Successor;
            self.jobs
                .numbers
                .raise_to(job.seq, job.life.death, job.life.token);
            let handle = self.insert(&job, self.jobs.hashed(job.id), Known::default());
            match last.filter(|_| is_successor) {
                Some(before) => self.jobs.set_successor(before, handle),
                None => last = Some(handle),
            }
        }
        if has_blocked {
            let flows = self.parts.flows.as_mut();
            flows.into_iter().for_each(|it| it.check_later());
        }
        Ok(())
    }
}

impl Jobs {
    /// Whether these ids are new, and no two of them the same.
    fn check_distinct<'a>(&self, ids: impl Iterator<Item = &'a [u8]>) -> Result<(), QueueError> {
        let mut ids: Vec<&[u8]> = ids.collect();
        // All are looked up before the first job is inserted, so that their places in the index are fetched from memory
        // at the same time, not one after the other.
        let known = ids.iter().any(|id| self.find(self.hashed(id)).is_some());
        ids.sort_unstable();
        if known || !ids.is_sorted_by(|a, b| a < b) {
            return Err(malformed(CONTRADICTION));
        }
        Ok(())
    }
}

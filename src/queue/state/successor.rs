//! Carrying out effects on successors. How a job ends that has one is decided in
//! [`crate::queue::successor`].

use super::bounds::CONTRADICTION;
use super::fits::check_stored;
use super::moves::Known;
use super::store::NewJob;
use super::Queue;
use crate::queue::effect::Came;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place};
use crate::storage::broken::there;

impl Queue {
    pub(super) fn apply_behind(
        &mut self,
        came: &Came<'_>,
        instants: (u64, u64),
    ) -> Result<(), QueueError> {
        let handle = self.jobs.expect(came.id)?;
        let job = NewJob {
            place: Place::Successor,
            ..NewJob::of(came, instants)
        };
        check_stored(&job)?;
        if !matches!(
            self.jobs.job(handle).place(),
            Place::Scheduled | Place::Reserved
        ) || self.jobs.job(handle).recurring().is_some()
        {
            return Err(QueueError::Malformed(CONTRADICTION));
        }
        if !self.jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        self.follow(handle, job);
        Ok(())
    }

    /// Adds a successor, the last in the order of adding, to the job that has its id.
    pub(super) fn follow(&mut self, handle: Handle, mut job: NewJob<'_>) {
        self.remove_successor(handle);
        job.seq = self.next_seq();
        let successor = self.insert(&job, self.jobs.hashed(job.id), Known::default());
        self.jobs.set_successor(handle, successor);
    }

    pub(super) fn remove_successor(&mut self, handle: Handle) {
        if let Some(successor) = self.jobs.take_successor(handle) {
            self.remove(successor);
        }
    }

    /// Removes a job, whose successor takes its place.
    pub(super) fn succeed(&mut self, handle: Handle, remember: u64) {
        self.remember_job(handle, remember);
        let successor = there(self.jobs.take_successor(handle), "nobody to succeed a job");
        let awaited = self.parts.flows.as_mut().map(|flows| flows.lift(handle));
        self.remove(handle);
        let mut at = self.jobs.position(successor);
        self.unlink(successor, &at);
        at.status.place = Place::Scheduled;
        self.jobs.set_status(successor, at.status);
        self.jobs.index_successor(successor);
        if let Some((flows, awaited)) = self.parts.flows.as_mut().zip(awaited) {
            flows.give(awaited, successor);
        }
        let group = self.jobs.job(successor).group();
        let limits = &self.settings.group_limits;
        let turn = (Place::Scheduled, None);
        self.parts.begin_turn(group, turn, limits, &self.jobs);
        self.link(successor, &at);
    }
}

//! Blocked jobs: on which lists they stand, and how they leave them.

use super::{Flows, What, NONE};
use crate::queue::after::Moment;
use crate::queue::job::GroupNumber;
use crate::queue::job::{Failure, Handle, Place};
use crate::queue::state::position::Position;
use crate::queue::state::store::Store;
use crate::queue::state::Queue;
use crate::storage::broken::must;
use std::mem;

impl Flows {
    /// Notes that a job is blocked now.
    pub(in crate::queue::state) fn blocked(
        &mut self,
        handle: Handle,
        group: Option<GroupNumber>,
        jobs: &Store,
    ) {
        if let Some(group) = group {
            self.members
                .insert(group, handle, |handle| jobs.job(handle).seq());
        }
    }

    /// Notes that a job with a group is blocked no longer.
    pub(in crate::queue::state) fn unblocked(
        &mut self,
        handle: Handle,
        group: GroupNumber,
        jobs: &Store,
    ) {
        let there = self
            .members
            .remove(group, handle, |handle| jobs.job(handle).seq());
        must(there, "a blocked job that its group does not know");
    }

    /// Whether jobs wait for this group to be empty.
    pub(in crate::queue::state) fn awaits_group(&self, group: GroupNumber) -> bool {
        self.of_group.contains_key(&group)
    }

    /// Notes that a group for which jobs wait may be empty.
    pub(in crate::queue::state) fn note_empty(&mut self, group: GroupNumber) {
        self.emptied.entry(group).or_insert(self.moment);
    }

    /// Notes that a job of this group stands somewhere: unless it is dead, the group is not empty.
    pub(in crate::queue::state) fn note_member(&mut self, group: GroupNumber, place: Place) {
        if matches!(place, Place::Scheduled | Place::Reserved | Place::Blocked) {
            self.emptied.remove(&group);
        }
    }

    /// For tests: the groups that are kept because jobs wait for them.
    pub(in crate::queue::state) fn group_users(&self) -> impl Iterator<Item = GroupNumber> + '_ {
        self.awaited
            .iter()
            .filter_map(|awaited| match awaited.what {
                What::Group(group) => Some(group),
                What::Job(_) | What::Over(_) => None,
            })
    }
}

impl Queue {
    /// Says when the jobs that a rule is about to end ended.
    #[inline]
    pub(in crate::queue) fn note_moment(&mut self, at: Moment) {
        if let Some(flows) = &mut self.flows {
            flows.moment = at;
        }
    }

    /// Whether the job's due time is an instant: not while it is a delay from an end that has not
    /// come.
    pub(in crate::queue) fn has_due(&self, handle: Handle) -> bool {
        let record = |flows: &Flows| flows.record(handle).is_some_and(|it| !it.is_timed());
        let is_open = self.flows.as_deref().is_some_and(record);
        !is_open || self.jobs.job(handle).place() != Place::Blocked
    }

    /// Ends all waits. Returns what is left of them, to be freed.
    pub(in crate::queue::state) fn end_all_waits(&mut self) -> Option<Box<Flows>> {
        let flows = self.flows.as_mut()?;
        let left = Flows {
            members: mem::take(&mut flows.members),
            edges: mem::take(&mut flows.edges),
            of_job: mem::take(&mut flows.of_job),
            of_group: mem::take(&mut flows.of_group),
            ..Flows::default()
        };
        flows.latest = NONE;
        flows.emptied.clear();
        for pending in mem::take(&mut flows.line) {
            self.flows_mut().drop_over(pending.over);
            let numbers = pending.numbers.into_iter().filter(|&it| it != NONE);
            numbers.for_each(|number| self.release_number(number));
        }
        Some(Box::new(left))
    }

    pub(in crate::queue::state) fn is_group_awaited(&self, group: GroupNumber) -> bool {
        let flows = self.flows.as_ref();
        flows.is_some_and(|flows| flows.awaits_group(group))
    }

    /// Moves a blocked job to the schedule.
    pub(super) fn unblock(&mut self, handle: Handle, due: u64) {
        let mut at = self.jobs.position(handle);
        must(
            at.course.place == Place::Blocked,
            "a job that is not blocked",
        );
        self.unlink(handle, at);
        (at.course.place, at.course.due) = (Place::Scheduled, due);
        self.move_to(handle, at);
    }

    /// Blocks a job. It keeps its due time.
    pub(super) fn block(&mut self, handle: Handle) {
        let mut at = self.jobs.position(handle);
        self.unlink(handle, at);
        at.course.place = Place::Blocked;
        self.move_to(handle, at);
    }

    /// Has a scheduled or blocked job die of another one's end.
    pub(super) fn kill(&mut self, handle: Handle, moment: Moment, due: u64, reason: &[u8]) {
        self.note_moment(moment);
        self.count_death();
        let mut at = self.jobs.position(handle);
        self.unlink(handle, at);
        let course = &mut at.course;
        (course.place, course.due) = (Place::Dead, due);
        (course.life.at, course.life.death) = (moment.ms, self.jobs.numbers.deaths);
        (course.life.token, course.life.lease_ms) = (0, 0);
        self.move_to(handle, at);
        let failure = Failure {
            at: moment.ms,
            reason: Some(reason),
        };
        self.jobs.set_failure(handle, failure);
    }

    fn move_to(&mut self, handle: Handle, at: Position) {
        self.jobs.set_course(handle, at.course);
        self.link(handle, at, None);
    }
}

/// The reason of a job that dies of another one's end.
pub(super) fn reason_of(id: &[u8], outcome: &str) -> Vec<u8> {
    [b"after ", id, b": ", outcome.as_bytes()].concat()
}

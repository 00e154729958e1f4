//! Blocked jobs: on which lists they stand, and how they leave them.

use super::{Flows, What};
use crate::queue::job::GroupNumber;
use crate::queue::job::{Handle, Place};
use crate::queue::state::jobs::Jobs;
use crate::queue::state::store::Store;
use crate::storage::broken::must;

impl Flows {
    /// Notes that a job is blocked now.
    pub fn blocked(&mut self, handle: Handle, group: Option<GroupNumber>, jobs: &Store) {
        if let Some(group) = group {
            self.members
                .insert(group, handle, |handle| jobs.job(handle).seq());
        }
    }

    /// Notes that a job with a group is blocked no longer.
    pub fn unblocked(&mut self, handle: Handle, group: GroupNumber, jobs: &Store) {
        let there = self
            .members
            .remove(group, handle, |handle| jobs.job(handle).seq());
        must(there, "a blocked job that its group does not know");
    }

    /// Whether jobs wait for this group to be empty.
    pub fn awaits_group(&self, group: GroupNumber) -> bool {
        self.of_group.contains_key(&group)
    }

    /// Notes that a group for which jobs wait may be empty.
    pub fn note_empty(&mut self, group: GroupNumber) {
        self.emptied.entry(group).or_insert(self.moment);
    }

    /// Notes that a job of this group stands somewhere: unless it is dead, the group is not empty.
    pub fn note_member(&mut self, group: GroupNumber, place: Place) {
        if matches!(place, Place::Scheduled | Place::Reserved | Place::Blocked) {
            self.emptied.remove(&group);
        }
    }

    /// For tests: the groups that are kept because jobs wait for them.
    pub fn group_users(&self) -> impl Iterator<Item = GroupNumber> + '_ {
        self.awaited
            .iter()
            .filter_map(|awaited| match awaited.what {
                What::Group(group) => Some(group),
                What::Job(_) | What::Over(_) => None,
            })
    }
    /// Whether the job's due time is an instant: not while it is a delay from an end that has not come.
    pub fn has_due(&self, handle: Handle, jobs: &Jobs) -> bool {
        let is_delay = self.record(handle).is_some_and(|it| !it.is_timed());
        !is_delay || !jobs.is_blocked(handle)
    }

    /// The instant of the end that is to be carried out next; 0 if groups or blocked jobs are to be checked.
    pub fn work_since(&self) -> Option<u64> {
        if !self.is_pending() {
            return None;
        }
        let is_known = self.emptied.is_empty() && !self.is_unchecked;
        let first = self.line.front().filter(|_| is_known);
        Some(first.map_or(0, |pending| self.over(pending.over).at.ms))
    }
}

/// The reason of a job that dies of another one's end.
pub fn reason_of(id: &[u8], outcome: &str) -> Vec<u8> {
    [b"after ", id, b": ", outcome.as_bytes()].concat()
}

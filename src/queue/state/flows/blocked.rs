//! Blocked jobs: on which lists they stand, how they leave them, and which never would: only forged data has such.

use super::{Flows, What};
use crate::queue::after::Moment;
use crate::queue::job::{GroupNumber, Handle, Place};
use crate::queue::state::jobs::Jobs;
use crate::queue::state::store::Store;
use crate::storage::broken::must;
use std::collections::HashMap;

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

    /// Notes that each group for which jobs wait may be empty.
    pub fn note_all_emptied(&mut self) {
        self.unsure = self.of_group.keys().next().copied();
    }

    pub(super) fn has_emptied(&self) -> bool {
        !self.emptied.is_empty() || self.unsure.is_some()
    }

    /// The next group that may have become empty, and since when; the default: since now.
    pub fn next_emptied(&mut self) -> Option<(GroupNumber, Moment)> {
        if let Some(first) = self.emptied.pop_first() {
            return Some(first);
        }
        let mut left = self.of_group.range(self.unsure.take()?..);
        let (&group, _) = left.next()?;
        self.unsure = left.next().map(|(&next, _)| next);
        Some((group, Moment::default()))
    }

    /// Notes that a job of this group stands somewhere: unless it is dead, the group is not empty.
    pub fn note_member(&mut self, group: GroupNumber, place: Place) {
        if matches!(place, Place::Scheduled | Place::Reserved | Place::Blocked) {
            self.emptied.remove(&group);
        }
    }

    /// Blocked jobs of a group.
    pub fn members_of(&self, group: GroupNumber) -> impl Iterator<Item = Handle> + '_ {
        let members = &self.members;
        let from = (!members.is_empty()).then(|| members.iter_from(group));
        let all = from.into_iter().flatten();
        all.take_while(move |&(of, _)| of == group)
            .map(|(_, handle)| handle)
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
        let is_known = !self.has_emptied() && !self.is_unchecked;
        let first = self.line.front().filter(|_| is_known);
        Some(first.map_or(0, |pending| self.over(pending.over).at.ms))
    }

    /// It is still to be checked that no job would stay blocked for ever.
    pub fn check_later(&mut self) {
        self.is_unchecked = true;
    }

    /// Blocked jobs that wait for nothing that can happen. From here on the flows count as checked.
    #[cold]
    pub fn take_stuck(&mut self, jobs: &Jobs) -> Vec<Handle> {
        self.end_restoring();
        self.is_unchecked = false;
        self.stuck(jobs)
    }

    pub(super) fn stuck(&self, jobs: &Jobs) -> Vec<Handle> {
        let waits = |job| self.record(job).is_some_and(|record| record.open > 0);
        let blocked = jobs.blocked().iter().map(|(_, job)| job);
        let idle: Vec<Handle> = blocked.filter(|&job| !waits(job)).collect();
        match idle.is_empty() {
            true => self.in_circles(jobs),
            false => idle.into_iter().chain(self.in_circles(jobs)).collect(),
        }
    }

    /// The blocked jobs that are left once those that wait for no blocked job are taken away, as often as there are
    /// any.
    fn in_circles(&self, jobs: &Jobs) -> Vec<Handle> {
        let is_blocked = |job: Handle| jobs.is_blocked(job);
        let blocked_still = |(job, count): (Handle, usize)| (count > 0).then_some(job);
        // For each job, how many blocked jobs, and groups with blocked jobs, it waits for. How many blocked jobs a
        // group has. And which jobs wait for a job or a group.
        let mut before: HashMap<Handle, usize> = HashMap::new();
        let mut members: HashMap<u32, usize> = HashMap::new();
        let mut of_job: HashMap<Handle, Vec<Handle>> = HashMap::new();
        let mut of_group: HashMap<u32, Vec<Handle>> = HashMap::new();
        for (_, job) in jobs.blocked().iter() {
            let links = self.record(job).map_or(&[][..], |it| it.links.get());
            let mut count = 0;
            for &number in links {
                match self.awaited(number).what {
                    What::Job(other) if is_blocked(other) => {
                        of_job.entry(other).or_default().push(job);
                        count += 1;
                    }
                    What::Group(group) => {
                        let blocked = *members
                            .entry(group)
                            .or_insert_with(|| self.members_of(group).count());
                        if blocked > 0 {
                            of_group.entry(group).or_default().push(job);
                            count += 1;
                        }
                    }
                    What::Job(_) | What::Over(_) => {}
                }
            }
            before.insert(job, count);
        }
        let free = before.iter().filter(|(_, &count)| count == 0);
        let mut free: Vec<Handle> = free.map(|(&job, _)| job).collect();
        while let Some(job) = free.pop() {
            let mut freed = of_job.remove(&job).unwrap_or_default();
            if let Some(group) = jobs.job(job).group() {
                if let Some(count) = members.get_mut(&group) {
                    *count -= 1;
                    if *count == 0 {
                        freed.extend(of_group.remove(&group).unwrap_or_default());
                    }
                }
            }
            for waiter in freed {
                let count = before.entry(waiter).or_default();
                *count = count.saturating_sub(1);
                if *count == 0 {
                    free.push(waiter);
                }
            }
        }
        let mut left: Vec<Handle> = before.into_iter().filter_map(blocked_still).collect();
        left.sort_unstable_by_key(|&job| jobs.job(job).seq());
        left
    }
}

/// The reason of a job that dies of another one's end.
pub fn reason_of(id: &[u8], outcome: &str) -> Vec<u8> {
    [b"after ", id, b": ", outcome.as_bytes()].concat()
}

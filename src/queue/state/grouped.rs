//! Jobs with a group: what the other parts of a queue have to do with groups.

use super::groups::Groups;
use super::store::NewJob;
use super::Queue;
use crate::queue::job::GroupNumber;
use crate::queue::job::{Handle, Place};

impl Queue {
    /// Its groups, to be read, if any job has one.
    #[inline]
    pub fn groups(&self) -> Option<&Groups> {
        self.parts.groups.as_deref()
    }

    /// The name of a job's group.
    pub(in crate::queue) fn group_of(&self, handle: Handle) -> Option<&[u8]> {
        let groups = self.parts.groups.as_ref()?;
        let number = self.jobs.job(handle).group()?;
        Some(groups.name(number))
    }

    /// As [`Groups::growth`].
    pub(in crate::queue) fn group_growth(&self, name: Option<&[u8]>, going: &[Handle]) -> i64 {
        let Some(groups) = &self.parts.groups else {
            return name.map_or(0, |name| name.len() as i64);
        };
        let is_awaited = |number| self.flows().is_some_and(|it| it.awaits_group(number));
        groups.growth(name, going, &self.jobs, is_awaited)
    }

    /// How many jobs have this group, and the length of its name.
    pub(in crate::queue) fn group_jobs(&self, number: GroupNumber) -> (u32, usize) {
        let waiting = u32::from(self.flows().is_some_and(|it| it.awaits_group(number)));
        let jobs = |groups: &Groups| (groups.users(number) - waiting, groups.name(number).len());
        self.groups().map_or((0, 0), jobs)
    }

    /// The group of a new job, with one user more.
    pub(super) fn acquire_group(&mut self, name: &[u8]) -> GroupNumber {
        let (others, limits) = (self.jobs.live_len() > 0, self.settings.group_limits);
        let groups = self.parts.groups.get_or_insert_with(|| {
            let mut groups = Box::new(Groups::new(limits));
            if others {
                groups.serve_own();
            }
            groups
        });
        groups.acquire(name, self.jobs.hasher().hash_one(name))
    }

    /// As [`Groups::begin_turn`].
    #[inline]
    pub(super) fn begin_turn(
        &mut self,
        group: Option<GroupNumber>,
        place: Place,
        known: Option<u64>,
    ) {
        if self.parts.groups.is_some() || known.is_some() {
            let limits = self.settings.group_limits;
            let groups = self
                .parts
                .groups
                .get_or_insert_with(|| Groups::new(limits).into());
            groups.begin_turn(group, place, known, &self.jobs);
        }
    }

    /// Takes purged jobs and their successors out of their groups, one by one.
    pub(super) fn leave_groups(&mut self, handles: &[Handle]) {
        for &handle in handles {
            let successor = self.jobs.successor(handle);
            for handle in [handle].into_iter().chain(successor) {
                if let Some(number) = self.jobs.job(handle).group() {
                    self.left(handle, self.jobs.position(handle), number);
                    self.refresh_group(number);
                    self.jobs.leave_group(handle);
                    self.release_group(number);
                }
            }
        }
    }

    /// Takes one user off a group. The structure is dropped with the last group.
    pub(super) fn release_group(&mut self, number: GroupNumber) {
        if let Some(groups) = &mut self.parts.groups {
            groups.release(number, &**self.jobs.hasher());
        }
        self.parts.groups.take_if(|groups| groups.is_none());
    }

    pub(super) fn refresh_group(&mut self, number: GroupNumber) {
        if let Some(groups) = &mut self.parts.groups {
            groups.refresh(number, &self.jobs, self.parts.group_rates.as_deref());
        }
    }

    /// A job as it stands, for another queue.
    pub(super) fn as_new(&self, handle: Handle) -> NewJob<'_> {
        NewJob {
            group: self.group_of(handle),
            ..self.jobs.as_new(handle)
        }
    }

    /// Updates up to `budget` groups; returns the unused budget. Not an effect: no command shows a difference.
    pub(super) fn update_groups(&mut self, budget: usize) -> usize {
        let rates = self.parts.group_rates.as_deref();
        let groups = self.parts.groups.as_mut();
        groups.map_or(budget, |it| it.update_some(budget, &self.jobs, rates))
    }

    /// Whether groups are still to be updated.
    #[inline]
    pub(in crate::queue) fn is_passing(&self) -> bool {
        self.groups().is_some_and(Groups::is_passing)
    }

    /// Carries out new settings of the groups.
    pub(super) fn regroup(&mut self) {
        if let Some(groups) = &mut self.parts.groups {
            let rates = self.parts.group_rates.as_deref();
            groups.configure(self.settings.group_limits, &self.jobs, rates);
        }
    }
}

//! Jobs with a group: what the other parts of a queue have to do with groups.

use super::groups::{Groups, Sought};
use super::jobs::Jobs;
use super::parts::Parts;
use super::store::NewJob;
use crate::queue::error::QueueError;
use crate::queue::job::{GroupNumber, Handle, Place};
use crate::queue::settings::{GroupLimits, GroupSettings};

impl Parts {
    /// Whether groups are still to be updated.
    #[inline]
    pub fn is_passing(&self) -> bool {
        self.groups().is_some_and(Groups::is_passing)
    }

    /// Whether any group has settings.
    pub(super) fn has_own(&self) -> bool {
        self.groups.as_ref().is_some_and(|it| it.own_len() > 0)
    }

    /// Gives a group other settings.
    pub(super) fn set_own(
        &mut self,
        name: &[u8],
        (before, own): (GroupSettings, GroupSettings),
        limits: &GroupLimits,
        jobs: &Jobs,
    ) {
        if own.any() {
            self.made_groups(limits, jobs);
        }
        let rates = self.group_rates.as_mut();
        if let Some(rates) = rates.filter(|_| before.rate != own.rate) {
            rates.forget(name);
        }
        if let Some(groups) = &mut self.groups {
            groups.set_own(name, own, jobs, self.group_rates.as_deref());
        }
        self.fit_group_rates(limits.rate, jobs);
        self.groups.take_if(|groups| groups.is_none());
    }

    fn made_groups(&mut self, limits: &GroupLimits, jobs: &Jobs) -> &mut Groups {
        self.groups.get_or_insert_with(|| {
            let mut groups = Box::new(Groups::new(*limits));
            if jobs.live_len() > 0 {
                groups.serve_own();
            }
            groups
        })
    }

    /// The group of a new job, with one user more, if its name was sought since groups have changed last.
    pub(super) fn acquire_group(
        &mut self,
        name: &[u8],
        sought: Option<Sought<'_>>,
        limits: &GroupLimits,
        jobs: &Jobs,
    ) -> GroupNumber {
        let groups = self.made_groups(limits, jobs);
        match sought {
            Some(sought) => groups.acquire(sought),
            None => groups.acquire_named(name, jobs),
        }
    }

    /// As [`Groups::begin_turn`].
    #[inline]
    pub(super) fn begin_turn(
        &mut self,
        group: Option<GroupNumber>,
        (place, known): (Place, Option<u64>),
        limits: &GroupLimits,
        jobs: &Jobs,
    ) {
        if self.groups.is_some() || known.is_some() {
            let new = || Groups::new(*limits).into();
            let groups = self.groups.get_or_insert_with(new);
            groups.begin_turn(group, place, known, jobs);
        }
    }

    /// Takes purged jobs and their successors out of their groups, one by one.
    pub(super) fn leave_groups(&mut self, jobs: &mut Jobs, handles: &[Handle]) {
        for &handle in handles {
            let successor = jobs.successor(handle);
            for handle in [handle].into_iter().chain(successor) {
                if let Some(number) = jobs.job(handle).group() {
                    let at = jobs.position(handle);
                    self.left(jobs, handle, at, number);
                    self.refresh_group(jobs, number);
                    jobs.leave_group(handle);
                    self.release_group(jobs, number);
                }
            }
        }
    }

    /// As [`Groups::check_given_turns`].
    pub(super) fn check_turns(&self, jobs: &Jobs, only_rows: bool) -> Result<(), QueueError> {
        let check = |groups: &Groups| groups.check_given_turns(only_rows, jobs);
        self.groups.as_deref().map_or(Ok(()), check)
    }

    /// Carries out new limits of the groups.
    pub(super) fn regroup(&mut self, limits: &GroupLimits, jobs: &Jobs) {
        if let Some(groups) = &mut self.groups {
            groups.configure(*limits, jobs, self.group_rates.as_deref());
        }
    }

    /// Takes one user off a group. The structure is dropped with the last group.
    pub(super) fn release_group(&mut self, jobs: &Jobs, number: GroupNumber) {
        if let Some(groups) = &mut self.groups {
            groups.release(number, &**jobs.hasher());
        }
        self.groups.take_if(|groups| groups.is_none());
    }

    /// Takes away the pause of a group.
    pub(super) fn end_pause(&mut self, jobs: &Jobs, number: GroupNumber) {
        if let Some(groups) = &mut self.groups {
            groups.end_pause(number, jobs, self.group_rates.as_deref());
        }
        self.groups.take_if(|groups| groups.is_none());
    }

    /// Puts a group where it belongs, before a job of it goes.
    pub(super) fn refresh_group(&mut self, jobs: &Jobs, number: GroupNumber) {
        if let Some(groups) = &mut self.groups {
            groups.refresh(number, jobs, self.group_rates.as_deref());
            groups.prefetch_end(number, &**jobs.hasher());
        }
    }

    /// Updates up to `budget` groups; returns the unused budget. Not an effect: no command shows a difference.
    pub(super) fn update_groups(&mut self, jobs: &Jobs, budget: usize) -> usize {
        let rates = self.group_rates.as_deref();
        let groups = self.groups.as_mut();
        groups.map_or(budget, |it| it.update_some(budget, jobs, rates))
    }

    /// The name of a job's group.
    pub fn group_of(&self, jobs: &Jobs, handle: Handle) -> Option<&[u8]> {
        let groups = self.groups.as_ref()?;
        let number = jobs.job(handle).group()?;
        Some(groups.name(number))
    }

    /// As [`Groups::growth`].
    pub fn group_growth(&self, jobs: &Jobs, name: Option<&[u8]>, going: &[Handle]) -> i64 {
        let Some(groups) = &self.groups else {
            return name.map_or(0, |name| name.len() as i64);
        };
        let is_awaited = |number| self.flows().is_some_and(|it| it.awaits_group(number));
        groups.growth(name, going, jobs, is_awaited)
    }

    /// How many jobs have this group, and the length of its name.
    pub fn group_jobs(&self, number: GroupNumber) -> (u32, usize) {
        let waiting = u32::from(self.flows().is_some_and(|it| it.awaits_group(number)));
        let of = |groups: &Groups| (groups.users(number) - waiting, groups.name(number).len());
        self.groups().map_or((0, 0), of)
    }

    /// What the group of this name has of its own.
    pub fn group_settings(&self, jobs: &Jobs, name: &[u8]) -> GroupSettings {
        let groups = self.groups();
        let found = groups.and_then(|it| it.own(it.named(name, jobs)?));
        found.unwrap_or_default()
    }

    /// As [`Groups::room_in`], of the group of this name.
    pub fn room_in(&self, jobs: &Jobs, group: Option<&[u8]>) -> Option<u64> {
        let groups = self.groups().filter(|it| it.own_len() > 0)?;
        groups.room_in(groups.named(group?, jobs)?)
    }

    /// A job as it stands, for another queue.
    pub(super) fn as_new<'a>(&'a self, jobs: &'a Jobs, handle: Handle) -> NewJob<'a> {
        NewJob {
            group: self.group_of(jobs, handle),
            ..jobs.as_new(handle)
        }
    }
}

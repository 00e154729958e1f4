//! Jobs that were purged while others stay: gone for everybody, and still in the store until they are
//! freed, a few at a time.
//!
//! A purge detaches a part of a list, which touches no job. Its jobs are then known by where they stood:
//! by their place and its instant, unless they were linked into a list since. Handles that were are written
//! down as long as there are purged jobs that they might be taken for.
//!
//! What is detached stays within its list, the latest first. The purged jobs of the latest purge are freed
//! first, too: so each purge need only know how many entries are its own.
//!
//! Every purge whose purged jobs are about makes each look at a job a little longer, so they must stay few: a
//! purge of all that an earlier one had taken, and perhaps more, joins it; and each job that is linked into
//! a list has a few purged jobs freed, so that the next purge can only be much smaller than the one before it.

use super::position::Fate;
use super::schedule::Detached;
use super::store::{Course, Id};
use super::Queue;
use crate::queue::job::{Handle, Place};
use crate::storage::table::IdTable;
use std::ops::RangeInclusive;

/// Which jobs a purge has taken, of all that stood there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purged {
    /// Delayed and ready ones with such due times.
    Dues(RangeInclusive<u64>),
    /// Reserved ones with such deadlines.
    Leases(RangeInclusive<u64>),
    /// Reserved ones whose lease was over by `cut`, and that have that fate.
    Overdue { fate: Fate, cut: u64 },
    /// Those that stood among the dead before this (instant of death, number in the order of dying).
    DeadBefore((u64, u64)),
    /// All that were after others.
    Blocked,
}

impl Purged {
    fn place(&self) -> Place {
        match self {
            Purged::Dues(_) => Place::Scheduled,
            Purged::Leases(_) | Purged::Overdue { .. } => Place::Reserved,
            Purged::DeadBefore(_) => Place::Dead,
            Purged::Blocked => Place::Blocked,
        }
    }

    /// Whether it takes all that the other one takes.
    fn includes(&self, other: &Purged) -> bool {
        let covers = |all: &RangeInclusive<u64>, some: &RangeInclusive<u64>| {
            all.start() <= some.start() && some.end() <= all.end()
        };
        match (self, other) {
            (Purged::Dues(all), Purged::Dues(some)) => covers(all, some),
            (Purged::Leases(all), Purged::Leases(some)) => covers(all, some),
            (Purged::DeadBefore(all), Purged::DeadBefore(some)) => some <= all,
            (
                Purged::Overdue { fate, cut },
                Purged::Overdue {
                    fate: other,
                    cut: some,
                },
            ) => fate == other && some <= cut,
            (Purged::Blocked, Purged::Blocked) => true,
            _ => false,
        }
    }
}

/// What one purge has taken out of the lists, or several.
pub struct PurgedJobs {
    purged: Purged,
    /// Of the schedule's detached entries; of those of the list of the reserved, or the dead.
    scheduled: Detached,
    /// Of the reserved by their fates; of the dead the first alone.
    listed: [usize; 4],
    /// Of those of jobs that have a successor.
    followed: usize,
    /// The bytes of their ids and payloads are known, and taken off already.
    counted: bool,
    /// Jobs linked since: none of these, even under a handle that one of these had.
    newer: IdTable,
}

/// Purges of no more jobs are carried out at once, which takes less than half a millisecond. Tests make
/// purged jobs of anything.
pub(in crate::queue) const MANY: usize = if cfg!(debug_assertions) { 3 } else { 200 };
/// Purges of no more jobs have their groups looked at at once.
const AT_ONCE: usize = if cfg!(test) { 3 } else { 2000 };
/// Jobs and successors that a purge looks at for their bytes, at most: a millisecond or two.
const SUMMED: usize = 50_000;
/// Purged jobs freed with each job that is linked into a list: there are that many times more in each purge
/// than in the one that follows it.
pub(super) const FREED_WITH_EACH: usize = 4;

/// Handles are numbered densely; the table wants them scattered.
fn scattered(handle: Handle) -> u64 {
    u64::from(handle).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl PurgedJobs {
    fn has_newer(&self, handle: Handle) -> bool {
        let found = self.newer.find(scattered(handle), |other| other == handle);
        found.is_some()
    }

    pub(super) fn linked(&mut self, handle: Handle) {
        if !self.has_newer(handle) {
            self.newer.insert(scattered(handle), handle);
        }
    }

    pub(super) fn freed(&mut self, handle: Handle) {
        self.newer.remove(scattered(handle), handle);
    }

    /// Frees about `count` things of purged jobs whose store is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.newer.free_some(count)
    }

    pub(super) fn followed(&self) -> usize {
        self.followed
    }

    pub fn memory_bytes(&self) -> usize {
        self.newer.memory_bytes()
    }
}

impl Queue {
    /// The job of that id, in any state.
    pub(in crate::queue) fn find(&self, id: Id<'_>) -> Option<Handle> {
        self.jobs.find(id).filter(|&handle| !self.is_purged(handle))
    }

    pub(in crate::queue) fn is_purged(&self, handle: Handle) -> bool {
        self.purge_of(handle).is_some()
    }

    /// Those that it is one of.
    fn purge_of(&self, handle: Handle) -> Option<&PurgedJobs> {
        if self.cold.purged_jobs.is_empty() {
            return None;
        }
        let Course { place, due, life } = self.jobs.job(handle).course();
        let is_of = |purged_jobs: &PurgedJobs| {
            let stood_there = match &purged_jobs.purged {
                Purged::Dues(dues) => place == Place::Scheduled && dues.contains(&due),
                Purged::Leases(ends) => place == Place::Reserved && ends.contains(&life.at),
                Purged::Overdue { fate, cut } => {
                    let stood_there = place == Place::Reserved && life.at <= *cut;
                    stood_there && self.position(handle).fate() == *fate
                }
                Purged::DeadBefore(end) => place == Place::Dead && (life.at, life.death) < *end,
                Purged::Blocked => place == Place::Blocked,
            };
            stood_there && !purged_jobs.has_newer(handle)
        };
        let all = &self.cold.purged_jobs;
        all.iter().find(|purged_jobs| is_of(purged_jobs))
    }

    /// Ids and payloads of jobs that have just been detached, by looking at those that are left: only
    /// where these are few, and nothing else is unknown.
    fn bytes_of_others(&self) -> Option<u64> {
        let all_known = self.cold.purged_jobs.iter().all(|purged| purged.counted);
        let few = self.live_len() + self.dead.len() + self.followed().len() <= SUMMED;
        (all_known && few).then(|| {
            let left = self.handles().map(|handle| self.jobs.content_of(handle));
            self.jobs.content_bytes() - self.cold.purged_bytes - left.sum::<u64>()
        })
    }

    /// Detaches those jobs, `count` of them.
    pub(super) fn detach_purged(&mut self, purged: Purged, count: usize) {
        let followed = self.cold.make().followed.detach(&purged);
        let known = (count + followed <= SUMMED).then(|| {
            let going = self.handles_of(&purged, count).into_iter();
            going.map(|handle| self.jobs.content_of(handle)).sum()
        });
        if self.flows.is_some() && count <= SUMMED {
            let going = self.handles_of(&purged, count);
            going.into_iter().for_each(|it| self.drop_record(it));
        }
        if self.groups.is_some() && (count <= AT_ONCE || !self.leave_groups_later(&purged, count)) {
            self.leave_groups(&self.handles_of(&purged, count));
        }
        let (mut scheduled, mut listed) = (Detached::default(), [0; 4]);
        match &purged {
            Purged::Dues(dues) => scheduled = self.schedule.detach(dues.clone()),
            Purged::Leases(ends) => {
                let of = |fate| self.reserved.detach(fate as usize, ends.clone());
                listed = Fate::ALL.map(of);
            }
            Purged::Overdue { fate, cut } => {
                listed[*fate as usize] = self.reserved.detach(*fate as usize, 0..=*cut);
            }
            Purged::DeadBefore(_) => {
                self.dead.make().detach_first(count);
                listed[0] = count;
            }
            Purged::Blocked => {
                self.set_waits_aside();
                listed[0] = self.detach_blocked();
            }
        }
        let known = known.or_else(|| self.bytes_of_others());
        let counted = known.is_some();
        let cold = self.cold.make();
        cold.purged_bytes += known.unwrap_or(0);
        let of_place = |purged_jobs: &&mut PurgedJobs| purged_jobs.purged.place() == purged.place();
        let latest = cold.purged_jobs.iter_mut().rev().find(of_place);
        if let Some(latest) =
            latest.filter(|latest| purged.includes(&latest.purged) && latest.counted == counted)
        {
            // None of those that stood there are left.
            latest.purged = purged;
            latest.scheduled += scheduled;
            (0..4).for_each(|kind| latest.listed[kind] += listed[kind]);
            latest.followed += followed;
            latest.newer = IdTable::new();
            return;
        }
        cold.purged_jobs.push(PurgedJobs {
            purged,
            scheduled,
            listed,
            followed,
            counted,
            newer: IdTable::new(),
        });
    }

    /// Whether there is something left to free.
    pub fn has_purged(&self) -> bool {
        !self.cold.purged_jobs.is_empty()
    }

    /// Whether something is left to do that no command shows.
    pub fn has_leftovers(&self) -> bool {
        self.has_purged() || self.is_passing() || self.jobs.is_scattered()
    }

    /// Does so much of it; returns how much of the budget is left.
    pub fn work_off(&mut self, budget: usize) -> usize {
        let left = self.look_at_groups(budget);
        let left = self.free_purged(left);
        self.gather(left)
    }

    /// Frees up to `budget` purged jobs; returns how much of the budget is left. Not an effect: nobody
    /// can tell.
    pub fn free_purged(&mut self, budget: usize) -> usize {
        let mut left = budget;
        while left > 0 {
            let latest = self.cold.made().and_then(|it| it.purged_jobs.last_mut());
            let Some(purged_jobs) = latest else {
                break;
            };
            let kind = purged_jobs.listed.iter().position(|&listed| listed > 0);
            if let Some(kind) = kind {
                purged_jobs.listed[kind] -= 1;
            }
            let next = match (purged_jobs.purged.place(), kind) {
                (Place::Scheduled, _) => self.schedule.pop_detached(&mut purged_jobs.scheduled),
                (_, None) => None,
                (Place::Reserved, Some(kind)) => self.reserved.pop_detached(kind),
                (Place::Blocked, _) => {
                    let flows = self.flows.as_mut();
                    let blocked = flows.and_then(|flows| flows.purged().pop_detached());
                    blocked.map(|(_, handle)| handle)
                }
                _ => self.dead.make().pop_detached().map(|(_, handle)| handle),
            };
            match next {
                Some(handle) if self.jobs.contains(handle) && self.is_purged(handle) => {
                    self.free_purged_job(handle);
                }
                Some(_) => {}
                None => self.free_followed_of_last(),
            }
            left -= 1;
        }
        left
    }

    /// The jobs of the latest purge are freed: what is left of it goes, and then the purge itself.
    fn free_followed_of_last(&mut self) {
        let cold = self.cold.make();
        match cold.purged_jobs.last_mut() {
            Some(latest) if latest.followed > 0 => {
                latest.followed -= 1;
                cold.followed.free_detached(&latest.purged);
            }
            _ => {
                cold.purged_jobs.pop();
            }
        }
    }

    /// Makes room for a job of that id.
    pub(super) fn free_namesake(&mut self, id: Id<'_>) {
        if self.has_purged() {
            let namesake = self.jobs.find(id);
            if let Some(handle) = namesake.filter(|&handle| self.is_purged(handle)) {
                self.free_purged_job(handle);
            }
        }
    }

    pub(in crate::queue) fn free_purged_job(&mut self, handle: Handle) {
        self.free_purged_successor(handle);
        self.forget_bytes(handle);
        self.unlink_end(handle, self.position(handle).ends_at());
        self.forget_purged(handle);
        self.drop_job(handle);
    }

    pub(in crate::queue) fn free_purged_successor(&mut self, handle: Handle) {
        if self.jobs.successor(handle).is_some() {
            let with_it = self.cold.purged_bytes;
            self.forget_bytes(handle);
            let is_counted = with_it != self.cold.purged_bytes;
            self.remove_successor(handle);
            if is_counted {
                let bytes = self.jobs.content_of(handle);
                self.cold.make().purged_bytes += bytes;
            }
        }
    }

    /// The handle is of no job any more.
    #[inline]
    pub(super) fn forget_purged(&mut self, handle: Handle) {
        if let Some(cold) = self.cold.made() {
            let all = cold.purged_jobs.iter_mut();
            all.for_each(|purged_jobs| purged_jobs.freed(handle));
        }
    }

    /// Of a purged job that is about to be freed: they are counted nowhere any more.
    fn forget_bytes(&mut self, handle: Handle) {
        if self
            .purge_of(handle)
            .is_some_and(|purged_jobs| purged_jobs.counted)
        {
            let bytes = self.jobs.content_of(handle);
            self.cold.make().purged_bytes -= bytes;
        }
    }

    /// For tests: what is detached belongs to purges.
    pub(super) fn check_purged(&self) -> Result<(), String> {
        let (mut scheduled, mut reserved, mut dead) = (Detached::default(), [0; 4], 0);
        for purged_jobs in &self.cold.purged_jobs {
            scheduled += purged_jobs.scheduled;
            match purged_jobs.purged.place() {
                Place::Reserved => (0..4).for_each(|at| reserved[at] += purged_jobs.listed[at]),
                Place::Blocked => {}
                _ => dead += purged_jobs.listed[0],
            }
        }
        let expected = (scheduled, reserved, dead);
        let mut leases = [0; 4];
        for (kind, _) in self.reserved.detached() {
            leases[kind] += 1;
        }
        if expected
            != (
                self.schedule.detached().0,
                leases,
                self.dead.detached().count(),
            )
        {
            return Err(format!("{expected:?} are expected to be detached"));
        }
        Ok(())
    }

    /// How many purged jobs there are: for tests, as it looks at each.
    pub(super) fn count_purged(&self) -> usize {
        let (_, mut handles) = self.schedule.detached();
        let leases = self.reserved.detached().into_iter();
        let dead = self.dead.detached();
        handles.extend(leases.map(|(_, handle)| handle));
        handles.extend(dead.map(|(_, handle)| handle));
        let flows = self.flows.iter();
        handles.extend(flows.flat_map(|it| it.blocked().detached().map(|(_, handle)| handle)));
        handles.retain(|&handle| self.jobs.contains(handle) && self.is_purged(handle));
        handles.sort_unstable();
        handles.dedup();
        handles.len()
    }
}

#[cfg(test)]
mod tests;

//! Jobs that were purged while others stay: no longer visible to any command, and still in the store until they are
//! freed, a few at a time.
//!
//! A purge detaches a part of a list, which touches no job. Its jobs are then known by where they stood: by their place
//! and its instant, unless they were linked into a list since. Handles of jobs linked since are noted as long as there
//! are purged jobs that these might be taken for.
//!
//! What is detached stays within its list, the latest first. The purged jobs of the latest purge are freed
//! first, too: so each purge need only know how many entries are its own.
//!
//! Each purge with jobs left to free makes every lookup of a job a little slower, so such purges must stay few. A purge
//! of all that an earlier one had taken, and perhaps more, joins it. And each job that is linked into a list has a few
//! purged jobs freed, so that the next purge can only be much smaller than the one before it.

use super::garbage::LISTED_BYTES;
use super::position::Fate;
use super::schedule::Detached;
use super::store::{Course, Id};
use super::Queue;
use crate::queue::job::{Handle, Place};
use crate::storage::table::IdTable;
use std::ops::RangeInclusive;

/// Which jobs a purge has taken, of all in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purged {
    /// Delayed and ready jobs with these due times.
    Dues(RangeInclusive<u64>),
    /// Reserved jobs with these deadlines.
    Leases(RangeInclusive<u64>),
    /// Reserved jobs of this fate whose lease had ended by `cut`.
    Overdue { fate: Fate, cut: u64 },
    /// Dead jobs before this (instant of death, number in the order of dying).
    DeadBefore((u64, u64)),
    /// All blocked jobs.
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

    /// Whether it takes all jobs that the other one takes.
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

/// What one purge has taken out of the lists, or several that were joined.
pub struct PurgedJobs {
    purged: Purged,
    /// How many of the schedule's detached entries are its own.
    scheduled: Detached,
    /// How many detached entries of its list are its own: of reserved jobs by their fates, of dead and blocked ones the
    /// first number alone.
    listed: [usize; 4],
    /// How many detached entries of jobs with a successor are its own.
    followed: usize,
    /// Whether the bytes of its ids and payloads are known, and taken off already.
    counted: bool,
    /// Handles of jobs linked since: these are not purged, even if a purged job had the handle before.
    newer: IdTable,
}

/// Purges of up to this many jobs are carried out at once, which takes less than half a millisecond. The limit
/// is low in debug builds, so that nearly every purge in a test leaves purged jobs.
pub(in crate::queue) const MANY: usize = if cfg!(debug_assertions) { 3 } else { 200 };
/// Purges of up to this many jobs update the groups of their jobs at once.
const AT_ONCE: usize = if cfg!(test) { 3 } else { 2000 };
/// How many jobs and successors a purge visits for their bytes, at most: a millisecond or two.
const SUMMED: usize = 50_000;
/// Purged jobs freed with each job that is linked into a list. So each purge has that many times more jobs than the one
/// that follows it.
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
    /// The job with this id, in any state, unless it was purged.
    pub(in crate::queue) fn find(&self, id: Id<'_>) -> Option<Handle> {
        self.jobs.find(id).filter(|&handle| !self.is_purged(handle))
    }

    pub(in crate::queue) fn is_purged(&self, handle: Handle) -> bool {
        self.purge_of(handle).is_some()
    }

    /// The purge that has taken this job, if any.
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

    /// Bytes of the jobs that have just been detached, found by a visit of those that are left. Only if these are few,
    /// and the bytes of all other purges are known.
    fn bytes_of_others(&self) -> Option<u64> {
        let all_known = self.cold.purged_jobs.iter().all(|purged| purged.counted);
        let few = self.live_len() + self.dead.len() + self.followed().len() <= SUMMED;
        (all_known && few).then(|| {
            let left = self.handles().map(|handle| self.jobs.content_of(handle));
            self.jobs.content_bytes() - self.cold.purged_bytes - left.sum::<u64>()
        })
    }

    /// Detaches the jobs that `purged` names, `count` of them.
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
            // Jobs that were linked there since are purged now, too.
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

    /// About the memory of `unfreed` purged jobs: ids and payloads as far as they are known, and the average of all jobs.
    #[cold]
    pub(super) fn unfreed_bytes(&self, unfreed: usize) -> u64 {
        let (all, content) = (self.jobs.len() as u64, self.jobs.content_bytes());
        let heap = self.jobs.heap_bytes() as u64;
        let (unfreed, known) = (unfreed as u64, self.cold.purged_bytes);
        let of_average = |bytes: u64| bytes / all.max(1) * unfreed;
        let jobs = match self.cold.purged_jobs.iter().all(|purged| purged.counted) {
            true => known + of_average(heap.saturating_sub(content)),
            false => known.max(of_average(heap)),
        };
        jobs + unfreed * LISTED_BYTES as u64
    }

    /// Whether there is something left to free.
    pub fn has_purged(&self) -> bool {
        !self.cold.purged_jobs.is_empty()
    }

    /// Whether there is work left that no command shows.
    pub fn has_leftovers(&self) -> bool {
        self.has_purged() || self.is_passing() || self.jobs.is_scattered()
    }

    /// Does up to `budget` of the work that [`Queue::has_leftovers`] tells of; returns the unused budget.
    pub fn work_off(&mut self, budget: usize) -> usize {
        let left = self.look_at_groups(budget);
        let left = self.free_purged(left);
        self.gather(left)
    }

    /// Frees up to `budget` purged jobs; returns the unused budget. Not an effect: no command shows a difference.
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
                    left = left.saturating_sub(self.jobs.notes(handle).beside_len());
                    self.free_purged_job(handle);
                }
                Some(_) => {}
                None => self.free_followed_of_last(),
            }
            left = left.saturating_sub(1);
        }
        left
    }

    /// All jobs of the latest purge are freed: frees an entry that it has in `followed`, or else the purge itself.
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

    /// Frees a purged job whose id a new job gets.
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

    /// Forgets a handle that has no job any more.
    #[inline]
    pub(super) fn forget_purged(&mut self, handle: Handle) {
        if let Some(cold) = self.cold.made() {
            let all = cold.purged_jobs.iter_mut();
            all.for_each(|purged_jobs| purged_jobs.freed(handle));
        }
    }

    /// Takes the bytes of a purged job that is about to be freed off the purged bytes.
    fn forget_bytes(&mut self, handle: Handle) {
        if self
            .purge_of(handle)
            .is_some_and(|purged_jobs| purged_jobs.counted)
        {
            let bytes = self.jobs.content_of(handle);
            self.cold.make().purged_bytes -= bytes;
        }
    }

    /// For tests: checks that all that is detached belongs to purges.
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

    /// How many purged jobs there are. Visits each: for tests.
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

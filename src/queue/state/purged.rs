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

use super::position::Fate;
use super::schedule::Detached;
use crate::queue::budget::STEP_BYTES;
use crate::queue::job::{Handle, Place};
use crate::storage::table::IdTable;
use std::ops::RangeInclusive;

/// Which jobs a purge has taken, of all in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purged {
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
    pub fn place(&self) -> Place {
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
    pub purged: Purged,
    /// How many of the schedule's detached entries are its own.
    pub scheduled: Detached,
    /// How many detached entries of its list are its own: of reserved jobs by their fates, of dead and blocked ones the
    /// first number alone.
    pub listed: [usize; 4],
    /// How many detached entries of jobs with a successor are its own.
    pub followed: usize,
    /// Whether the bytes of its ids and payloads are known, and taken off already.
    pub counted: bool,
    /// Handles of jobs linked since: these are not purged, even if a purged job had the handle before.
    newer: IdTable,
}

/// Purges of up to this many jobs are carried out at once, which takes less than half a millisecond. The limit
/// is low in debug builds, so that nearly every purge in a test leaves purged jobs.
pub(in crate::queue) const MANY: usize = if cfg!(debug_assertions) { 3 } else { 200 };
/// And of up to so many bytes, which takes as long again: 800 KB.
pub(in crate::queue) const MANY_BYTES: u64 = 200 * STEP_BYTES as u64;
/// How many jobs and successors a purge visits for their bytes, at most: a millisecond or two.
pub const SUMMED: usize = 50_000;
/// Purged jobs freed with each job that is linked into a list. So each purge has that many times more jobs than the one
/// that follows it.
pub const FREED_WITH_EACH: usize = 4;
/// What a job takes in lists, about: in one or two of them.
pub const LISTED_BYTES: usize = 24;

/// Handles are numbered densely; the table wants them scattered.
fn scattered(handle: Handle) -> u64 {
    u64::from(handle).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl PurgedJobs {
    /// `listed` says what it has taken out of which lists.
    pub fn new(
        purged: Purged,
        (scheduled, listed, followed): (Detached, [usize; 4], usize),
        counted: bool,
    ) -> Self {
        PurgedJobs {
            purged,
            scheduled,
            listed,
            followed,
            counted,
            newer: IdTable::new(),
        }
    }

    /// Whether one purge may stand for this one and an earlier one.
    pub fn joins(&self, earlier: &PurgedJobs) -> bool {
        self.purged.includes(&earlier.purged) && self.counted == earlier.counted
    }

    /// Jobs that were linked since the earlier purge are purged now, too.
    pub fn join(&mut self, later: PurgedJobs) {
        self.purged = later.purged;
        self.scheduled += later.scheduled;
        (0..4).for_each(|kind| self.listed[kind] += later.listed[kind]);
        self.followed += later.followed;
        self.newer = IdTable::new();
    }

    pub fn has_newer(&self, handle: Handle) -> bool {
        let found = self.newer.find(scattered(handle), |other| other == handle);
        found.is_some()
    }

    pub fn linked(&mut self, handle: Handle) {
        if !self.has_newer(handle) {
            self.newer.insert(scattered(handle), handle);
        }
    }

    pub fn freed(&mut self, handle: Handle) {
        self.newer.remove(scattered(handle), handle);
    }

    /// Frees about `count` things of purged jobs whose store is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.newer.free_some(count)
    }

    pub fn memory_bytes(&self) -> usize {
        self.newer.memory_bytes()
    }
}

//! Jobs that were purged while others stay: gone for everybody, and still in the store until they are
//! buried, a few at a time.
//!
//! A purge takes whole lists, or detaches a part of the schedule, which touches no job. Its jobs are then
//! known by where they stood: by their place and due, unless they were linked into a list since. Handles
//! that were are written down as long as there are ghosts that they might be taken for.
//!
//! What is detached stays within the schedule, the latest first. The ghosts of the latest purge are buried
//! first, too: so each purge need only know how many entries are its own.

use super::job::{Handle, Place};
use super::schedule::Detached;
use super::skiplist::Skiplist;
use super::store::Id;
use super::table::IdTable;
use super::Queue;
use std::ops::RangeInclusive;

/// What one purge has taken out of the lists.
#[derive(Clone)]
pub struct Ghosts {
    place: Place,
    dues: RangeInclusive<u64>,
    /// Of the schedule's.
    pub(super) detached: Detached,
    pub(super) list: Skiplist<u64>,
    /// Jobs linked since: none of these, even under a handle that one of these had.
    newer: IdTable,
}

/// Purges of no more jobs are carried out at once, which takes less than half a millisecond. Tests make
/// ghosts of anything.
pub(super) const MANY: usize = if cfg!(debug_assertions) { 3 } else { 200 };
/// Purges whose ghosts are about at the same time, at most.
pub(super) const PURGES: usize = 8;

/// Handles are numbered densely; the table wants them scattered.
fn scattered(handle: Handle) -> u64 {
    u64::from(handle).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Ghosts {
    pub fn new(
        place: Place,
        dues: RangeInclusive<u64>,
        detached: Detached,
        list: Skiplist<u64>,
    ) -> Self {
        Ghosts {
            place,
            dues,
            detached,
            list,
            newer: IdTable::new(),
        }
    }

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

    /// Frees about `count` things of ghosts whose store is not used any more; false at the end.
    pub fn shed(&mut self, count: usize) -> bool {
        self.list.shed(count) || self.newer.shed(count)
    }

    pub fn memory_bytes(&self) -> usize {
        self.list.memory_bytes() + self.newer.memory_bytes()
    }
}

impl Queue {
    /// The job of that id, in any state.
    pub(super) fn find(&self, id: Id<'_>) -> Option<Handle> {
        self.jobs.find(id).filter(|&handle| !self.is_ghost(handle))
    }

    pub(super) fn is_ghost(&self, handle: Handle) -> bool {
        let job = || self.jobs.job(handle);
        let is_of = |ghosts: &Ghosts| {
            ghosts.place == job().place()
                && (ghosts.place != Place::Scheduled || ghosts.dues.contains(&job().due()))
                && !ghosts.has_newer(handle)
        };
        !self.ghosts.is_empty() && self.ghosts.iter().any(is_of)
    }

    /// Whether there is something left to bury.
    pub fn is_haunted(&self) -> bool {
        !self.ghosts.is_empty()
    }

    /// Frees up to `budget` ghosts; returns how much of the budget is left. Not an effect: nobody
    /// can tell.
    pub fn bury(&mut self, budget: usize) -> usize {
        let mut left = budget;
        while left > 0 {
            let Some(ghosts) = self.ghosts.last_mut() else {
                break;
            };
            let scheduled = self.schedule.pop_detached(&mut ghosts.detached);
            let next = scheduled.or_else(|| ghosts.list.pop_first().map(|(_, handle)| handle));
            match next {
                Some(handle) if self.jobs.contains(handle) && self.is_ghost(handle) => {
                    self.free_ghost(handle);
                }
                Some(_) => {}
                None => {
                    self.ghosts.pop();
                }
            }
            left -= 1;
        }
        left
    }

    /// Makes room for a job of that id.
    pub(super) fn bury_namesake(&mut self, id: Id<'_>) {
        if self.is_haunted() {
            let namesake = self.jobs.find(id);
            if let Some(handle) = namesake.filter(|&handle| self.is_ghost(handle)) {
                self.free_ghost(handle);
            }
        }
    }

    pub(super) fn free_ghost(&mut self, handle: Handle) {
        let jobs = &self.jobs;
        let expires = jobs.job(handle).life().expires;
        if expires != 0 && jobs.job(handle).place() != Place::Reserved {
            self.expiring.remove(expires, handle, |h| jobs.job(h).seq());
        }
        for ghosts in &mut self.ghosts {
            ghosts.freed(handle);
        }
        self.jobs.remove(handle);
    }

    /// For tests: what is detached belongs to purges.
    pub(super) fn check_ghosts(&self) -> Result<(), String> {
        let mut expected = Detached::default();
        for ghosts in &self.ghosts {
            expected += ghosts.detached;
        }
        if self.schedule.detached().0 != expected {
            return Err(format!("{expected:?} are expected to be detached"));
        }
        Ok(())
    }

    /// How many ghosts there are: for tests, as it looks at each.
    pub(super) fn count_ghosts(&self) -> usize {
        let (_, mut handles) = self.schedule.detached();
        for ghosts in &self.ghosts {
            handles.extend(ghosts.list.iter().map(|(_, handle)| handle));
        }
        handles.retain(|&handle| self.jobs.contains(handle) && self.is_ghost(handle));
        handles.sort_unstable();
        handles.dedup();
        handles.len()
    }
}

#[cfg(test)]
mod tests;

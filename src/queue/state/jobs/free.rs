//! Freeing jobs that are not used any more, in small steps, and moving what is allocated.

use super::Jobs;
use crate::queue::state::purged::LISTED_BYTES;
use crate::storage::lazy::Lazy;
use crate::storage::relocate::Mover;

impl Jobs {
    /// How many jobs are left. A job is gone once the lists that it stood in are, too.
    pub fn left(&self) -> usize {
        let listed = self.listed_len().max(self.expiring.len());
        self.store.len().max(listed)
    }

    /// About the heap bytes that are left. Asked for with each step, so lists are not looked at, only their lengths.
    pub fn left_bytes(&self) -> usize {
        self.store.heap_bytes() + self.left() * LISTED_BYTES
    }

    /// Frees about `count` things; false once nothing is left.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.store.free_some(count)
            || self.schedule.free_some(count)
            || self.reserved.free_some(count)
            || (self.dead.made()).is_some_and(|list| list.free_some(count))
            || self.expiring.free_some(count)
            || (self.cold.made()).is_some_and(|cold| {
                cold.blocked.free_some(count)
                    || cold.late.free_some(count)
                    || cold.followed.free_some(count)
                    || cold.purges.iter_mut().any(|it| it.free_some(count))
            })
    }

    /// A part of them: see [`crate::storage::relocate`].
    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.store.relocate_jobs(from, mover),
            1 => self.store.relocate_index(from, mover),
            2..=7 => self.schedule.relocate(part - 2, from, mover),
            8..=11 => self.reserved.relocate(part as usize - 8, from, mover),
            12 => {
                moved(&mut self.dead, from, mover);
                self.dead.made()?.relocate(from, mover)
            }
            13..=17 => self.expiring.relocate(part as usize - 13, from, mover),
            18 => self.store.relocate_extras(from, mover),
            19 => {
                moved(&mut self.cold, from, mover);
                self.cold.made()?.blocked.relocate(from, mover)
            }
            20 => self.cold.made()?.late.relocate(from, mover),
            21 | 22 => self.cold.made()?.followed.relocate(part - 21, from, mover),
            23 => self.store.relocate_long_jobs(from, mover),
            _ => self.store.relocate_notes(part - 24, from, mover),
        }
    }

    /// How many parts [`Jobs::relocate`] has: notes are the last six.
    pub const PARTS: u64 = 30;
}

/// Moves what is lazily made itself, before what it owns.
fn moved<T>(part: &mut Lazy<T>, from: u32, mover: &mut impl Mover) {
    if from == 0 {
        part.relocate(mover);
    }
}

//! Prefetches parts of the index before they are needed.

use super::{guess, rank_of, slot, IdTable, WINDOW};
use crate::storage::prefetch::{prefetch, prefetch_all};

impl IdTable {
    /// Prefetches what [`IdTable::prefetch_slots`] reads.
    pub fn prefetch_shard(&self, hash: u64) {
        let shard = self.shard(self.leaf(rank_of(hash)).index());
        shard.into_iter().for_each(prefetch);
    }

    /// Prefetches the slots that a search for this hash reads.
    pub fn prefetch_window(&self, hash: u64) {
        let rank = rank_of(hash);
        let leaf = self.leaf(rank);
        if let Some(slots) = self.shard(leaf.index()) {
            let from = guess(slots, slot(rank, 0), leaf.bits).saturating_sub(WINDOW / 2);
            prefetch_all(&slots[from..slots.len().min(from + WINDOW)]);
        }
    }

    /// Prefetches the slots that a search for this hash, or an insert, reads or moves.
    pub fn prefetch_slots(&self, hash: u64) {
        let rank = rank_of(hash);
        let leaf = self.leaf(rank);
        if let Some(slots) = self.shard(leaf.index()) {
            let guess = guess(slots, slot(rank, 0), leaf.bits);
            prefetch_all(&slots[guess.saturating_sub(WINDOW / 2)..]);
        }
    }
}

//! Prefetches parts of jobs before they are needed.

use super::stored::{word, DUE_BITS, HAS_RARE};
use super::{Id, Store};
use crate::queue::job::Handle;
use crate::storage::prefetch::{prefetch, prefetch_all};

/// Bytes of a job to prefetch. Beyond that, the processor itself notices a sequential read.
const USUAL: usize = 192;

impl Store {
    /// Prefetches the part of the index that leads to an id; [`Store::prefetch_index`] is the
    /// second step, and reads what this one has prefetched.
    pub fn prefetch_shard(&self, id: Id<'_>) {
        self.table.prefetch_shard(id.hash);
    }

    pub fn prefetch_index(&self, id: Id<'_>) {
        self.table.prefetch_slots(id.hash);
    }

    /// As [`Store::prefetch_index`], for [`Store::find`] only.
    pub fn prefetch_find(&self, id: Id<'_>) {
        self.table.prefetch_window(id.hash);
    }

    /// The job with this id, or another one with the same hash.
    pub fn likely(&self, id: Id<'_>) -> Option<Handle> {
        self.table.find(id.hash, |_| true)
    }

    /// Prefetches a job's numbers, and an id of usual length.
    pub fn prefetch_head(&self, handle: Handle) {
        let place = self.slots.place(handle);
        place.and_then(<[u8]>::first).into_iter().for_each(prefetch);
    }

    pub fn prefetch_rare(&self, handle: Handle) {
        let word0 = word(self.bytes(handle), 0);
        if word0 & HAS_RARE != 0 {
            self.rares.prefetch((word0 & DUE_BITS) as u32);
        }
    }

    /// Prefetches what leads to a job's bytes, not the bytes.
    pub fn prefetch_slot(&self, handle: Handle) {
        self.slots.prefetch(handle);
    }

    /// Prefetches a job, as far as most are long.
    pub fn prefetch_job(&self, handle: Handle) {
        let place = self.slots.place(handle).unwrap_or_default();
        prefetch_all(&place[..place.len().min(USUAL)]);
    }
}

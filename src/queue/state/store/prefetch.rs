//! Having parts of jobs on their way from memory before they are needed.

use super::head::{word, DUE_BITS, HAS_RARE};
use super::{Id, Store};
use crate::queue::job::Handle;
use crate::storage::prefetch::{prefetch, prefetch_all};

/// Of what is longer the processor itself notices that it is read in turn.
const USUAL: usize = 192;

impl Store {
    /// Has the index's memory on its way, in two steps, of which the second reads what the first
    /// has asked for.
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

    /// The job of that id, unless another one's hash is the same.
    pub fn likely(&self, id: Id<'_>) -> Option<Handle> {
        self.table.find(id.hash, |_| true)
    }

    /// A job's numbers and a usual id.
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

    /// The same for a job, as far as most are long.
    pub fn prefetch_slot(&self, handle: Handle) {
        self.slots.prefetch(handle);
    }

    pub fn prefetch_job(&self, handle: Handle) {
        let place = self.slots.place(handle).unwrap_or_default();
        prefetch_all(&place[..place.len().min(USUAL)]);
    }
}

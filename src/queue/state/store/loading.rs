//! Inserting many jobs at once, perhaps before the store has an index.

use super::Store;
use crate::queue::job::Handle;

impl Store {
    pub fn has_room_for(&self, count: usize) -> bool {
        self.slots.has_room_for(count) && self.rares.has_room_for(count)
    }

    #[inline]
    pub(super) fn enter(&mut self, hash: u64, handle: Handle) {
        match &mut self.unindexed {
            None => (self.table).insert_near(hash, handle, self.near.get()),
            Some(entries) => entries.push(hash, handle),
        }
    }

    /// Leaves an empty store without an index until [`Store::index`]: until then jobs are only inserted, not looked up
    /// or removed.
    pub fn leave_unindexed(&mut self) {
        debug_assert!(self.len() == 0);
        self.unindexed = Some(Box::default());
    }

    pub fn is_unindexed(&self) -> bool {
        self.unindexed.is_some()
    }

    /// Makes the index, once. False if two jobs have the same id: the store cannot be used then.
    pub fn index(&mut self) -> bool {
        let Some(entries) = self.unindexed.take() else {
            return true;
        };
        let table = entries.into_table(|a, b| self.job(a).id() == self.job(b).id());
        table.map(|table| self.table = table).is_some()
    }
}

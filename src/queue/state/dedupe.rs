//! The dedupe window: ids, each remembered until an instant.

use super::store::{allocated, Id};
use crate::storage::broken::{must, there};
use crate::storage::lazy::Unused;
use crate::storage::relocate::{move_boxed, Mover};
use crate::storage::skiplist::Skiplist;
use crate::storage::slab::Slab;
use crate::storage::table::IdTable;
use std::hash::BuildHasher;

#[derive(Clone)]
struct Remembered {
    until: u64,
    id: Box<[u8]>,
}

#[derive(Clone, Default)]
pub struct DedupeWindow {
    ids: Slab<Remembered>,
    table: IdTable,
    /// By the instant at which an id is forgotten; equal ones in no order that anybody sees.
    by_until: Skiplist<u64>,
    id_bytes: usize,
}

const NO_ID: &str = "an id that is remembered in one place and not in another";

fn tie(number: u32) -> u64 {
    u64::from(number)
}

impl Unused for DedupeWindow {
    const UNUSED: &'static Self = &DedupeWindow {
        ids: Slab::new(),
        table: IdTable::new(),
        by_until: Skiplist::new(),
        id_bytes: 0,
    };
}

impl DedupeWindow {
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn has_room(&self) -> bool {
        self.ids.has_room_for(1)
    }

    fn find(&self, id: Id<'_>) -> Option<u32> {
        if self.ids.len() == 0 {
            return None;
        }
        let is_it = |number| *there(self.ids.get(number), NO_ID).id == *id.bytes;
        self.table.find(id.hash(), is_it)
    }

    /// The instant until which the id is remembered.
    pub fn until(&self, id: Id<'_>) -> Option<u64> {
        Some(there(self.ids.get(self.find(id)?), NO_ID).until)
    }

    /// If the id is remembered already, the later instant counts.
    pub fn remember(&mut self, id: Id<'_>, until: u64, hasher: &impl BuildHasher) {
        if self.until(id).is_some_and(|known| known >= until) {
            return;
        }
        self.forget(id, hasher);
        let number = self.ids.insert(Remembered {
            until,
            id: id.bytes.into(),
        });
        self.id_bytes += allocated(id.bytes.len());
        self.table.insert(id.hash(), number);
        self.by_until.insert(until, number, tie);
    }

    pub fn forget(&mut self, id: Id<'_>, hasher: &impl BuildHasher) -> bool {
        let Some(number) = self.find(id) else {
            return false;
        };
        let entry = self.take(number, hasher);
        must(self.by_until.remove(entry.until, number, tie), NO_ID);
        true
    }

    /// Removes an entry from the ids and their index.
    fn take(&mut self, number: u32, hasher: &impl BuildHasher) -> Remembered {
        let entry = there(self.ids.remove(number), NO_ID);
        self.id_bytes -= allocated(entry.id.len());
        let hash = hasher.hash_one(&*entry.id);
        must(self.table.remove(hash, number), NO_ID);
        entry
    }

    /// The earliest instant at which an id is forgotten.
    pub fn next(&self) -> Option<u64> {
        self.by_until.first().map(|(until, _)| until)
    }

    /// Forgets ids that are remembered until this instant or an earlier one.
    pub fn forget_until(&mut self, until: u64, hasher: &impl BuildHasher) {
        while self.next().is_some_and(|first| first <= until) {
            let Some((_, number)) = self.by_until.pop_first() else {
                return;
            };
            self.take(number, hasher);
        }
    }

    /// The instant by which `count` ids, or a few more of equal instants, are forgotten.
    pub fn nth_until(&self, count: usize) -> Option<u64> {
        self.by_until
            .iter()
            .take(count)
            .last()
            .map(|(until, _)| until)
    }

    /// (id, until), by the instant.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let entries = self
            .by_until
            .iter()
            .map(|(_, number)| there(self.ids.get(number), NO_ID));
        entries.map(|entry| (&*entry.id, entry.until))
    }

    /// Frees about `count` ids of a window that is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.ids.free_some(count) || self.table.free_some(count) || self.by_until.free_some(count)
    }

    /// The ids, their index or their order: see [`crate::storage::relocate`].
    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self
                .ids
                .relocate(from, mover, |entry, mover| move_boxed(&mut entry.id, mover)),
            1 => self.table.relocate(from, mover),
            _ => self.by_until.relocate(from, mover),
        }
    }

    /// Without the list by instants.
    pub fn heap_bytes(&self) -> usize {
        self.id_bytes + self.ids.memory_bytes() + self.table.memory_bytes()
    }

    pub fn memory_bytes(&self) -> usize {
        self.heap_bytes() + self.by_until.memory_bytes()
    }

    pub fn check_invariants(&self, hasher: &impl BuildHasher) -> Result<(), String> {
        self.by_until.check_invariants(tie)?;
        let id = |number| self.ids.get(number).map_or(&[][..], |entry| &*entry.id);
        self.table
            .check_invariants(|number| hasher.hash_one(id(number)))?;
        if self.table.len() != self.ids.len() || self.by_until.len() != self.ids.len() {
            return Err("remembered ids, their index and their order differ in number".into());
        }
        for (until, number) in self.by_until.iter() {
            if self
                .ids
                .get(number)
                .is_none_or(|entry| entry.until != until)
            {
                return Err("an id remembered at the wrong instant".into());
            }
        }
        let bytes: usize = self.iter().map(|(id, _)| allocated(id.len())).sum();
        if bytes != self.id_bytes {
            return Err(format!(
                "{} bytes of ids counted, {bytes} there",
                self.id_bytes
            ));
        }
        Ok(())
    }
}

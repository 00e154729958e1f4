//! The names of one database, in the order of the instants at which they need attention.

use super::ledger::{Ledger, Name, Ticket};
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::Arc;

/// Later than any instant: nothing to do until something happens.
pub const IDLE: u64 = u64::MAX - 1;

/// A cluster has that many slots.
const SLOTS: u64 = 16384;
/// The keys of slot n stand at this + n.
pub const PARKED: u64 = IDLE - SLOTS;

/// Records that a listing may visit for each name it returns. Most records are empty where very
/// many keys have gone.
const SCANNED: usize = 16;

#[derive(Default)]
pub struct Database {
    pub ledger: Ledger,
    pub by_instant: BTreeSet<(u64, Name)>,
}

impl Database {
    /// Enters the name at this instant; returns its record's number.
    pub fn set(&mut self, name: &[u8], instant: u64) -> u32 {
        let number = self.ledger.find(name);
        let (number, name) = match number.and_then(|it| Some((it, self.ledger.get_mut(it)?))) {
            Some((number, record)) if record.instant == instant => return number,
            Some((number, record)) => {
                let old = std::mem::replace(&mut record.instant, instant);
                let name = Arc::clone(&record.name);
                self.leave(old, &name);
                (number, name)
            }
            None => {
                let name: Name = Arc::from(name);
                (self.ledger.add(Arc::clone(&name), instant), name)
            }
        };
        if instant != IDLE {
            self.by_instant.insert((instant, name));
        }
        number
    }

    /// Removes the name from the order of instants.
    fn leave(&mut self, instant: u64, name: &Name) {
        if instant != IDLE {
            self.by_instant.remove(&(instant, Arc::clone(name)));
        }
    }

    pub fn remove(&mut self, name: &[u8]) {
        let number = self.ledger.find(name);
        if let Some(record) = number.and_then(|number| self.ledger.remove(number)) {
            self.leave(record.instant, &record.name);
        }
    }

    /// The account of a name, opened if it has none; false if the name had no record either.
    pub fn account(&mut self, db: c_int, name: &[u8]) -> (Ticket, bool) {
        let number = self.ledger.find(name);
        let ticket = number.unwrap_or_else(|| self.set(name, 0));
        (self.ledger.ticket(db, ticket), number.is_some())
    }

    /// Frees about `count` entries of a discarded database; false once all are freed.
    pub fn free_some(&mut self, count: usize) -> bool {
        let instants = (0..count).map_while(|_| self.by_instant.pop_first());
        let instants = instants.count();
        self.ledger.free_some(count) || instants > 0
    }

    /// Adds names from record number `from` on until `add` returns `count`. Returns the number to
    /// continue from, if any.
    pub fn names_from(
        &self,
        from: u32,
        count: usize,
        add: &mut dyn FnMut(&Name) -> usize,
    ) -> Option<u32> {
        let end = self
            .ledger
            .end()
            .min(from.saturating_add((count * SCANNED) as u32));
        for number in from..end {
            if let Some(record) = self.ledger.get(number) {
                if add(&record.name) == count {
                    return Some(number + 1);
                }
            }
        }
        (end < self.ledger.end()).then_some(end)
    }

    /// The first parked key of this slot or a later one, with its slot.
    pub fn parked_from(&self, slot: u64) -> Option<(u64, &Name)> {
        let start: (u64, Name) = (PARKED + slot, Arc::default());
        let (at, name) = self.by_instant.range(start..).next()?;
        (*at < IDLE).then(|| (at - PARKED, name))
    }

    /// Makes up to `count` parked keys of the slot due now; returns how many there were.
    pub fn unpark(&mut self, slot: u64, count: usize) -> usize {
        for done in 0..count {
            match self.parked_from(slot) {
                Some((of, name)) if of == slot => {
                    let name = Arc::clone(name);
                    self.set(&name, 0);
                }
                _ => return done,
            }
        }
        count
    }
}

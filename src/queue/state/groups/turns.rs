//! The lists of groups by their turns.

use crate::queue::clock::Now;
use crate::queue::job::GroupNumber;
use crate::storage::skiplist::{Skiplist, TurnKey};

/// The bits of `Group::at` that hold the instant.
pub const INSTANT: u64 = (1 << 60) - 1;
/// In `Group::at`: the group is at GROUPMAX, and stands in the list `full`.
pub const AT_MAX: u64 = 1 << 60;

/// Turns are never equal, but in a forged snapshot: then the group's number decides.
pub fn tie(_: GroupNumber) -> u64 {
    0
}

/// The groups of one round, by their turns.
#[derive(Clone, Default)]
pub struct Turns {
    pub open: Skiplist<TurnKey>,
    pub full: Skiplist<TurnKey>,
}

impl Turns {
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.full.is_empty()
    }

    /// The list and the instant that `at` stands for.
    pub fn list_of(&mut self, at: u64) -> (&mut Skiplist<TurnKey>, u64) {
        let list = match at & AT_MAX {
            0 => &mut self.open,
            _ => &mut self.full,
        };
        (list, at & INSTANT)
    }

    /// The turn and the number of the group that is served next at this instant.
    pub fn first(&self, now: Now, noack: bool) -> Option<(u64, GroupNumber)> {
        let first = |list: &Skiplist<TurnKey>| {
            let first = list.first_due(now.ms());
            first.map(|(key, number)| (key.turn, number))
        };
        let full = if noack { first(&self.full) } else { None };
        first(&self.open).into_iter().chain(full).min()
    }

    pub fn free_some(&mut self, count: usize) -> bool {
        self.open.free_some(count) || self.full.free_some(count)
    }

    pub fn memory_bytes(&self) -> usize {
        self.open.memory_bytes() + self.full.memory_bytes()
    }
}

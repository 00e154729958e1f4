//! The tickets of clients that wait on one key, first come first served. Mostly there is one, which takes no allocation.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub enum Tickets {
    #[default]
    None,
    One(u64),
    /// Since there were two; until there is none.
    Many(BTreeSet<u64>),
}

impl Tickets {
    /// The one that came first.
    pub fn first(&self) -> Option<u64> {
        match self {
            Tickets::None => None,
            Tickets::One(only) => Some(*only),
            Tickets::Many(many) => many.first().copied(),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Tickets::None => 0,
            Tickets::One(_) => 1,
            Tickets::Many(many) => many.len(),
        }
    }

    /// False if it is there already.
    pub fn insert(&mut self, ticket: u64) -> bool {
        match self {
            Tickets::None => *self = Tickets::One(ticket),
            Tickets::One(only) if *only == ticket => return false,
            Tickets::One(only) => *self = Tickets::Many([*only, ticket].into()),
            Tickets::Many(many) => return many.insert(ticket),
        }
        true
    }

    pub fn remove(&mut self, ticket: u64) {
        let is_empty = match self {
            Tickets::None => false,
            Tickets::One(only) => *only == ticket,
            Tickets::Many(many) => many.remove(&ticket) && many.is_empty(),
        };
        if is_empty {
            *self = Tickets::None;
        }
    }
}

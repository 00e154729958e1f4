//! What many done jobs have in common, kept once for all of them.

use crate::queue::job::Terms;
use crate::storage::allocated::allocated;
use crate::storage::broken::there;
use crate::storage::slab::Slab;
use hashbrown::HashTable;
use std::hash::BuildHasher;

const NUMBER: &str = "a number that no done job has";

/// See [`Interned`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    pub terms: Terms<'static>,
    pub group: Option<Box<[u8]>>,
    /// How long after its end the job is removed; none if time does not remove it.
    pub stay: Option<u64>,
}

#[derive(Clone, Debug)]
struct Entry {
    shared: Shared,
    users: u32,
}

/// Entries by number, and an index by content.
#[derive(Clone, Debug)]
pub struct Interned {
    entries: Slab<Entry>,
    numbers: HashTable<u32>,
    /// The number that was acquired last: likely the next, too.
    latest: u32,
}

impl Interned {
    pub const fn new() -> Self {
        Interned {
            entries: Slab::new(),
            numbers: HashTable::new(),
            latest: 0,
        }
    }

    pub fn get(&self, number: u32) -> &Shared {
        &there(self.entries.get(number), NUMBER).shared
    }

    /// Its number, with one user more.
    pub fn acquire(&mut self, shared: Shared, hasher: &impl BuildHasher) -> u32 {
        let latest = self.entries.get_mut(self.latest);
        if let Some(entry) = latest.filter(|entry| entry.shared == shared) {
            entry.users += 1;
            return self.latest;
        }
        let entries = &mut self.entries;
        let hash = hasher.hash_one(&shared);
        let same = |&number: &u32| entries.get(number).is_some_and(|it| it.shared == shared);
        let found = self.numbers.find(hash, same).copied();
        self.latest = match found {
            Some(number) => {
                there(entries.get_mut(number), NUMBER).users += 1;
                number
            }
            None => {
                let number = entries.insert(Entry { shared, users: 1 });
                let rehash = |&it: &u32| hasher.hash_one(&there(entries.get(it), NUMBER).shared);
                self.numbers.insert_unique(hash, number, rehash);
                number
            }
        };
        self.latest
    }

    pub fn release(&mut self, number: u32, hasher: &impl BuildHasher) {
        let entry = there(self.entries.get_mut(number), NUMBER);
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        let gone = there(self.entries.remove(number), NUMBER);
        let found = self
            .numbers
            .find_entry(hasher.hash_one(&gone.shared), |&it| it == number);
        if let Ok(found) = found {
            found.remove();
        }
        if self.numbers.is_empty() {
            self.numbers = HashTable::new();
        }
    }

    pub fn free_some(&mut self, count: usize) -> bool {
        self.entries.free_some(count)
    }

    pub fn has_room(&self) -> bool {
        self.entries.has_room_for(1)
    }

    pub fn memory_bytes(&self) -> usize {
        let own = |entry: &Entry| {
            let rest = entry.shared.terms.rest.bytes().len();
            let group = entry.shared.group.as_ref().map_or(0, |name| name.len());
            allocated(rest) + allocated(group)
        };
        self.entries.memory_bytes()
            + self.numbers.allocation_size()
            + self.entries.iter().map(own).sum::<usize>()
    }

    /// For tests: checks that all entries together have `users` users.
    pub fn check_users(&self, users: usize) -> Result<(), String> {
        let counted: usize = self.entries.iter().map(|it| it.users as usize).sum();
        if counted != users || self.entries.len() != self.numbers.len() {
            return Err(format!("{counted} users of what is shared, not {users}"));
        }
        Ok(())
    }
}

//! Terms kept once for all the jobs that share them.

use super::job::Terms;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Names one entry of the pool; fits the 16 bits that a job has for it.
pub type TermsRef = u16;

#[derive(Clone, Debug)]
struct Shared {
    terms: Terms<'static>,
    users: u32,
    /// It stands in `unused`, where it may have found users again since.
    listed: bool,
}

/// Entries without users stay until their number is wanted again, so that a queue whose jobs come
/// and go one at a time does not drop and make its terms each time.
#[derive(Clone, Debug)]
pub struct TermsPool {
    entries: Vec<Shared>,
    numbers: HashTable<TermsRef>,
    unused: Vec<TermsRef>,
    latest: TermsRef,
}

/// Distinct terms that a queue keeps once; jobs beyond carry their own.
const POOL_MAX: usize = 4096;

impl TermsPool {
    pub const fn new() -> Self {
        TermsPool {
            entries: Vec::new(),
            numbers: HashTable::new(),
            unused: Vec::new(),
            latest: 0,
        }
    }

    /// The number of these terms, with one user more; `None` where the pool is full of others.
    pub fn acquire(&mut self, terms: &Terms<'_>, hasher: &impl BuildHasher) -> Option<TermsRef> {
        let number = match self.entries.get(self.latest as usize) {
            Some(entry) if entry.terms.equals(terms) => self.latest,
            _ => self.find_or_add(terms, hasher)?,
        };
        let entry = self.entries.get_mut(number as usize)?;
        entry.users = entry.users.checked_add(1)?;
        self.latest = number;
        Some(number)
    }

    fn find_or_add(&mut self, terms: &Terms<'_>, hasher: &impl BuildHasher) -> Option<TermsRef> {
        let entries = &self.entries;
        let hash = hasher.hash_one(terms);
        let same = |&number: &TermsRef| entries[number as usize].terms.equals(terms);
        if let Some(&number) = self.numbers.find(hash, same) {
            return Some(number);
        }
        let number = self.vacant(hasher)?;
        let shared = Shared {
            terms: terms.clone().into_owned(),
            users: 0,
            listed: false,
        };
        if number as usize == self.entries.len() {
            if number == 0 {
                self.entries.reserve_exact(1);
            }
            self.entries.push(shared);
        } else {
            self.entries[number as usize] = shared;
        }
        let entries = &self.entries;
        self.numbers.insert_unique(hash, number, |&n| {
            hasher.hash_one(&entries[n as usize].terms)
        });
        Some(number)
    }

    /// A number to use: a new one while there are few, else one that lost its last user.
    fn vacant(&mut self, hasher: &impl BuildHasher) -> Option<TermsRef> {
        let next = self.entries.len() as TermsRef;
        if next < 8 {
            return Some(next);
        }
        while let Some(number) = self.unused.pop() {
            let entry = &mut self.entries[number as usize];
            entry.listed = false;
            if entry.users == 0 {
                let hash = hasher.hash_one(&entry.terms);
                if let Ok(found) = self.numbers.find_entry(hash, |&n| n == number) {
                    found.remove();
                }
                return Some(number);
            }
        }
        ((next as usize) < POOL_MAX).then_some(next)
    }

    pub fn release(&mut self, number: TermsRef) {
        let Some(entry) = self.entries.get_mut(number as usize) else {
            return;
        };
        debug_assert!(entry.users > 0);
        entry.users = entry.users.saturating_sub(1);
        if entry.users == 0 && !entry.listed {
            entry.listed = true;
            self.unused.push(number);
        }
    }

    pub fn get(&self, number: TermsRef) -> &Terms<'static> {
        &self.entries[number as usize].terms
    }

    #[cfg(test)]
    pub fn users(&self) -> u64 {
        self.entries
            .iter()
            .map(|entry| u64::from(entry.users))
            .sum()
    }

    pub fn memory_bytes(&self) -> usize {
        let ladders: usize = self
            .entries
            .iter()
            .map(|e| e.terms.backoff_ms.len() * 8)
            .sum();
        self.entries.capacity() * size_of::<Shared>()
            + self.numbers.allocation_size()
            + self.unused.capacity() * size_of::<TermsRef>()
            + ladders
    }
}

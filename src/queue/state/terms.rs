//! Terms kept once for all the jobs that share them.

use crate::queue::attr::Attrs;
use crate::queue::job::Terms;
use crate::storage::allocated::{allocated, reserve};
use crate::storage::broken::{must, there};
use hashbrown::HashTable;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// Names one entry of the pool; fits the 16 bits that a job has for it.
pub type TermsRef = u16;

#[derive(Clone, Debug)]
struct Shared {
    terms: Terms<'static>,
    users: u32,
    /// Whether it stands in `unused`. It may have found users again since.
    listed: bool,
}

impl Shared {
    fn of(terms: &Terms<'_>) -> Self {
        Shared {
            terms: terms.clone().into_owned(),
            users: 0,
            listed: false,
        }
    }
}

/// A few entries without users stay, so that a queue whose jobs come and go one at a time does not drop
/// and make its terms each time. The others are vacated: a ladder takes up to 6 KB.
#[derive(Clone, Debug)]
pub struct TermsPool {
    entries: Vec<Shared>,
    /// Only for more than a few entries; a few are searched one by one.
    index: Option<Box<Index>>,
    /// Entries that have users.
    used: u32,
    latest: TermsRef,
    /// Whether any terms that came had a KEEP, or a weight.
    pub says_keep: bool,
    pub says_weight: bool,
}

#[derive(Clone, Debug, Default)]
struct Index {
    numbers: HashTable<TermsRef>,
    /// Entries without users; the one that lost its last user first is in front.
    unused: VecDeque<TermsRef>,
    vacant: Vec<TermsRef>,
}

/// The terms of a vacated entry. No job has them: the leases of jobs have a length.
const VACATED: Terms<'static> = Terms {
    priority: 0,
    ttr_ms: 0,
    max_attempts: 0,
    rest: Attrs::NONE,
};

/// How many distinct terms a queue shares; further jobs carry their own.
pub const POOL_MAX: usize = 4096;
/// How many entries without users stay, and how many entries need no index.
const UNUSED_MAX: usize = 8;
/// A pool larger than this begins anew once it has no users.
const KEPT_MAX: usize = 64;

impl TermsPool {
    pub const fn new() -> Self {
        TermsPool {
            entries: Vec::new(),
            index: None,
            used: 0,
            latest: 0,
            says_keep: false,
            says_weight: false,
        }
    }

    /// The number of these terms, with one user more; `None` if the pool is full of others.
    pub fn acquire(&mut self, terms: &Terms<'_>, hasher: &impl BuildHasher) -> Option<TermsRef> {
        let number = match self.entries.get(self.latest as usize) {
            Some(entry) if entry.terms.equals(terms) => self.latest,
            _ => self.find_or_add(terms, hasher)?,
        };
        let entry = &mut self.entries[number as usize];
        self.used += u32::from(entry.users == 0);
        entry.users = entry.users.checked_add(1)?;
        self.latest = number;
        Some(number)
    }

    fn find_or_add(&mut self, terms: &Terms<'_>, hasher: &impl BuildHasher) -> Option<TermsRef> {
        self.note_said(terms);
        if self.index.is_none() {
            let found = self.entries.iter().position(|it| it.terms.equals(terms));
            if let Some(number) = found {
                return Some(number as TermsRef);
            }
            if self.entries.len() < UNUSED_MAX {
                return Some(self.push(terms));
            }
        }
        self.find_or_add_indexed(terms, hasher)
    }

    fn note_said(&mut self, terms: &Terms<'_>) {
        if !terms.rest.is_empty() {
            self.says_keep |= terms.rest.keep_ms().is_some();
            self.says_weight |= terms.rest.weight() != 1;
        }
    }

    fn push(&mut self, terms: &Terms<'_>) -> TermsRef {
        if self.entries.is_empty() {
            reserve(&mut self.entries, 1);
        }
        self.entries.push(Shared::of(terms));
        self.entries.len() as TermsRef - 1
    }

    fn find_or_add_indexed(
        &mut self,
        terms: &Terms<'_>,
        hasher: &impl BuildHasher,
    ) -> Option<TermsRef> {
        let entries = &mut self.entries;
        let index = self
            .index
            .get_or_insert_with(|| Box::new(Index::of(entries, hasher)));
        let hash = hasher.hash_one(terms);
        let same = |&number: &TermsRef| entries[number as usize].terms.equals(terms);
        if let Some(&number) = index.numbers.find(hash, same) {
            return Some(number);
        }
        let number = match index.vacant(entries, hasher) {
            Some(number) => {
                entries[number as usize] = Shared::of(terms);
                number
            }
            None if entries.len() < POOL_MAX => {
                entries.push(Shared::of(terms));
                entries.len() as TermsRef - 1
            }
            None => return None,
        };
        let entries = &self.entries;
        index.insert(hash, number, entries, hasher);
        Some(number)
    }

    pub fn release(&mut self, number: TermsRef, hasher: &impl BuildHasher) {
        let entry = &mut self.entries[number as usize];
        must(entry.users > 0, "terms that nobody uses, released");
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        self.used -= 1;
        let Some(index) = &mut self.index else {
            return;
        };
        if !std::mem::replace(&mut entry.listed, true) {
            index.unused.push_back(number);
        }
        if self.used == 0 && self.entries.len() > KEPT_MAX {
            *self = TermsPool {
                says_keep: self.says_keep,
                says_weight: self.says_weight,
                ..TermsPool::new()
            };
            return;
        }
        while index.unused.len() > UNUSED_MAX {
            index.vacate_oldest(&mut self.entries, hasher);
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
        let rests: usize = self
            .entries
            .iter()
            .map(|e| e.terms.rest.bytes().len())
            .sum();
        self.entries.capacity() * size_of::<Shared>()
            + self.index.as_ref().map_or(0, |index| index.memory_bytes())
            + rests
    }
}

impl Index {
    /// The index of entries none of which was ever vacated.
    #[cold]
    fn of(entries: &mut [Shared], hasher: &impl BuildHasher) -> Self {
        let mut index = Index::default();
        for (number, entry) in entries.iter_mut().enumerate() {
            entry.listed = entry.users == 0;
            if entry.listed {
                index.unused.push_back(number as TermsRef);
            }
        }
        for (number, entry) in entries.iter().enumerate() {
            let hash = hasher.hash_one(&entry.terms);
            index.insert(hash, number as TermsRef, entries, hasher);
        }
        index
    }

    fn insert(
        &mut self,
        hash: u64,
        number: TermsRef,
        entries: &[Shared],
        hasher: &impl BuildHasher,
    ) {
        self.numbers.insert_unique(hash, number, |&n| {
            hasher.hash_one(&entries[n as usize].terms)
        });
    }

    /// The number of a vacated entry, if there is one.
    fn vacant(&mut self, entries: &mut [Shared], hasher: &impl BuildHasher) -> Option<TermsRef> {
        while self.vacant.is_empty() && !self.unused.is_empty() {
            self.vacate_oldest(entries, hasher);
        }
        self.vacant.pop()
    }

    /// Vacates the entry that has been without users longest, unless it has found some since.
    fn vacate_oldest(&mut self, entries: &mut [Shared], hasher: &impl BuildHasher) {
        let Some(number) = self.unused.pop_front() else {
            return;
        };
        let entry = &mut entries[number as usize];
        entry.listed = false;
        if entry.users > 0 {
            return;
        }
        let terms = std::mem::replace(&mut entry.terms, VACATED);
        let found = self
            .numbers
            .find_entry(hasher.hash_one(&terms), |&n| n == number);
        there(found.ok(), "terms that their index does not know").remove();
        self.vacant.push(number);
    }

    fn memory_bytes(&self) -> usize {
        allocated(size_of::<Self>())
            + self.numbers.allocation_size()
            + (self.unused.capacity() + self.vacant.capacity()) * size_of::<TermsRef>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::job::INSTANT_MAX;
    use ahash::RandomState;

    fn hasher() -> RandomState {
        RandomState::with_seeds(1, 2, 3, 4)
    }

    fn terms(number: usize) -> Terms<'static> {
        Terms {
            priority: number as i32,
            ttr_ms: 60_000,
            max_attempts: 0,
            rest: Attrs::NONE,
        }
    }

    fn acquire(pool: &mut TermsPool, number: usize) -> Option<TermsRef> {
        let name = pool.acquire(&terms(number), &hasher())?;
        assert_eq!(*pool.get(name), terms(number));
        Some(name)
    }

    #[test]
    fn those_in_use_keep_their_numbers_and_share_them() {
        let mut pool = TermsPool::new();
        let mut held: Vec<Vec<TermsRef>> = vec![Vec::new(); 100];
        let mut x = 88172645463325252u64;
        for step in 0..100_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // A few at a time, others later.
            let number = (step / 5_000 * 7 + x as usize % 12) % 100;
            match x >> 32 & 1 {
                0 => held[number].extend(acquire(&mut pool, number)),
                _ => held[number]
                    .pop()
                    .into_iter()
                    .for_each(|it| pool.release(it, &hasher())),
            }
            if step % 5_000 == 4_999 {
                let all = held.iter_mut().flat_map(|it| it.drain(..));
                all.for_each(|it| pool.release(it, &hasher()));
            }
            for (number, names) in held.iter().enumerate() {
                let mut names = names.iter();
                let first = names.next();
                assert!(first.is_none_or(|&it| *pool.get(it) == terms(number)));
                assert!(names.all(|it| Some(it) == first));
            }
            let users: usize = held.iter().map(Vec::len).sum();
            assert_eq!(pool.users(), users as u64);
        }
        // Twelve were in use at a time, and eight may be kept for others to come.
        assert!(pool.entries.len() <= 12 + 8, "{}", pool.entries.len());
        let index = pool.index.expect("there are more than a few");
        assert_eq!(index.numbers.len() + index.vacant.len(), pool.entries.len());
        assert!(index.unused.len() <= UNUSED_MAX);
    }

    #[test]
    fn ladders_that_nobody_uses_are_freed() {
        let mut pool = TermsPool::new();
        let ladder = |number| Terms {
            rest: Attrs::NONE.with_backoff(&[INSTANT_MAX; 1024]),
            ..terms(number)
        };
        let acquire = |pool: &mut TermsPool, number| {
            let name = pool.acquire(&ladder(number), &hasher());
            name.expect("the pool has room")
        };
        let names: Vec<_> = (0..POOL_MAX).map(|n| acquire(&mut pool, n)).collect();
        assert!(pool.memory_bytes() > POOL_MAX * 6144);
        let (kept, others) = names.split_last().expect("there are some");
        others.iter().for_each(|&it| pool.release(it, &hasher()));
        // A few are kept, and the one in use is what it was.
        assert!(pool.memory_bytes() < 600_000, "{}", pool.memory_bytes());
        assert_eq!(*pool.get(*kept), ladder(POOL_MAX - 1));
        // Their numbers are used again.
        let again: Vec<_> = (0..POOL_MAX - 1).map(|n| acquire(&mut pool, n)).collect();
        assert_eq!(pool.entries.len(), POOL_MAX);
        again.iter().for_each(|&it| pool.release(it, &hasher()));
        pool.release(*kept, &hasher());
        assert_eq!(pool.memory_bytes(), 0);
    }

    #[test]
    fn a_full_pool_takes_others_once_some_are_out_of_use() {
        let mut pool = TermsPool::new();
        for number in 0..POOL_MAX {
            assert_eq!(acquire(&mut pool, number), Some(number as TermsRef));
        }
        assert_eq!(acquire(&mut pool, POOL_MAX), None);
        assert_eq!(acquire(&mut pool, 5), Some(5));
        pool.release(5, &hasher());
        assert_eq!(acquire(&mut pool, POOL_MAX), None, "one user is left");
        pool.release(5, &hasher());
        assert_eq!(acquire(&mut pool, POOL_MAX), Some(5));
        assert_eq!(acquire(&mut pool, 5), None);
    }
}

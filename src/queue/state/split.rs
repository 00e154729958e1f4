//! Jobs by an instant, in several lists: a job's list says what becomes of it then. So it is known at once how many
//! jobs of each kind are overdue, whether or not that has been carried out.

use crate::queue::job::Handle;
use crate::storage::lazy::{Lazy, Unused};
use crate::storage::relocate::Mover;
use crate::storage::skiplist::Skiplist;
use std::ops::RangeInclusive;

/// The list of kind 0, which nearly all jobs are in, and `N` others.
#[derive(Clone)]
pub struct Split<const N: usize>(Lazy<Lists<N>>);

#[derive(Clone)]
struct Lists<const N: usize> {
    main: Skiplist<u64>,
    others: Lazy<Others<N>>,
    /// Length and first instant of all lists: each command asks for both.
    len: usize,
    first: u64,
}

#[derive(Clone)]
struct Others<const N: usize> {
    lists: [Skiplist<u64>; N],
    len: usize,
    /// The first instant of all of them, or [`NONE`].
    first: u64,
}

/// Later than any instant.
const NONE: u64 = u64::MAX;

impl<const N: usize> Unused for Lists<N> {
    const UNUSED: &'static Self = &Lists {
        main: Skiplist::new(),
        others: Lazy::new(),
        len: 0,
        first: NONE,
    };
}

impl<const N: usize> Default for Lists<N> {
    fn default() -> Self {
        Self::UNUSED.clone()
    }
}

impl<const N: usize> Lists<N> {
    #[inline(always)]
    fn count(&mut self) {
        self.len = self.main.len();
        self.first = self.main.first().map_or(NONE, |(at, _)| at);
        if let Some(others) = self.others.if_made() {
            self.len += others.len;
            self.first = self.first.min(others.first);
        }
    }

    #[inline(never)]
    fn edit_other<T>(&mut self, other: usize, edit: impl FnOnce(&mut Skiplist<u64>) -> T) -> T {
        let others = self.others.make();
        let result = edit(&mut others.lists[other]);
        others.count();
        result
    }
}

impl<const N: usize> Unused for Others<N> {
    const UNUSED: &'static Self = &Others {
        lists: [const { Skiplist::new() }; N],
        len: 0,
        first: NONE,
    };
}

impl<const N: usize> Default for Others<N> {
    fn default() -> Self {
        Self::UNUSED.clone()
    }
}

impl<const N: usize> Others<N> {
    fn count(&mut self) {
        self.len = self.lists.iter().map(|list| list.len()).sum();
        let firsts = self.lists.iter().filter_map(|list| list.first());
        self.first = firsts.map(|(at, _)| at).min().unwrap_or(NONE);
    }
}

impl<const N: usize> Default for Split<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Split<N> {
    pub const fn new() -> Self {
        Split(Lazy::new())
    }

    pub fn list(&self, kind: usize) -> &Skiplist<u64> {
        match kind.checked_sub(1) {
            None => &self.0.main,
            Some(other) => &self.0.others.lists[other],
        }
    }

    fn lists(&self) -> impl Iterator<Item = &Skiplist<u64>> {
        (0..=N).map(|kind| self.list(kind))
    }

    /// Changes one list.
    #[inline]
    fn edit<T>(&mut self, kind: usize, edit: impl FnOnce(&mut Skiplist<u64>) -> T) -> T {
        let lists = self.0.make();
        let result = match kind.checked_sub(1) {
            None => edit(&mut lists.main),
            Some(other) => lists.edit_other(other, edit),
        };
        lists.count();
        result
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// The earliest instant, or one later than any.
    #[inline(always)]
    pub fn first_at(&self) -> u64 {
        self.0.first
    }

    /// The first of all, in the order of (instant, `tie`).
    pub fn first(&self, tie: impl Fn(Handle) -> u64) -> Option<(u64, Handle)> {
        let main = self.0.main.first();
        if self.0.others.first > main.map_or(NONE, |(at, _)| at) {
            return main;
        }
        let firsts = self.lists().filter_map(|list| list.first());
        firsts.min_by_key(|&(at, handle)| (at, tie(handle), handle))
    }

    #[inline]
    pub fn insert(&mut self, kind: usize, at: u64, handle: Handle, tie: impl Fn(Handle) -> u64) {
        self.edit(kind, |list| list.insert(at, handle, tie));
    }

    /// False if it was not there.
    #[inline]
    pub fn remove(
        &mut self,
        kind: usize,
        at: u64,
        handle: Handle,
        tie: impl Fn(Handle) -> u64,
    ) -> bool {
        self.edit(kind, |list| list.remove(at, handle, tie))
    }

    /// As [`Skiplist::remove_sorted`] and [`Skiplist::insert_sorted`].
    pub fn remove_sorted(
        &mut self,
        kind: usize,
        entries: &[(u64, Handle)],
        tie: impl Fn(Handle) -> u64,
    ) -> bool {
        self.edit(kind, |list| list.remove_sorted(entries, tie))
    }

    pub fn insert_sorted(
        &mut self,
        kind: usize,
        entries: &[(u64, Handle)],
        tie: impl Fn(Handle) -> u64,
    ) {
        self.edit(kind, |list| list.insert_sorted(entries, tie));
    }

    /// How many entries of all kinds are at this instant or earlier.
    pub fn count_by(&self, instant: u64) -> usize {
        self.lists()
            .map(|list| list.count_below(instant, true))
            .sum()
    }

    /// All entries from an instant on, in the order of (instant, `tie`).
    pub fn iter_from<'a>(
        &'a self,
        from: u64,
        tie: impl Fn(Handle) -> u64 + 'a,
    ) -> impl Iterator<Item = (u64, Handle)> + 'a {
        let mut lists: Vec<_> = self
            .lists()
            .filter(|list| !list.is_empty())
            .map(|list| list.iter_from(from).peekable())
            .collect();
        std::iter::from_fn(move || {
            if let [only] = &mut lists[..] {
                return only.next();
            }
            let firsts = lists.iter_mut().filter_map(|list| {
                let (at, handle) = *list.peek()?;
                Some(((at, tie(handle), handle), list))
            });
            firsts.min_by_key(|(key, _)| *key)?.1.next()
        })
    }

    /// Takes out all entries of a kind within a range of instants, as [`Skiplist::detach`]; returns how many.
    pub fn detach(&mut self, kind: usize, instants: RangeInclusive<u64>) -> usize {
        match self.list(kind).is_empty() {
            true => 0,
            false => self.edit(kind, |list| list.detach(instants)),
        }
    }

    pub fn pop_detached(&mut self, kind: usize) -> Option<Handle> {
        let popped = self.edit(kind, |list| list.pop_detached());
        popped.map(|(_, handle)| handle)
    }

    /// What is detached, with its kind. Visits each entry: for tests.
    pub fn detached(&self) -> Vec<(usize, Handle)> {
        let of_kind = |kind| {
            let detached = self.list(kind).detached();
            detached.map(move |(_, handle)| (kind, handle))
        };
        (0..=N).flat_map(of_kind).collect()
    }

    /// Frees about `count` entries of lists that are not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        let Some(Lists { main, others, .. }) = self.0.made() else {
            return false;
        };
        let others = others.made().into_iter();
        let mut others = others.flat_map(|others| &mut others.lists);
        main.free_some(count) || others.any(|list| list.free_some(count))
    }

    pub fn memory_bytes(&self) -> usize {
        let lists = self.lists().map(|list| list.memory_bytes());
        self.0.memory_bytes() + self.0.others.memory_bytes() + lists.sum::<usize>()
    }

    /// See [`crate::storage::relocate`]. The main list is part 0, and each other kind is a part.
    pub fn relocate(&mut self, kind: usize, from: u32, mover: &mut impl Mover) -> Option<u32> {
        if (kind, from) == (0, 0) {
            self.0.relocate(mover);
        }
        let Lists { main, others, .. } = self.0.made()?;
        let Some(other) = kind.checked_sub(1) else {
            return main.relocate(from, mover);
        };
        if (other, from) == (0, 0) {
            others.relocate(mover);
        }
        others.made()?.lists[other].relocate(from, mover)
    }

    pub fn check_invariants(&self, tie: impl Fn(Handle) -> u64) -> Result<(), String> {
        self.lists()
            .try_for_each(|list| list.check_invariants(&tie))?;
        let mut counted = (*self.0).clone();
        if let Some(others) = counted.others.made() {
            others.count();
        }
        counted.count();
        let figures = |lists: &Lists<N>| {
            let Others { len, first, .. } = *lists.others;
            (len, first, lists.len, lists.first)
        };
        if figures(&counted) != figures(&self.0) {
            return Err(
                "lists of which it is not known how long they are, or what comes first".into(),
            );
        }
        Ok(())
    }
}

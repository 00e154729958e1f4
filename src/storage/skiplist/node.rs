//! A node and its items: see the picture in the parent.

use super::key::{Key, Link, NIL, NODE, RUN};
use std::cmp::Ordering;

/// How many keys are below; all of these are at the front.
pub(super) fn rank<K>(keys: &[K], is_below: impl Fn(&K) -> bool) -> usize {
    keys.partition_point(is_below)
}

/// For checks of invariants.
pub(super) fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(otherwise.to_string())
    }
}

/// A node of any level.
#[derive(Clone)]
pub(super) struct Node<K, V> {
    pub(super) keys: Vec<K>,
    pub(super) values: Vec<V>,
    /// Items before it have been popped: otherwise pop_first would move all others forward.
    pub(super) start: u8,
    /// The index after the item inserted last, and how many in a row were inserted at such an index.
    pub(super) turn: u8,
    pub(super) in_turn: u8,
    pub(super) prev: u32,
    /// The next node; in a free node, the next free one of the segment.
    pub(super) next: u32,
}

impl<K, V> Default for Node<K, V> {
    fn default() -> Self {
        Node {
            keys: Vec::new(),
            values: Vec::new(),
            start: 0,
            turn: 0,
            in_turn: 0,
            prev: NIL,
            next: NIL,
        }
    }
}

impl<K: Key, V: Copy> Node<K, V> {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// With this item alone.
    pub(super) fn of(key: K, value: V) -> Self {
        Node {
            keys: vec![key],
            values: vec![value],
            turn: 1,
            in_turn: 1,
            ..Self::default()
        }
    }

    pub(super) fn keys(&self) -> &[K] {
        &self.keys[self.start as usize..]
    }

    pub(super) fn values(&self) -> &[V] {
        &self.values[self.start as usize..]
    }

    pub(super) fn values_mut(&mut self) -> &mut [V] {
        &mut self.values[self.start as usize..]
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len() - self.start as usize
    }

    pub(super) fn items(&self) -> impl Iterator<Item = (K, V)> + '_ {
        self.keys()
            .iter()
            .copied()
            .zip(self.values().iter().copied())
    }

    /// The least of the items' floors. If floors rise with keys, the second stands for all after it
    /// except the last. The first link of a level may lead to entries before its key, the last of a
    /// node beyond the run of rising floors.
    pub(super) fn least(&self, floor: impl Fn(usize) -> K::Floor) -> K::Floor {
        let (keys, last) = (self.keys(), self.len() - 1);
        let second = last.min(1);
        let end = if keys[second].rises_to(keys[last]) {
            second
        } else {
            last
        };
        (0..=end).fold(floor(last), |least, at| least.min(floor(at)))
    }

    #[inline]
    pub(super) fn insert(&mut self, at: usize, key: K, value: V) {
        debug_assert!(self.len() < NODE);
        self.note_turn(at);
        if self.keys.len() == self.keys.capacity() {
            self.make_room();
        }
        self.keys.insert(self.start as usize + at, key);
        self.values.insert(self.start as usize + at, value);
    }

    /// Appends an item if the node has room without growing; false otherwise.
    #[inline]
    pub(super) fn append_one(&mut self, key: K, value: V) -> bool {
        let at = self.len();
        if at >= NODE || self.keys.len() == self.keys.capacity() {
            return false;
        }
        self.note_turn(at);
        self.keys.push(key);
        self.values.push(value);
        true
    }

    #[inline]
    fn note_turn(&mut self, at: usize) {
        self.in_turn = if at == self.turn as usize {
            self.in_turn.saturating_add(1)
        } else {
            0
        };
        self.turn = at as u8 + 1;
    }

    #[cold]
    pub(super) fn make_room(&mut self) {
        self.close_start();
        let len = self.len();
        if len == self.keys.capacity() {
            let more = (2 * len).clamp(1, NODE) - len;
            self.keys.reserve_exact(more);
            self.values.reserve_exact(more);
        }
    }

    pub(super) fn close_start(&mut self) {
        self.keys.drain(..self.start as usize);
        self.values.drain(..self.start as usize);
        self.start = 0;
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.keys.remove(self.start as usize + at);
        self.values.remove(self.start as usize + at);
        self.shrink();
    }

    /// Inserts consecutive items before the one at this index. The node must have room for them.
    pub(super) fn insert_all(&mut self, at: usize, items: &[(K, V)]) {
        let len = self.len() + items.len();
        debug_assert!(len <= NODE);
        self.close_start();
        if len > self.keys.capacity() {
            let more = len.next_power_of_two().max(4) - self.keys.len();
            self.keys.reserve_exact(more);
            self.values.reserve_exact(more);
        }
        self.keys.splice(at..at, items.iter().map(|(key, _)| *key));
        let values = items.iter().map(|(_, value)| *value);
        self.values.splice(at..at, values);
        self.expect_run(at + items.len());
    }

    /// Notes that more items will be inserted here, each after the one before it.
    pub(super) fn expect_run(&mut self, at: usize) {
        (self.turn, self.in_turn) = (at as u8, RUN);
    }

    pub(super) fn shrink(&mut self) {
        let mut room = self.keys.capacity();
        if room > 4 && self.len() <= room * 3 / 8 {
            while room > 4 && self.len() <= room * 3 / 8 {
                room /= 2;
            }
            self.close_start();
            self.keys.shrink_to(room);
            self.values.shrink_to(room);
        }
    }

    pub(super) fn split_off(&mut self, at: usize) -> Self {
        self.close_start();
        Node {
            keys: self.keys.split_off(at),
            values: self.values.split_off(at),
            ..Node::default()
        }
    }

    /// Removes the items from `from` up to, not including, `to`, and returns them.
    pub(super) fn cut_out(&mut self, from: usize, to: usize) -> Self {
        self.close_start();
        let out = Node {
            keys: self.keys.drain(from..to).collect(),
            values: self.values.drain(from..to).collect(),
            ..Node::default()
        };
        self.shrink();
        out
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.close_start();
        self.keys.reserve_exact(other.len());
        self.values.reserve_exact(other.len());
        self.keys.extend_from_slice(other.keys());
        self.values.extend_from_slice(other.values());
    }
}

impl<K: Key> Node<K, u32> {
    pub(super) fn floor(&self) -> K::Floor {
        self.least(|at| self.keys()[at].floor())
    }

    /// Whether all its entries come before this one.
    #[inline]
    pub(super) fn is_before(&self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> bool {
        let last = self.keys.last().zip(self.values.last());
        last.is_some_and(|(k, &h)| match k.cmp(&key) {
            Ordering::Equal => (tie(h), h) < (tie(handle), handle),
            order => order.is_lt(),
        })
    }

    /// The index at which a new entry belongs.
    pub(super) fn place_of(&self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> usize {
        let at = rank(self.keys(), |k| *k < key);
        if self.keys().get(at) != Some(&key) {
            return at;
        }
        let equals = rank(&self.keys()[at..], |k| *k == key);
        let own = (tie(handle), handle);
        at + self.values()[at..at + equals].partition_point(|h| (tie(*h), *h) < own)
    }

    pub(super) fn find(&self, key: K, handle: u32) -> Option<usize> {
        // Compares sixteen at a time.
        let mut chunks = self.values().chunks(16);
        let passed = 16 * chunks.position(|handles| handles.contains(&handle))?;
        let mut rest = self.values()[passed..].iter();
        let at = passed + rest.position(|h| *h == handle)?;
        if self.keys()[at] == key {
            return Some(at);
        }
        self.find_again(at + 1, key, handle)
    }

    /// Needed in a list whose handles are under several keys.
    #[cold]
    fn find_again(&self, from: usize, key: K, handle: u32) -> Option<usize> {
        let mut rest = self.items().enumerate().skip(from);
        rest.find(|&(_, item)| item == (key, handle))
            .map(|(at, _)| at)
    }

    /// Removes the first of these sorted entries, as far as they are in this node; returns how many.
    pub(super) fn remove_sorted(&mut self, entries: &[(K, u32)]) -> usize {
        self.close_start();
        let (mut gone, mut kept) = (0, 0);
        for at in 0..self.keys.len() {
            let item = (self.keys[at], self.values[at]);
            if entries.get(gone) == Some(&item) {
                gone += 1;
            } else {
                (self.keys[kept], self.values[kept]) = item;
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.values.truncate(kept);
        if kept > 0 {
            self.shrink();
        }
        gone
    }

    #[inline]
    pub(super) fn pop_first(&mut self) -> (K, u32) {
        let start = self.start as usize;
        self.start += 1;
        (self.keys[start], self.values[start])
    }
}

impl<K: Key> Node<K, Link<K::Floor>> {
    pub(super) fn floor(&self) -> K::Floor {
        self.least(|at| self.values()[at].floor)
    }

    /// The last link whose separator is not greater than (key, tie of handle); the first link if
    /// all are greater.
    pub(super) fn link_to(&self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> usize {
        let keys = &self.keys()[1..];
        let at = rank(keys, |k| *k < key);
        if keys.get(at) != Some(&key) {
            return at;
        }
        let equals = rank(&keys[at..], |k| *k == key);
        at + self.values()[at + 1..][..equals]
            .partition_point(|l| l.tie == (0, 0) || l.tie <= (tie(handle), handle))
    }

    pub(super) fn remove_link(&mut self, at: usize) {
        if at == 0 {
            self.become_first(1);
        }
        self.remove(at);
    }

    /// Gives a link, before the links in front of it are removed, the first one's separator, which
    /// is the node's.
    pub(super) fn become_first(&mut self, at: usize) {
        let start = self.start as usize;
        if at < self.len() {
            self.keys[start + at] = self.keys[start];
            self.values[start + at].tie = self.values[start].tie;
        }
    }
}

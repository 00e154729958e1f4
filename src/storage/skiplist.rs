//! An unrolled, deterministic skiplist with ranks: levels of runs of up to 64 items, which split and merge.
//!
//! A list holds (key, handle) entries in the order of (key, tie). The tie is a sequence number that
//! the caller keeps. It is read only if keys are equal; if ties are equal, too, the handle decides.
//! Every level is a linked list of nodes of up to 64 sorted items, keys and values in separate
//! arrays, so that a search reads only keys. The items of the bottom level are the entries; those
//! of a level above are links, one to each node of the level below:
//!
//! ```text
//! uppers[1]    [ -    q ]
//!                |    |
//!                |    +-------------------+
//! uppers[0]    [ -    d    k ] <------> [ q    v ]        key: separator, with tie, span, floor
//!                |    |    |              |    |
//! bottom       [abc][defg][klm] <----> [qrst][vwxyz]      key, handle
//!
//! node      keys     .   .  | a | b | c |   |   |   |     room for 4, 8, 16, 32 or 64
//!           values   .   .  | 1 | 2 | 3 |   |   |   |     handles (u32) or links
//!                    popped   ^ start       ^ len
//!
//! level     segment 0            segment 1                node n is number n % 512 of segment n / 512
//!           [n n n . n n ... n]  [n n . .]                a segment without live nodes gives its memory back
//! ```
//!
//! A *separator* is a (key, tie): no entry below the link is less, and every entry before the link
//! is. It need not be an entry of the list, so removals leave it unchanged. Its tie is 0 unless
//! equal keys are on both sides: a search then needs no tie, and asks for none. The first link of a
//! node has the separator of the link that leads to the node; the first link of a level is never
//! compared.
//!
//! A *span* is the number of entries below a link; a *floor* is the least due time among them.
//!
//! A classic skiplist draws the height of each node at random. This one counts instead: a full node
//! splits and its new neighbour gets a link above; two small ones merge and a link is removed (a
//! deterministic skiplist, after Munro, Papadakis and Sedgewick). So links are side by side as
//! entries are. A search over a million entries reads four nodes; with random heights (p = 1/4) it
//! follows some thirty links, each a cache miss. No list is unlucky: the bounds always hold, not
//! only on average. docs/architecture.md compares it with a B+-tree.
//!
//! A range of keys is taken out at once, however many entries it has, by joining its nodes to a
//! chain of *detached* ones in the same arena: see [`detach`].
//!
//! Memory: 12 bytes per entry of a u64 list (20 with ReadyKey) in full nodes, and about 1.4 per
//! entry for the nodes themselves and links. No two neighbours below a link node are both small. So
//! arrays take about twice what full ones would, however entries were removed. A segment of nodes
//! stays until its last node, live or detached, is gone.

mod bulk;
mod check;
mod detach;
mod due;
mod key;
mod level;
mod node;
mod prefetch;
mod relocate;
mod shape;

use crate::storage::lazy::Unused;
use crate::storage::prefetch::prefetch_all;
pub use key::{Key, ReadyKey, TurnKey};
use key::{Link, Step, Tie, NIL, NODE};
use level::Level;
use node::{rank, Node};
pub use prefetch::InsertHint;
use std::mem;

/// Neighbours that together hold at most this many items become one node, which then has room to grow.
const MERGED: usize = NODE * 3 / 4;
/// More levels than u32::MAX entries can need, even with the 17 links per node that are the worst
/// average.
const MAX_UPPERS: usize = 12;
/// One step per upper level, the lowest first.
type Path = [Step; MAX_UPPERS];
const NOWHERE: Path = [Step { node: NIL, at: 0 }; MAX_UPPERS];

/// Entries (key, handle) in order. Under one key, a handle is there at most once.
#[derive(Clone)]
pub struct Skiplist<K: Key> {
    bottom: Level<K, u32>,
    uppers: Vec<Level<K, Link<K::Floor>>>,
    /// How many of the upper levels lead to entries of the list; the others have only detached nodes.
    height: u16,
    /// Counts changes of the list, modulo 2^16. It shows whether anything has changed, unless there
    /// were tens of thousands of changes.
    changes: u16,
    len: u32,
}

impl<K: Key> Default for Skiplist<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl Unused for Skiplist<u64> {
    const UNUSED: &'static Self = &Skiplist::new();
}

impl<K: Key> Skiplist<K> {
    pub const fn new() -> Self {
        Skiplist {
            bottom: Level::new(),
            uppers: Vec::new(),
            height: 0,
            changes: 0,
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        let node = self.bottom.get(self.bottom.first)?;
        Some((*node.keys().first()?, *node.values().first()?))
    }

    #[inline]
    pub fn last(&self) -> Option<(K, u32)> {
        let node = self.bottom.get(self.bottom.last)?;
        Some((*node.keys().last()?, *node.values().last()?))
    }

    /// Adds an entry that is not in the list. `tie` must know every handle of the list and the new one.
    #[inline(never)]
    pub fn insert(&mut self, key: K, handle: u32, tie: impl Fn(u32) -> u64) {
        if !self.put_last(key, handle, &tie) {
            self.insert_between(key, handle, tie);
        }
    }

    /// As [`Skiplist::insert`], with a hint from [`Skiplist::insert_hint`], and for keys that seldom rise.
    #[inline]
    pub fn insert_by(
        &mut self,
        hint: Option<&InsertHint<K>>,
        key: K,
        handle: u32,
        tie: impl Fn(u32) -> u64,
    ) {
        if let Some(hint) = hint.filter(|hint| self.is_known(hint, key)) {
            let at = self.bottom[hint.leaf].place_of(key, handle, &tie);
            return self.insert_at(&hint.path, (hint.leaf, at), key, handle, tie);
        }
        let last = self.bottom.get(self.bottom.last);
        match last.is_none_or(|last| last.is_before(key, handle, &tie)) {
            true => self.insert(key, handle, tie),
            false => self.insert_between(key, handle, tie),
        }
    }

    /// Adds an entry to a list that is not empty.
    #[inline]
    fn insert_between(&mut self, key: K, handle: u32, tie: impl Fn(u32) -> u64) {
        let (path, leaf) = self.path_to(|n| n.link_to(key, handle, &tie));
        let node = &self.bottom[leaf];
        if self.is_large() {
            prefetch_all(node.keys());
        }
        let at = node.place_of(key, handle, &tie);
        self.insert_at(&path, (leaf, at), key, handle, tie);
    }

    /// Adds an entry that comes after all others: the usual case when keys rise, which needs no search. False, and nothing
    /// changed, if it comes before another.
    #[inline(always)]
    fn put_last(&mut self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> bool {
        let leaf = self.bottom.last;
        let Some(last) = self.bottom.get_mut(leaf) else {
            self.bottom.add_after(NIL, Node::of(key, handle));
            (self.changes, self.len) = (self.changes.wrapping_add(1), 1);
            return true;
        };
        if !last.is_before(key, handle, &tie) {
            return false;
        }
        if !last.append_one(key, handle) {
            let at = last.len();
            self.insert_at(&self.path_to_end(), (leaf, at), key, handle, tie);
            return true;
        }
        self.changes = self.changes.wrapping_add(1);
        self.len += 1;
        let height = self.height();
        for level in &mut self.uppers[..height] {
            let last = level.last;
            let links = &mut level[last].values;
            if let Some(link) = links.last_mut() {
                link.span += 1;
                link.floor = link.floor.min(key.floor());
            }
        }
        true
    }

    #[inline]
    fn insert_at(
        &mut self,
        path: &Path,
        (leaf, at): (u32, usize),
        key: K,
        handle: u32,
        tie: impl Fn(u32) -> u64,
    ) {
        self.changes = self.changes.wrapping_add(1);
        self.lengthen(path, 1, key.floor());
        if let Some(right) = self.bottom.insert(leaf, at, key, handle) {
            self.add_links(path, leaf, right, tie);
        }
    }

    /// Removes an entry; false, and nothing changed, if it is not there. `tie` must know the handle.
    pub fn remove(&mut self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> bool {
        // The usual case: jobs that are delivered, or end, come first.
        if self.first() == Some((key, handle)) {
            return self.pop_first().is_some();
        }
        let Some((path, leaf, at)) = self.find(key, handle, tie) else {
            return false;
        };
        self.changes = self.changes.wrapping_add(1);
        self.bottom[leaf].remove(at);
        self.rebalance(&path, leaf, 1, key.floor());
        true
    }

    /// The node of an entry, the way there, and its place in it.
    #[inline(always)]
    fn find(&self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> Option<(Path, u32, usize)> {
        if self.is_empty() {
            return None;
        }
        let (path, leaf) = self.path_to(|n| n.link_to(key, handle, &tie));
        let at = self.bottom[leaf].find(key, handle)?;
        Some((path, leaf, at))
    }

    pub fn contains(&self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> bool {
        let (_, leaf) = self.path_to(|n| n.link_to(key, handle, &tie));
        let node = self.bottom.get(leaf);
        node.is_some_and(|node| node.find(key, handle).is_some())
    }

    #[inline]
    pub fn pop_first(&mut self) -> Option<(K, u32)> {
        self.changes = self.changes.wrapping_add(1);
        if self.len == 1 && !self.has_detached() {
            let only = self.first();
            self.begin_anew();
            return only;
        }
        let leaf = self.bottom.first;
        let node = self.bottom.get_mut(leaf)?;
        let entry = node.pop_first();
        let floor = entry.0.floor();
        if node.len() == 0 {
            self.rebalance(&self.path_to_start(), leaf, 1, floor);
            return Some(entry);
        }
        if self.height == 0 {
            // In a higher list, the node will soon be empty and removed.
            node.shrink();
        }
        self.len -= 1;
        for depth in 0..self.height() {
            let node = self.uppers[depth].first;
            self.shorten(depth, Step { node, at: 0 }, 1, floor);
        }
        Some(entry)
    }

    /// How many entries have a key below the bound, or equal to it if `inclusive`.
    pub fn count_below(&self, bound: K, inclusive: bool) -> usize {
        let is_below = |k: &K| *k < bound || (inclusive && *k == bound);
        let mut passed = 0;
        let mut node = self.top();
        for level in self.levels().iter().rev() {
            let at = rank(&level[node].keys()[1..], is_below);
            let links = level[node].values();
            passed += links[..at].iter().map(|l| l.span as usize).sum::<usize>();
            node = links[at].child;
        }
        passed
            + self
                .bottom
                .get(node)
                .map_or(0, |leaf| rank(leaf.keys(), is_below))
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, u32)> + '_ {
        self.bottom
            .nodes_from(self.bottom.first)
            .flat_map(Node::items)
    }

    /// The entries whose key is not less than `key`.
    pub fn iter_from(&self, key: K) -> impl Iterator<Item = (K, u32)> + '_ {
        let (_, leaf) = self.path_to(|n| rank(&n.keys()[1..], |k| *k < key));
        let skipped = self
            .bottom
            .get(leaf)
            .map_or(0, |n| rank(n.keys(), |k| *k < key));
        self.bottom
            .nodes_from(leaf)
            .flat_map(Node::items)
            .skip(skipped)
    }

    /// Frees about `count` entries of a discarded list; false once all are freed.
    pub fn free_some(&mut self, count: usize) -> bool {
        let nodes = count.div_ceil(NODE);
        self.bottom.free_some(nodes) || self.uppers.iter_mut().any(|level| level.free_some(nodes))
    }

    /// The bytes of heap requested. Visits every node.
    pub fn memory_bytes(&self) -> usize {
        let uppers: usize = self.uppers.iter().map(Level::memory_bytes).sum();
        self.bottom.memory_bytes()
            + uppers
            + self.uppers.capacity() * mem::size_of::<Level<K, Link<K::Floor>>>()
    }
}

#[cfg(test)]
mod tests;

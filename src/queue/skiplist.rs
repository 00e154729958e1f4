//! The ordered schedule: a skiplist of fat nodes.
//!
//! A list holds (key, handle) entries in the order of (key, tie), where the tie is a sequence number that
//! the caller keeps and is asked for only where keys are equal (and the handle, where those are equal too). Every level is a linked list of nodes of up
//! to 64 sorted items, keys and values in arrays of their own so that a search reads nothing but keys. The
//! items of the bottom level are the entries; those of a level above are links, one to each node of the
//! level below:
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
//! A *separator* is a (key, tie) that no entry below the link is less than and every entry before it is. It
//! need not be an entry of the list, so removals leave it alone. Its tie is 0 unless equal keys lie on both
//! sides: then no tie is needed to find the way, and none is asked for. The first link of a node has the
//! separator of the link that leads to the node; the first of a level is never compared.
//!
//! A *span* is the number of entries below a link, a *floor* the least due among them.
//!
//! A classic skiplist throws a die for the height of each node. This one counts instead: a full node splits
//! and its new neighbour gets a link above; two small ones merge and a link goes (a deterministic skiplist,
//! after Munro, Papadakis and Sedgewick). So links lie side by side as the entries do, and a search over a
//! million entries reads four nodes, where dice with p = 1/4 have it follow some thirty links from cache miss
//! to cache miss. Nor is there an unlucky list: the bounds hold always, not on average.
//!
//! Memory: 12 bytes per entry of a u64 list (20 with ReadyKey) in full nodes, and about 1.4 per entry for the
//! nodes themselves and links. No two neighbours below a link node are both small, so however entries were
//! removed, arrays take about twice what full ones would. A segment of nodes stays until its last node goes.

mod check;
mod fetch;
mod level;
mod relocate;

pub use fetch::Leaf;
use level::{rank, Level, Node};
use std::array;
use std::iter;
use std::mem;

/// Items in a full node.
const NODE: usize = 64;
/// Neighbours that hold no more than this together become one node, which then has room to grow.
const MERGED: usize = NODE * 3 / 4;
/// Inserts, each just behind the one before, that are taken for a sequence that will go on.
const RUN: u8 = 8;
/// Nodes in a full segment: some 32 KiB, the most that growing ever copies at once.
const SEGMENT: usize = 512;
/// More levels than u32::MAX entries can need, even at the 17 links that nodes have at worst, on average.
const MAX_UPPERS: usize = 12;
const NIL: u32 = u32::MAX;

/// What a list is sorted by.
pub trait Key: Copy + Ord {
    /// What links know of the dues below them; nothing where the order is that of the dues anyway.
    type Floor: Copy + Ord;
    fn floor(self) -> Self::Floor;
    /// Whether floors can only rise from one key to a later one.
    fn rises_to(self, later: Self) -> bool;
}

/// A bare instant.
impl Key for u64 {
    type Floor = ();
    fn floor(self) {}
    fn rises_to(self, _: u64) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyKey {
    pub priority: i32,
    pub due: u64,
}

impl Key for ReadyKey {
    type Floor = u64;
    fn floor(self) -> u64 {
        self.due
    }
    fn rises_to(self, later: ReadyKey) -> bool {
        self.priority == later.priority
    }
}

#[derive(Clone, Copy)]
struct Link<F> {
    tie: Tie,
    floor: F,
    child: u32,
    span: u32,
}

/// Where a search went on one level: link number `at` of `node`.
#[derive(Clone, Copy)]
struct Step {
    node: u32,
    at: u32,
}

/// One step per upper level, the lowest first.
type Path = [Step; MAX_UPPERS];
const NOWHERE: Path = [Step { node: NIL, at: 0 }; MAX_UPPERS];

/// Orders entries of equal keys: the caller's sequence number, and the handle, lest numbers that are equal
/// after all (in a forged dump) make two entries one.
type Tie = (u64, u32);

/// An ordered multiset of (key, handle).
#[derive(Clone)]
pub struct Skiplist<K: Key> {
    bottom: Level<K, u32>,
    uppers: Vec<Level<K, Link<K::Floor>>>,
    len: usize,
}

impl<K: Key> Default for Skiplist<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> Skiplist<K> {
    pub const fn new() -> Self {
        Skiplist {
            bottom: Level::new(),
            uppers: Vec::new(),
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn first(&self) -> Option<(K, u32)> {
        let node = self.bottom.get(self.bottom.first)?;
        Some((*node.keys().first()?, *node.values().first()?))
    }

    pub fn last(&self) -> Option<(K, u32)> {
        let node = self.bottom.get(self.bottom.last)?;
        Some((*node.keys().last()?, *node.values().last()?))
    }

    /// Adds an entry. `tie` must know every handle of the list and the new one.
    pub fn insert(&mut self, key: K, handle: u32, tie: impl Fn(u32) -> u64) {
        if self.is_empty() {
            self.bottom.add_after(NIL, Node::new());
        }
        let is_last = self
            .last()
            .is_none_or(|(k, h)| k < key || (k == key && (tie(h), h) < (tie(handle), handle)));
        let (path, leaf) = if is_last {
            self.path_to_end()
        } else {
            self.path_to(|n| n.link_to(key, handle, &tie))
        };
        let at = if is_last {
            self.bottom[leaf].len()
        } else {
            self.bottom[leaf].place_of(key, handle, &tie)
        };
        self.lengthen(&path, 1, key.floor());
        if let Some(right) = self.bottom.insert(leaf, at, key, handle) {
            self.add_links(&path, leaf, right, &tie);
        }
    }

    /// Takes an entry out; false, and nothing changed, where it is not there. `tie` must know the handle.
    pub fn remove(&mut self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> bool {
        // The usual case: what is delivered, or ends, comes first.
        if self.first() == Some((key, handle)) {
            return self.pop_first().is_some();
        }
        if self.is_empty() {
            return false;
        }
        let (path, leaf) = self.path_to(|n| n.link_to(key, handle, &tie));
        let node = &mut self.bottom[leaf];
        let Some(at) = node.find(key, handle) else {
            return false;
        };
        node.remove(at);
        self.settle(&path, leaf, 1, key.floor());
        true
    }

    pub fn pop_first(&mut self) -> Option<(K, u32)> {
        let leaf = self.bottom.first;
        let node = self.bottom.get_mut(leaf)?;
        let entry = node.pop_first();
        let floor = entry.0.floor();
        if node.len() == 0 {
            self.settle(&self.path_to_start(), leaf, 1, floor);
            return Some(entry);
        }
        if self.uppers.is_empty() {
            // Elsewhere the node is soon gone.
            node.shrink();
        }
        self.len -= 1;
        for depth in 0..self.uppers.len() {
            self.shorten(
                depth,
                Step {
                    node: self.uppers[depth].first,
                    at: 0,
                },
                1,
                floor,
            );
        }
        Some(entry)
    }

    /// How many entries have a key below the bound, or equal to it if `inclusive`.
    pub fn count_below(&self, bound: K, inclusive: bool) -> usize {
        let is_below = |k: &K| *k < bound || (inclusive && *k == bound);
        let mut passed = 0;
        let mut node = self.top();
        for level in self.uppers.iter().rev() {
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

    /// Detaches all entries below the bound as a list of their own; whole nodes move, not entries.
    pub fn split_off_below(&mut self, bound: K, inclusive: bool, tie: impl Fn(u32) -> u64) -> Self {
        let is_below = |k: &K| *k < bound || (inclusive && *k == bound);
        let mut detached = Self::new();
        let mut rest = 0;
        while let Some(node) = self.bottom.get_mut(self.bottom.first) {
            rest = rank(node.keys(), is_below);
            if rest < node.len() {
                break;
            }
            let node = node.split_off(0);
            let (count, floor) = (node.len(), node.floor());
            self.settle(&self.path_to_start(), self.bottom.first, count, floor);
            detached.push_node(node, &tie);
        }
        for (key, handle) in iter::repeat_with(|| self.pop_first()).take(rest).flatten() {
            detached.insert(key, handle, &tie);
        }
        detached
    }

    /// Frees about `count` entries of a list that is not used any more; false at the end.
    pub fn shed(&mut self, count: usize) -> bool {
        let nodes = count.div_ceil(NODE);
        self.bottom.shed(nodes) || self.uppers.iter_mut().any(|level| level.shed(nodes))
    }

    /// The bytes of heap asked for. Visits every node.
    pub fn memory_bytes(&self) -> usize {
        let uppers: usize = self.uppers.iter().map(Level::memory_bytes).sum();
        self.bottom.memory_bytes()
            + uppers
            + self.uppers.capacity() * mem::size_of::<Level<K, Link<K::Floor>>>()
    }
}

/// The way through the levels, and what changes along it.
impl<K: Key> Skiplist<K> {
    /// The first node of the topmost level, which has no other unless it is the bottom of an empty list.
    fn top(&self) -> u32 {
        self.uppers
            .last()
            .map_or(self.bottom.first, |level| level.first)
    }

    fn path_to(&self, link: impl Fn(&Node<K, Link<K::Floor>>) -> usize) -> (Path, u32) {
        let mut path = NOWHERE;
        let mut node = self.top();
        for (depth, level) in self.uppers.iter().enumerate().rev() {
            let at = link(&level[node]);
            path[depth] = Step {
                node,
                at: at as u32,
            };
            node = level[node].values()[at].child;
        }
        (path, node)
    }

    fn path_to_start(&self) -> Path {
        let mut path = NOWHERE;
        for (step, level) in path.iter_mut().zip(&self.uppers) {
            *step = Step {
                node: level.first,
                at: 0,
            };
        }
        path
    }

    fn path_to_end(&self) -> (Path, u32) {
        let mut path = NOWHERE;
        for (step, level) in path.iter_mut().zip(&self.uppers) {
            *step = Step {
                node: level.last,
                at: level[level.last].len() as u32 - 1,
            };
        }
        (path, self.bottom.last)
    }

    #[inline]
    fn link_mut(&mut self, depth: usize, step: Step) -> &mut Link<K::Floor> {
        &mut self.uppers[depth][step.node].values_mut()[step.at as usize]
    }

    /// Span and floor of a link at `depth` that leads to `child`.
    fn measure(&self, depth: usize, child: u32) -> (u32, K::Floor) {
        let span = match depth.checked_sub(1) {
            None => self.bottom[child].len() as u32,
            Some(below) => self.uppers[below][child]
                .values()
                .iter()
                .map(|l| l.span)
                .sum(),
        };
        (span, self.floor_of(depth, child))
    }

    fn floor_of(&self, depth: usize, child: u32) -> K::Floor {
        if depth == 0 {
            self.bottom[child].floor()
        } else {
            self.uppers[depth - 1][child].floor()
        }
    }

    fn lengthen(&mut self, path: &Path, count: usize, floor: K::Floor) {
        self.len += count;
        for (level, step) in self.uppers.iter_mut().zip(path) {
            let link = &mut level[step.node].values_mut()[step.at as usize];
            link.span += count as u32;
            link.floor = link.floor.min(floor);
        }
    }

    /// `count` entries have gone from below a link, `floor` the least due of them.
    fn shorten(&mut self, depth: usize, step: Step, count: usize, floor: K::Floor) {
        let link = self.link_mut(depth, step);
        link.span -= count as u32;
        if link.floor == floor && mem::size_of::<K::Floor>() > 0 {
            let child = link.child;
            self.link_mut(depth, step).floor = self.floor_of(depth, child);
        }
    }

    /// Leads links to leaf `right`, new behind `leaf`; where that overfills a node, to the node's new neighbour too.
    fn add_links(&mut self, path: &Path, leaf: u32, right: u32, tie: impl Fn(u32) -> u64) {
        let (before, behind) = (&self.bottom[leaf], &self.bottom[right]);
        let mut key = behind.keys()[0];
        let mut separator = if before.keys().last() == Some(&key) {
            let first = behind.values()[0];
            (tie(first), first)
        } else {
            (0, 0)
        };
        let (mut left, mut right) = (leaf, right);
        for (depth, step) in path.iter().enumerate() {
            let step = if depth < self.uppers.len() {
                *step
            } else {
                self.add_level(left, key)
            };
            let (span, floor) = self.measure(depth, left);
            let link = self.link_mut(depth, step);
            (link.span, link.floor) = (span, floor);
            let (span, floor) = self.measure(depth, right);
            let link = Link {
                tie: separator,
                floor,
                child: right,
                span,
            };
            let level = &mut self.uppers[depth];
            let Some(node) = level.insert(step.node, step.at as usize + 1, key, link) else {
                return;
            };
            (left, right) = (step.node, node);
            (key, separator) = (level[node].keys()[0], level[node].values()[0].tie);
        }
    }

    /// Puts a level on top, with a single link to what was the top. Its key is never compared.
    fn add_level(&mut self, child: u32, key: K) -> Step {
        let (span, floor) = self.measure(self.uppers.len(), child);
        let mut level = Level::new();
        let mut top = Node::new();
        top.insert(
            0,
            key,
            Link {
                tie: (0, 0),
                floor,
                child,
                span,
            },
        );
        let node = level.add_after(NIL, top);
        self.uppers.push(level);
        Step { node, at: 0 }
    }

    /// `count` entries have gone from `leaf`, `floor` the least due of them: sets the path right again,
    /// drops what is empty, merges what has become small, takes off levels that skip nothing.
    fn settle(&mut self, path: &Path, leaf: u32, count: usize, floor: K::Floor) {
        self.len -= count;
        if self.len == 0 {
            *self = Self::new();
            return;
        }
        let mut child = leaf;
        for (depth, step) in path.iter().enumerate().take(self.uppers.len()) {
            let items = self.items_in(depth, child);
            if items == 0 {
                self.drop_node(depth, child);
                self.uppers[depth][step.node].remove_link(step.at as usize);
            } else {
                self.shorten(depth, *step, count, floor);
                if items <= NODE / 2 {
                    self.merge_around(depth, *step, items);
                }
            }
            child = step.node;
        }
        while self
            .uppers
            .last()
            .is_some_and(|top| top[top.first].len() == 1)
        {
            self.uppers.pop();
        }
        if self.uppers.is_empty() {
            self.uppers = Vec::new();
        }
    }

    /// How many items the node below a link at `depth` has.
    fn items_in(&self, depth: usize, child: u32) -> usize {
        if depth == 0 {
            self.bottom[child].len()
        } else {
            self.uppers[depth - 1][child].len()
        }
    }

    fn drop_node(&mut self, depth: usize, child: u32) {
        if depth == 0 {
            self.bottom.take(child);
        } else {
            self.uppers[depth - 1].take(child);
        }
    }

    /// Merges the node below a link with the one behind or before it, if they fit and have the same parent.
    fn merge_around(&mut self, depth: usize, step: Step, items: usize) {
        let at = step.at as usize;
        let links = self.uppers[depth][step.node].values();
        let fits = |l: &&Link<K::Floor>| {
            // Of a leaf the span tells the size, without a visit.
            let more = if depth == 0 {
                l.span as usize
            } else {
                self.items_in(depth, l.child)
            };
            items + more <= MERGED
        };
        let left = if links.get(at + 1).filter(fits).is_some() {
            at
        } else if at > 0 && links.get(at - 1).filter(fits).is_some() {
            at - 1
        } else {
            return;
        };
        let (into, from) = (links[left], links[left + 1]);
        if depth == 0 {
            self.bottom.merge(into.child, from.child);
        } else {
            self.uppers[depth - 1].merge(into.child, from.child);
        }
        let parent = &mut self.uppers[depth][step.node];
        parent.remove_link(left + 1);
        let link = &mut parent.values_mut()[left];
        (link.span, link.floor) = (into.span + from.span, into.floor.min(from.floor));
    }

    /// Adds a node whose entries all come behind those of the list.
    fn push_node(&mut self, node: Node<K, u32>, tie: impl Fn(u32) -> u64) {
        let (count, floor) = (node.len(), node.floor());
        if self.is_empty() {
            self.bottom.add_after(NIL, node);
            self.len = count;
            return;
        }
        let (path, leaf) = self.path_to_end();
        let right = self.bottom.add_after(leaf, node);
        self.lengthen(&path, count, floor);
        self.add_links(&path, leaf, right, tie);
    }
}

impl Skiplist<ReadyKey> {
    /// The first entry, in the order of the list, that is due.
    pub fn first_due(&self, now: u64) -> Option<(ReadyKey, u32)> {
        self.iter_due(now).next()
    }

    /// All entries that are due, in the order of the list; stretches where none is are skipped.
    pub fn iter_due(&self, now: u64) -> impl Iterator<Item = (ReadyKey, u32)> + '_ {
        self.nodes_due(now)
            .flat_map(Node::items)
            .filter(move |(key, _)| key.due <= now)
    }

    fn nodes_due(&self, now: u64) -> impl Iterator<Item = &Node<ReadyKey, u32>> + '_ {
        let height = self.uppers.len();
        let mut untried: [_; MAX_UPPERS] = array::from_fn(|_| [].iter());
        let mut only = self.bottom.get(self.bottom.first).filter(|_| height == 0);
        if let Some(top) = self.uppers.last() {
            untried[height - 1] = top[top.first].values().iter();
        }
        let mut depth = height.saturating_sub(1);
        iter::from_fn(move || loop {
            match untried[depth].find(|link: &&Link<u64>| link.floor <= now) {
                Some(link) if depth == 0 => return Some(&self.bottom[link.child]),
                Some(link) => {
                    depth -= 1;
                    untried[depth] = self.uppers[depth][link.child].values().iter();
                }
                None if depth + 1 < height => depth += 1,
                None => return only.take(),
            }
        })
    }
}

#[cfg(test)]
mod tests;

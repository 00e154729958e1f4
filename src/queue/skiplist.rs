//! The ordered schedule: a skiplist of fat nodes.
//!
//! A list holds (key, handle) entries in the order of (key, tie), where the tie is a sequence number that
//! the caller keeps and is asked for only where keys are equal. Every level is a linked list of nodes of up
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

use std::array;
use std::iter;
use std::mem;
use std::ops::{Index, IndexMut};

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
    tie: u64,
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

/// An ordered multiset of (key, handle), unique by (key, tie).
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
            .is_none_or(|(k, h)| k < key || (k == key && tie(h) < tie(handle)));
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

    /// The bytes of heap asked for. Visits every node.
    /// Frees about `count` entries of a list that is not used any more; false at the end.
    pub fn shed(&mut self, count: usize) -> bool {
        let nodes = count.div_ceil(NODE);
        self.bottom.shed(nodes) || self.uppers.iter_mut().any(|level| level.shed(nodes))
    }

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
            tie(behind.values()[0])
        } else {
            0
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
                tie: 0,
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

    pub fn least_due(&self) -> Option<u64> {
        (self.len > 0).then(|| self.floor_of(self.uppers.len(), self.top()))
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

/// How many keys, all of them at the front, are below. A first look at the last of each eight asks for all
/// cache lines of a node at once, where bisection would wait for one after the other.
fn rank<K>(keys: &[K], is_below: impl Fn(&K) -> bool) -> usize {
    let passed = 8 * keys
        .chunks_exact(8)
        .filter(|eight| is_below(&eight[7]))
        .count();
    let rest = &keys[passed..];
    passed
        + rest[..rest.len().min(8)]
            .iter()
            .filter(|k| is_below(k))
            .count()
}

/// A node of any level.
#[derive(Clone)]
struct Node<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
    /// Items before it have been popped. pop_first would move all others forward otherwise.
    start: u8,
    /// Behind the item inserted last, and how many in a row were inserted there.
    turn: u8,
    in_turn: u8,
    prev: u32,
    /// In a free node, the next free one of the segment.
    next: u32,
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
    fn new() -> Self {
        Self::default()
    }

    fn keys(&self) -> &[K] {
        &self.keys[self.start as usize..]
    }

    fn values(&self) -> &[V] {
        &self.values[self.start as usize..]
    }

    fn values_mut(&mut self) -> &mut [V] {
        &mut self.values[self.start as usize..]
    }

    fn len(&self) -> usize {
        self.keys.len() - self.start as usize
    }

    fn items(&self) -> impl Iterator<Item = (K, V)> + '_ {
        self.keys()
            .iter()
            .copied()
            .zip(self.values().iter().copied())
    }

    /// The least of the items' floors. Where these rise, the second stands for all that follow but the last:
    /// the first link of a level may lead to entries before its key, the last of a node beyond the run.
    fn least(&self, floor: impl Fn(usize) -> K::Floor) -> K::Floor {
        let (keys, last) = (self.keys(), self.len() - 1);
        let second = last.min(1);
        let end = if keys[second].rises_to(keys[last]) {
            second
        } else {
            last
        };
        (0..=end).fold(floor(last), |least, at| least.min(floor(at)))
    }

    fn insert(&mut self, at: usize, key: K, value: V) {
        debug_assert!(self.len() < NODE);
        self.in_turn = if at == self.turn as usize {
            self.in_turn.saturating_add(1)
        } else {
            0
        };
        self.turn = at as u8 + 1;
        if self.keys.len() == self.keys.capacity() {
            self.make_room();
        }
        self.keys.insert(self.start as usize + at, key);
        self.values.insert(self.start as usize + at, value);
    }

    #[cold]
    fn make_room(&mut self) {
        self.close_start();
        let len = self.len();
        if len == self.keys.capacity() {
            let more = (2 * len).clamp(4, NODE) - len;
            self.keys.reserve_exact(more);
            self.values.reserve_exact(more);
        }
    }

    fn close_start(&mut self) {
        self.keys.drain(..self.start as usize);
        self.values.drain(..self.start as usize);
        self.start = 0;
    }

    fn remove(&mut self, at: usize) {
        self.keys.remove(self.start as usize + at);
        self.values.remove(self.start as usize + at);
        self.shrink();
    }

    fn shrink(&mut self) {
        let capacity = self.keys.capacity();
        if capacity > 4 && self.len() <= capacity * 3 / 8 {
            self.close_start();
            self.keys.shrink_to(capacity / 2);
            self.values.shrink_to(capacity / 2);
        }
    }

    fn split_off(&mut self, at: usize) -> Self {
        self.close_start();
        Node {
            keys: self.keys.split_off(at),
            values: self.values.split_off(at),
            ..Node::default()
        }
    }

    fn append(&mut self, other: &Self) {
        self.close_start();
        self.keys.reserve_exact(other.len());
        self.values.reserve_exact(other.len());
        self.keys.extend_from_slice(other.keys());
        self.values.extend_from_slice(other.values());
    }
}

impl<K: Key> Node<K, u32> {
    fn floor(&self) -> K::Floor {
        self.least(|at| self.keys()[at].floor())
    }

    /// Where an entry that is not there belongs.
    fn place_of(&self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> usize {
        let at = rank(self.keys(), |k| *k < key);
        let equals = rank(&self.keys()[at..], |k| *k == key);
        if equals == 0 {
            return at;
        }
        let own = tie(handle);
        at + self.values()[at..at + equals].partition_point(|h| tie(*h) < own)
    }

    fn find(&self, key: K, handle: u32) -> Option<usize> {
        // Also has the handles on their way from memory while the keys are searched.
        if !self.values().contains(&handle) {
            return None;
        }
        let at = rank(self.keys(), |k| *k < key);
        let equals = rank(&self.keys()[at..], |k| *k == key);
        self.values()[at..at + equals]
            .iter()
            .position(|h| *h == handle)
            .map(|n| at + n)
    }

    fn pop_first(&mut self) -> (K, u32) {
        let start = self.start as usize;
        self.start += 1;
        (self.keys[start], self.values[start])
    }
}

impl<K: Key> Node<K, Link<K::Floor>> {
    fn floor(&self) -> K::Floor {
        self.least(|at| self.values()[at].floor)
    }

    /// The last link whose separator is not behind (key, tie of handle); the first link where all are.
    fn link_to(&self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> usize {
        let keys = &self.keys()[1..];
        let at = rank(keys, |k| *k < key);
        if keys.get(at) != Some(&key) {
            return at;
        }
        let equals = rank(&keys[at..], |k| *k == key);
        at + self.values()[at + 1..][..equals]
            .partition_point(|l| l.tie == 0 || l.tie <= tie(handle))
    }

    /// The link that becomes the first takes over the separator, which is that of the node.
    fn remove_link(&mut self, at: usize) {
        let start = self.start as usize;
        if at == 0 && self.len() > 1 {
            self.keys[start + 1] = self.keys[start];
            self.values[start + 1].tie = self.values[start].tie;
        }
        self.remove(at);
    }
}

/// The nodes of a level, in segments; which node comes after which is up to their links.
#[derive(Clone)]
struct Level<K, V> {
    segments: Vec<Segment<K, V>>,
    /// All segments before it are full. Filling the lowest first lets the highest run empty.
    roomy: u32,
    first: u32,
    last: u32,
}

#[derive(Clone)]
struct Segment<K, V> {
    nodes: Vec<Node<K, V>>,
    free: u32,
    live: u32,
}

impl<K, V> Index<u32> for Level<K, V> {
    type Output = Node<K, V>;
    fn index(&self, id: u32) -> &Node<K, V> {
        &self.segments[id as usize / SEGMENT].nodes[id as usize % SEGMENT]
    }
}

impl<K, V> IndexMut<u32> for Level<K, V> {
    fn index_mut(&mut self, id: u32) -> &mut Node<K, V> {
        &mut self.segments[id as usize / SEGMENT].nodes[id as usize % SEGMENT]
    }
}

impl<K, V> Level<K, V> {
    /// Frees up to `count` nodes; false where there are none.
    fn shed(&mut self, count: usize) -> bool {
        let Some(segment) = self.segments.last_mut() else {
            return false;
        };
        let kept = segment.nodes.len().saturating_sub(count.max(1));
        segment.nodes.truncate(kept);
        if segment.nodes.is_empty() {
            self.segments.pop();
        }
        true
    }
}

impl<K: Key, V: Copy> Level<K, V> {
    const fn new() -> Self {
        Level {
            segments: Vec::new(),
            roomy: 0,
            first: NIL,
            last: NIL,
        }
    }

    fn get(&self, id: u32) -> Option<&Node<K, V>> {
        (id != NIL).then(|| &self[id])
    }

    fn get_mut(&mut self, id: u32) -> Option<&mut Node<K, V>> {
        (id != NIL).then(|| &mut self[id])
    }

    fn nodes_from(&self, id: u32) -> impl Iterator<Item = &Node<K, V>> + '_ {
        iter::successors(self.get(id), |node| self.get(node.next))
    }

    /// Puts an item into a node. A full node is split, and the new node behind it returned: in halves; or
    /// where the item comes last or items have been coming in turn, behind that, so that rising dues fill
    /// nodes, be it at the end of the list or at the end of a priority.
    fn insert(&mut self, id: u32, at: usize, key: K, value: V) -> Option<u32> {
        let node = &mut self[id];
        if node.len() < NODE {
            node.insert(at, key, value);
            return None;
        }
        let is_run = at == node.turn as usize && node.in_turn >= RUN;
        let cut = if at == NODE || is_run { at } else { NODE / 2 };
        let mut right = node.split_off(cut);
        if at <= cut && cut < NODE {
            node.insert(at, key, value);
        } else {
            right.insert(at - cut, key, value);
        }
        Some(self.add_after(id, right))
    }

    fn merge(&mut self, into: u32, from: u32) {
        let from = self.take(from);
        self[into].append(&from);
    }

    fn add_after(&mut self, prev: u32, mut node: Node<K, V>) -> u32 {
        let next = self.get(prev).map_or(self.first, |n| n.next);
        (node.prev, node.next) = (prev, next);
        let id = self.store(node);
        self.join(prev, id);
        self.join(id, next);
        id
    }

    fn join(&mut self, left: u32, right: u32) {
        match self.get_mut(left) {
            Some(node) => node.next = right,
            None => self.first = right,
        }
        match self.get_mut(right) {
            Some(node) => node.prev = left,
            None => self.last = left,
        }
    }

    fn store(&mut self, node: Node<K, V>) -> u32 {
        let is_full = |s: &Segment<K, V>| s.live as usize == SEGMENT;
        while self.segments.get(self.roomy as usize).is_some_and(is_full) {
            self.roomy += 1;
        }
        let number = self.roomy as usize;
        if number == self.segments.len() {
            // A list of a few entries has no use for the room that Vec takes in advance.
            if number == 0 {
                self.segments.reserve_exact(1);
            }
            self.segments.push(Segment {
                nodes: Vec::new(),
                free: NIL,
                live: 0,
            });
        }
        let segment = &mut self.segments[number];
        segment.live += 1;
        (number * SEGMENT) as u32 + segment.store(node)
    }

    /// Takes a node out of the level.
    fn take(&mut self, id: u32) -> Node<K, V> {
        let node = mem::take(&mut self[id]);
        self.join(node.prev, node.next);
        let number = id as usize / SEGMENT;
        self.roomy = self.roomy.min(number as u32);
        let segment = &mut self.segments[number];
        segment.live -= 1;
        segment.nodes[id as usize % SEGMENT].next =
            mem::replace(&mut segment.free, id % SEGMENT as u32);
        if segment.live == 0 {
            (segment.nodes, segment.free) = (Vec::new(), NIL);
        }
        while self.segments.last().is_some_and(|s| s.live == 0) {
            self.segments.pop();
        }
        node
    }

    fn memory_bytes(&self) -> usize {
        let item = mem::size_of::<K>() + mem::size_of::<V>();
        let items: usize = self
            .nodes_from(self.first)
            .map(|n| n.keys.capacity() * item)
            .sum();
        let nodes: usize = self.segments.iter().map(|s| s.nodes.capacity()).sum();
        items
            + nodes * mem::size_of::<Node<K, V>>()
            + self.segments.capacity() * mem::size_of::<Segment<K, V>>()
    }
}

impl<K, V> Segment<K, V> {
    fn store(&mut self, node: Node<K, V>) -> u32 {
        if self.free != NIL {
            let id = self.free;
            self.free = mem::replace(&mut self.nodes[id as usize], node).next;
            return id;
        }
        if self.nodes.is_empty() {
            self.nodes.reserve_exact(1);
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }
}

/// What must hold, in full.
impl<K: Key> Skiplist<K> {
    pub fn check_invariants(&self, tie: impl Fn(u32) -> u64) -> Result<(), String> {
        let order: Vec<_> = self
            .iter()
            .map(|(key, handle)| (key, tie(handle)))
            .collect();
        ensure(
            order.windows(2).all(|w| w[0] < w[1]),
            "entries out of order",
        )?;
        ensure(order.len() == self.len, "wrong length")?;
        self.bottom.check()?;
        // How many entries come before each node of the level below.
        let mut starts: Vec<usize> = self.bottom.firsts().collect();
        let mut children: Vec<u32> = self.bottom.ids().collect();
        for (depth, level) in self.uppers.iter().enumerate() {
            level.check()?;
            let links = level.nodes_from(level.first).flat_map(Node::items);
            ensure(
                links.map(|(_, l)| l.child).eq(children.iter().copied()),
                "links miss nodes",
            )?;
            let links = level.nodes_from(level.first).flat_map(Node::items);
            for ((key, link), start) in links.zip(&starts) {
                let below = &order[*start..];
                let below = &below[..below.len().min(link.span as usize)];
                ensure(
                    below.iter().map(|(k, _)| k.floor()).min() == Some(link.floor),
                    "wrong floor",
                )?;
                ensure(link.span == self.measure(depth, link.child).0, "wrong span")?;
                let separator = (key, link.tie);
                let parts =
                    *start == 0 || (order[start - 1] < separator && separator <= order[*start]);
                ensure(parts, "separator parts nothing")?;
                let below = depth.checked_sub(1).map(|d| &self.uppers[d][link.child]);
                let differs = below.is_some_and(|n| (n.keys()[0], n.values()[0].tie) != separator);
                ensure(*start == 0 || !differs, "separator differs below")?;
            }
            starts = level.firsts().map(|link| starts[link]).collect();
            children = level.ids().collect();
        }
        ensure(children.len() == 1 || self.is_empty(), "more than one top")?;
        ensure(
            self.uppers
                .last()
                .is_none_or(|top| top[top.first].len() > 1),
            "top skips nothing",
        )
    }
}

impl<K: Key, V: Copy> Level<K, V> {
    fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let there = |id: &u32| *id != NIL;
        iter::successors(Some(self.first).filter(there), move |id| {
            Some(self[*id].next).filter(there)
        })
    }

    /// How many items come before each node.
    fn firsts(&self) -> impl Iterator<Item = usize> + '_ {
        self.nodes_from(self.first).scan(0, |passed, node| {
            Some(mem::replace(passed, *passed + node.len()))
        })
    }

    fn check(&self) -> Result<(), String> {
        let mut prev = NIL;
        let mut live = vec![0; self.segments.len()];
        for id in self.ids() {
            let node = &self[id];
            ensure(
                node.prev == mem::replace(&mut prev, id),
                "nodes joined one way only",
            )?;
            ensure((1..=NODE).contains(&node.len()), "node empty or too full")?;
            ensure(
                node.keys.capacity() <= NODE && node.keys.len() == node.values.len(),
                "arrays differ",
            )?;
            live[id as usize / SEGMENT] += 1;
        }
        ensure(prev == self.last, "last node is not the last")?;
        ensure(self.segments.iter().map(|s| s.live).eq(live), "nodes lost")
    }
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(otherwise.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % n
        }
    }

    /// Handles are reused and say nothing of the order; ties only grow.
    struct Twin<K: Key> {
        list: Skiplist<K>,
        sorted: Vec<(K, u64, u32)>,
        ties: Vec<u64>,
        free: Vec<u32>,
        next_tie: u64,
    }

    impl<K: Key + std::fmt::Debug> Twin<K> {
        fn new() -> Self {
            Twin {
                list: Skiplist::new(),
                sorted: vec![],
                ties: vec![],
                free: vec![],
                next_tie: 0,
            }
        }

        /// Mostly the newest tie, at times one that was left out before.
        fn insert(&mut self, key: K, late: bool) {
            let handle = self.free.pop().unwrap_or_else(|| {
                self.ties.push(0);
                self.ties.len() as u32 - 1
            });
            self.next_tie += 2;
            let mut tie = self.next_tie;
            if late {
                tie = (tie / 2) | 1;
                while self.sorted.iter().any(|e| e.1 == tie) {
                    tie += 2;
                }
            }
            self.ties[handle as usize] = tie;
            self.list.insert(key, handle, |h| self.ties[h as usize]);
            let at = self.sorted.partition_point(|e| (e.0, e.1) < (key, tie));
            self.sorted.insert(at, (key, tie, handle));
        }

        fn remove(&mut self, at: usize) {
            let (key, _, handle) = self.sorted.remove(at);
            assert!(self.list.remove(key, handle, |h| self.ties[h as usize]));
            assert!(!self.list.remove(key, handle, |h| self.ties[h as usize]));
            self.free.push(handle);
        }

        fn pop(&mut self) {
            let expected = (!self.sorted.is_empty()).then(|| self.sorted.remove(0));
            assert_eq!(self.list.pop_first(), expected.map(|e| (e.0, e.2)));
            self.free.extend(expected.map(|e| e.2));
        }

        fn split(&mut self, bound: K, inclusive: bool) {
            let at = self
                .sorted
                .partition_point(|e| e.0 < bound || (inclusive && e.0 == bound));
            let below = self
                .list
                .split_off_below(bound, inclusive, |h| self.ties[h as usize]);
            below.check_invariants(|h| self.ties[h as usize]).unwrap();
            assert!(below.iter().eq(self.sorted.drain(..at).map(|e| (e.0, e.2))));
            self.free.extend(below.iter().map(|e| e.1));
        }

        fn check(&self, probe: K) {
            self.list
                .check_invariants(|h| self.ties[h as usize])
                .unwrap();
            let entries = || self.sorted.iter().map(|e| (e.0, e.2));
            assert!(self.list.iter().eq(entries()));
            assert_eq!(
                (self.list.first(), self.list.last()),
                (entries().next(), entries().next_back())
            );
            assert_eq!(
                self.list.count_below(probe, false),
                entries().filter(|e| e.0 < probe).count()
            );
            assert_eq!(
                self.list.count_below(probe, true),
                entries().filter(|e| e.0 <= probe).count()
            );
            assert!(self
                .list
                .iter_from(probe)
                .eq(entries().filter(|e| e.0 >= probe)));
        }
    }

    fn play<K: Key + std::fmt::Debug>(
        seed: u64,
        steps: u64,
        every: u64,
        target: u64,
        key: impl Fn(&mut Dice) -> K,
        also: impl Fn(&Twin<K>, K),
    ) {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut twin = Twin::new();
        let mut growing = true;
        for step in 0..steps {
            let len = twin.sorted.len() as u64;
            growing = if len == 0 {
                true
            } else if len >= target {
                false
            } else {
                growing
            };
            let k = key(&mut dice);
            match dice.below(100) {
                0 if dice.below(every) == 0 => twin.split(k, step % 2 == 0),
                n if n < 20 => twin.pop(),
                n if len > 0 && (n < 45 || (!growing && n < 85)) => {
                    twin.remove(dice.below(len) as usize)
                }
                n => (0..1 + n % 3).for_each(|i| twin.insert(k, i == 2)),
            }
            if step % every == 0 {
                twin.check(k);
                also(&twin, k);
            }
        }
        while !twin.sorted.is_empty() {
            twin.pop();
        }
        twin.check(key(&mut dice));
        assert_eq!(twin.list.memory_bytes(), 0);
    }

    #[test]
    fn agrees_with_a_sorted_vec() {
        for seed in 1..=20 {
            play(seed, 2_000, 1, 20 * seed, |d| d.below(40 * seed), |_, _| ());
            play(seed, 2_000, 1, 20 * seed, |d| d.below(3), |_, _| ());
        }
        for (seed, keys) in [(21, 1), (22, 50), (23, 1 << 40)] {
            play(seed, 60_000, 500, 9_000, |d| d.below(keys), |_, _| ());
        }
    }

    #[test]
    fn finds_what_is_due() {
        fn due(twin: &Twin<ReadyKey>, probe: ReadyKey) {
            let due = || {
                twin.sorted
                    .iter()
                    .filter(|e| e.0.due <= probe.due)
                    .map(|e| (e.0, e.2))
            };
            assert!(twin.list.iter_due(probe.due).eq(due()));
            assert_eq!(twin.list.first_due(probe.due), due().next());
            assert_eq!(
                twin.list.least_due(),
                twin.sorted.iter().map(|e| e.0.due).min()
            );
        }
        for seed in 1..=10 {
            let (priorities, dues) = (1 + seed % 4 * 3, 1 + seed * seed * 5);
            let key = |d: &mut Dice| ReadyKey {
                priority: d.below(priorities) as i32 - 3,
                due: d.below(dues),
            };
            play(seed, 2_000, 1, 40 * seed, key, due);
            play(seed, 40_000, 500, 6_000, key, due);
        }
    }

    #[test]
    fn asks_for_ties_only_where_keys_are_equal() {
        let mut dice = Dice(7);
        let mut list = Skiplist::new();
        let mut keys: Vec<u64> = (0..20_000).map(|n| n << 20 | dice.below(1 << 20)).collect();
        for n in (1..keys.len()).rev() {
            keys.swap(n, dice.below(n as u64 + 1) as usize);
        }
        let never = |_| panic!("asked for a tie");
        keys.iter()
            .zip(0..)
            .for_each(|(k, h)| list.insert(*k, h, never));
        list.check_invariants(|h| h as u64).unwrap();
        assert!(keys.iter().zip(0..).all(|(k, h)| list.remove(*k, h, never)));
        assert_eq!(list.memory_bytes(), 0);
    }

    #[test]
    fn asks_for_few_ties_where_all_keys_are_equal() {
        let asked = Cell::new(0);
        let most = Cell::new(0);
        let tie = |h: u32| {
            asked.set(asked.get() + 1);
            h as u64
        };
        let count = || most.set(most.get().max(asked.replace(0)));
        let mut list = Skiplist::new();
        let mut dice = Dice(5);
        let mut handles: Vec<u32> = (0..50_000).collect();
        for round in 0..2 {
            for h in &handles {
                list.insert(1u64, *h, tie);
                count();
            }
            list.check_invariants(|h| h as u64).unwrap();
            for n in (1..handles.len()).rev() {
                handles.swap(n, dice.below(n as u64 + 1) as usize);
            }
            for h in &handles {
                assert!(list.remove(1, *h, tie));
                count();
            }
            assert!(most.get() <= [25, 32][round], "asked {} times", most.get());
        }
    }

    #[test]
    fn memory_follows_the_number_of_entries() {
        let tie = |h: u32| h as u64;
        let mut list = Skiplist::new();
        assert!(mem::size_of::<Skiplist<u64>>() <= 72 && list.memory_bytes() == 0);
        (0..8).for_each(|n| list.insert(n as u64, n, tie));
        assert!(
            list.memory_bytes() < 200,
            "{} bytes for 8 entries",
            list.memory_bytes()
        );
        (8..100_000).for_each(|n| list.insert(n as u64, n, tie));
        assert!(list.memory_bytes() < 100_000 * 14);
        // The worst that removals can do: a sixteenth remains, spread over all nodes.
        (0..100_000)
            .filter(|n| n % 16 != 0)
            .for_each(|n| assert!(list.remove(n as u64, n, tie)));
        assert!(
            list.memory_bytes() < 6_250 * 12 * 2 + 100_000,
            "{} bytes",
            list.memory_bytes()
        );
        list.check_invariants(tie).unwrap();
        while list.len() > 4 {
            list.pop_first();
        }
        assert!(
            list.memory_bytes() < 2 * SEGMENT * 64,
            "{} bytes for 4 entries",
            list.memory_bytes()
        );
        let mut list = Skiplist::new();
        (0..64).for_each(|n| list.insert(n as u64, n, tie));
        (0..60).for_each(|n| assert_eq!(list.pop_first(), Some((n as u64, n))));
        assert!(
            list.memory_bytes() < 200,
            "{} bytes for 4 entries",
            list.memory_bytes()
        );
    }

    #[test]
    fn a_corrupted_list_is_found_out() {
        type Corruption = fn(&mut Skiplist<ReadyKey>);
        let corruptions: [Corruption; 10] = [
            |l| l.len += 1,
            |l| l.bottom[3].keys.swap(1, 10),
            |l| l.bottom[3].values.swap(4, 5),
            |l| l.bottom[2].next = 4,
            |l| l.bottom[2].prev = 0,
            |l| l.bottom.segments[0].live -= 1,
            |l| l.uppers[0][0].values[1].span += 1,
            |l| l.uppers[0][0].values[1].floor -= 1,
            |l| l.uppers[0][0].values[2].tie += 1000,
            |l| l.uppers[0][0].values.swap(1, 2),
        ];
        for (number, corrupt) in corruptions.into_iter().enumerate() {
            let mut list = Skiplist::new();
            let key = |h| ReadyKey {
                priority: 0,
                due: 5 + h as u64 / 100,
            };
            (0..1000).for_each(|h| list.insert(key(h), h, |h| h as u64));
            list.check_invariants(|h| h as u64).unwrap();
            corrupt(&mut list);
            assert!(
                list.check_invariants(|h| h as u64).is_err(),
                "corruption {number} passed"
            );
        }
    }
}

//! The nodes of one level, their items, and the arena they live in: see the picture in the parent.

use super::check::ensure;
use super::{Key, Link, NIL, NODE, RUN, SEGMENT};
use std::iter;
use std::mem;
use std::ops::{Index, IndexMut};

/// How many keys, all of them at the front, are below. A first look at the last of each eight asks for all
/// cache lines of a node at once, where bisection would wait for one after the other.
pub(super) fn rank<K>(keys: &[K], is_below: impl Fn(&K) -> bool) -> usize {
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
pub(super) struct Node<K, V> {
    pub(super) keys: Vec<K>,
    pub(super) values: Vec<V>,
    /// Items before it have been popped. pop_first would move all others forward otherwise.
    pub(super) start: u8,
    /// Behind the item inserted last, and how many in a row were inserted there.
    pub(super) turn: u8,
    pub(super) in_turn: u8,
    pub(super) prev: u32,
    /// In a free node, the next free one of the segment.
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

    /// The least of the items' floors. Where these rise, the second stands for all that follow but the last:
    /// the first link of a level may lead to entries before its key, the last of a node beyond the run.
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

    pub(super) fn insert(&mut self, at: usize, key: K, value: V) {
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
    pub(super) fn make_room(&mut self) {
        self.close_start();
        let len = self.len();
        if len == self.keys.capacity() {
            let more = (2 * len).clamp(4, NODE) - len;
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

    pub(super) fn shrink(&mut self) {
        let capacity = self.keys.capacity();
        if capacity > 4 && self.len() <= capacity * 3 / 8 {
            self.close_start();
            self.keys.shrink_to(capacity / 2);
            self.values.shrink_to(capacity / 2);
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

    /// Where an entry that is not there belongs.
    pub(super) fn place_of(&self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> usize {
        let at = rank(self.keys(), |k| *k < key);
        let equals = rank(&self.keys()[at..], |k| *k == key);
        if equals == 0 {
            return at;
        }
        let own = (tie(handle), handle);
        at + self.values()[at..at + equals].partition_point(|h| (tie(*h), *h) < own)
    }

    pub(super) fn find(&self, key: K, handle: u32) -> Option<usize> {
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

    /// The last link whose separator is not behind (key, tie of handle); the first link where all are.
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

    /// The link that becomes the first takes over the separator, which is that of the node.
    pub(super) fn remove_link(&mut self, at: usize) {
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
pub(super) struct Level<K, V> {
    pub(super) segments: Vec<Segment<K, V>>,
    /// All segments before it are full. Filling the lowest first lets the highest run empty.
    pub(super) roomy: u32,
    pub(super) first: u32,
    pub(super) last: u32,
}

#[derive(Clone)]
pub(super) struct Segment<K, V> {
    pub(super) nodes: Vec<Node<K, V>>,
    free: u32,
    pub(super) live: u32,
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
    pub(super) fn shed(&mut self, count: usize) -> bool {
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
    pub(super) const fn new() -> Self {
        Level {
            segments: Vec::new(),
            roomy: 0,
            first: NIL,
            last: NIL,
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<&Node<K, V>> {
        (id != NIL).then(|| &self[id])
    }

    /// For a number that may have gone.
    pub(super) fn get_any(&self, id: u32) -> Option<&Node<K, V>> {
        let segment = self.segments.get(id as usize / SEGMENT)?;
        segment.nodes.get(id as usize % SEGMENT)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Node<K, V>> {
        (id != NIL).then(|| &mut self[id])
    }

    pub(super) fn nodes_from(&self, id: u32) -> impl Iterator<Item = &Node<K, V>> + '_ {
        iter::successors(self.get(id), |node| self.get(node.next))
    }

    /// Puts an item into a node. A full node is split, and the new node behind it returned: in halves; or
    /// where the item comes last or items have been coming in turn, behind that, so that rising dues fill
    /// nodes, be it at the end of the list or at the end of a priority.
    pub(super) fn insert(&mut self, id: u32, at: usize, key: K, value: V) -> Option<u32> {
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

    pub(super) fn merge(&mut self, into: u32, from: u32) {
        let from = self.take(from);
        self[into].append(&from);
    }

    pub(super) fn add_after(&mut self, prev: u32, mut node: Node<K, V>) -> u32 {
        let next = self.get(prev).map_or(self.first, |n| n.next);
        (node.prev, node.next) = (prev, next);
        let id = self.store(node);
        self.join(prev, id);
        self.join(id, next);
        id
    }

    pub(super) fn join(&mut self, left: u32, right: u32) {
        match self.get_mut(left) {
            Some(node) => node.next = right,
            None => self.first = right,
        }
        match self.get_mut(right) {
            Some(node) => node.prev = left,
            None => self.last = left,
        }
    }

    pub(super) fn store(&mut self, node: Node<K, V>) -> u32 {
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
    pub(super) fn take(&mut self, id: u32) -> Node<K, V> {
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

    pub(super) fn memory_bytes(&self) -> usize {
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
    pub(super) fn store(&mut self, node: Node<K, V>) -> u32 {
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

impl<K: Key, V: Copy> Level<K, V> {
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let there = |id: &u32| *id != NIL;
        iter::successors(Some(self.first).filter(there), move |id| {
            Some(self[*id].next).filter(there)
        })
    }

    /// How many items come before each node.
    pub(super) fn firsts(&self) -> impl Iterator<Item = usize> + '_ {
        self.nodes_from(self.first).scan(0, |passed, node| {
            Some(mem::replace(passed, *passed + node.len()))
        })
    }

    pub(super) fn check(&self) -> Result<(), String> {
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

//! The nodes of one level, and their arena: see the picture in the parent.

use super::key::{Key, Step, NIL, NODE, RUN, SEGMENT};
use super::node::{ensure, Node};
use crate::storage::allocated::reserve;
use std::iter;
use std::mem;
use std::ops::{Index, IndexMut};

/// The nodes of a level, in segments. Their order is that of their links.
#[derive(Clone)]
pub(super) struct Level<K, V> {
    pub(super) segments: Vec<Segment<K, V>>,
    /// All segments before it are full. The lowest is filled first, so that the highest can run empty.
    pub(super) roomy: u32,
    pub(super) first: u32,
    pub(super) last: u32,
    /// The first detached node: see [`super::detach`].
    pub(super) detached: u32,
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
    pub(super) fn free_some(&mut self, count: usize) -> bool {
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
            detached: NIL,
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<&Node<K, V>> {
        (id != NIL).then(|| &self[id])
    }

    /// As [`Level::get`], for a number whose node may be gone.
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

    /// Inserts an item into a node. A full node is split, and the new node after it is returned.
    /// Usually it is split in halves; but if the item comes last, or items have been coming in
    /// sequence, right there. So rising due times fill nodes, at the end of the list or of a
    /// priority.
    #[inline]
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
            // A list of a few entries does not need the room that Vec reserves.
            if number == 0 {
                reserve(&mut self.segments, 1);
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

    /// Removes a node from the level.
    pub(super) fn take(&mut self, id: u32) -> Node<K, V> {
        let node = self.release(id);
        self.join(node.prev, node.next);
        node
    }

    /// Frees a node's place, without changing its neighbours.
    fn release(&mut self, id: u32) -> Node<K, V> {
        let node = mem::take(&mut self[id]);
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

    /// Detaches the items from one place up to another, which may be in another node. Items of
    /// these two nodes outside the range stay; returns for each node whether it has any.
    pub(super) fn cut(&mut self, from: Step, to: Step) -> (bool, bool) {
        let (from_at, to_at) = (from.at as usize, to.at as usize);
        let (before, behind) = (from_at > 0, to_at < self[to.node].len());
        if from.node == to.node && (before || behind) {
            self.detach_items(from.node, from_at, to_at);
            return (true, true);
        }
        let (mut first, mut last) = (from.node, to.node);
        if before {
            let end = self[from.node].len();
            self.detach_items(from.node, from_at, end);
            first = self[from.node].next;
        }
        if behind {
            self.detach_items(to.node, 0, to_at);
            last = self[to.node].prev;
        }
        if !(behind && first == to.node) {
            self.detach_nodes(first, last);
        }
        (before, behind)
    }

    /// Detaches items as a node of their own.
    fn detach_items(&mut self, id: u32, from: usize, to: usize) {
        if from < to {
            let mut node = self[id].cut_out(from, to);
            node.next = self.detached;
            self.detached = self.store(node);
        }
    }

    /// Detaches whole nodes. They stay where they are, with their forward links.
    fn detach_nodes(&mut self, first: u32, last: u32) {
        self.join(self[first].prev, self[last].next);
        self[last].next = mem::replace(&mut self.detached, first);
    }

    pub(super) fn free_detached(&mut self) {
        if self.detached != NIL {
            self.detached = self.release(self.detached).next;
        }
    }

    pub(super) fn has_nodes(&self) -> bool {
        !self.segments.is_empty()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let item = mem::size_of::<K>() + mem::size_of::<V>();
        // Free nodes have no arrays.
        let items: usize = self
            .segments
            .iter()
            .flat_map(|s| &s.nodes)
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
            reserve(&mut self.nodes, 1);
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }
}

impl<K: Key, V: Copy> Level<K, V> {
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.ids_from(self.first)
    }

    pub(super) fn detached(&self) -> impl Iterator<Item = u32> + '_ {
        self.ids_from(self.detached)
    }

    fn ids_from(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let there = |id: &u32| *id != NIL;
        iter::successors(Some(id).filter(there), move |id| {
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
                "nodes joined one hint only",
            )?;
            ensure((1..=NODE).contains(&node.len()), "node empty or too full")?;
            ensure(
                node.keys.capacity() <= NODE && node.keys.len() == node.values.len(),
                "arrays differ",
            )?;
            live[id as usize / SEGMENT] += 1;
        }
        ensure(prev == self.last, "last node is not the last")?;
        for id in self.detached() {
            let len = self[id].len();
            ensure((1..=NODE).contains(&len), "detached node empty or too full")?;
            live[id as usize / SEGMENT] += 1;
        }
        ensure(self.segments.iter().map(|s| s.live).eq(live), "nodes lost")
    }
}

//! Takes a range of entries out of a list at once, however many there are.
//!
//! On each level, only items in the two nodes at the ends of the range move. The nodes between them
//! stay in the arena of their level, and only move from its chain to another. The list in the
//! parent's picture, after the keys from f to r have been detached:
//!
//! ```text
//! uppers[1]    [ -    q ]
//!                |    |
//!                |    +--------------+
//! uppers[0]    [ -    d ] <------> [ q    v ]      detached:  [k]
//!                |    |              |    |
//! bottom       [abc][de] <-------> [st][vwxyz]     detached:  [klm] -> [qr] -> [fg]
//! ```
//!
//! Detached entries no longer belong to the list: no search finds them, and they have no order.
//! They are taken out one by one, the last detached first, and nodes are freed on the way, on all
//! levels. Each detached node above the bottom has a detached node below it that no other shares,
//! so the upper ones are gone when those of the bottom are. A level that has only detached nodes
//! stays until then.

use super::node::{rank, Node};
use super::{Key, Link, Path, Skiplist, Step, NODE};
use std::ops::RangeInclusive;

impl<K: Key> Skiplist<K> {
    /// Detaches all entries whose keys are in the range; returns how many.
    /// [`Skiplist::pop_detached`] returns them, in any order.
    pub fn detach(&mut self, keys: RangeInclusive<K>) -> usize {
        let (start, end) = keys.into_inner();
        let count = self
            .count_below(end, true)
            .saturating_sub(self.count_below(start, false));
        if count == 0 {
            return 0;
        }
        let (before, behind) = (|key: &K| *key < start, |key: &K| *key <= end);
        let left = self.place_behind(before);
        let right = self.place_behind(behind);
        self.changes = self.changes.wrapping_add(1);
        self.len -= count as u32;
        if self.cut(left, right) {
            self.mend(before);
            self.mend(behind);
        } else {
            self.height = 0;
        }
        self.lower();
        count
    }

    /// Detaches the first `count` entries of the list, at least one.
    pub fn detach_first(&mut self, count: usize) {
        let Some(last) = count.checked_sub(1) else {
            return;
        };
        let left = self.place_behind(|_| false);
        let mut right = self.place_of_rank(last);
        right.1.at += 1;
        self.changes = self.changes.wrapping_add(1);
        self.len -= count as u32;
        if self.cut(left, right) {
            self.mend(|_| false);
        } else {
            self.height = 0;
        }
        self.lower();
    }

    /// The entry with `rank` entries before it.
    pub fn nth(&self, rank: usize) -> Option<(K, u32)> {
        if rank >= self.len() {
            return None;
        }
        let (_, Step { node, at }) = self.place_of_rank(rank);
        let node = self.bottom.get(node)?;
        Some((
            *node.keys().get(at as usize)?,
            *node.values().get(at as usize)?,
        ))
    }

    /// The path to the entry with `rank` entries before it, and its place.
    fn place_of_rank(&self, rank: usize) -> (Path, Step) {
        let mut left = rank;
        let (path, node) = self.path_to(|n| {
            let spans = n.values().iter().map(|link| link.span as usize);
            let mut at = 0;
            for span in spans.take(n.len() - 1) {
                if left < span {
                    break;
                }
                left -= span;
                at += 1;
            }
            at
        });
        let at = left as u32;
        (path, Step { node, at })
    }

    /// Takes out a detached entry; its node is freed with its last entry.
    pub fn pop_detached(&mut self) -> Option<(K, u32)> {
        let id = self.bottom.detached;
        let node = self.bottom.get_mut(id)?;
        let entry = node.pop_first();
        if node.len() == 0 {
            self.bottom.free_detached();
            self.uppers.iter_mut().for_each(|l| l.free_detached());
            self.drop_bare_levels();
        }
        Some(entry)
    }

    pub fn has_detached(&self) -> bool {
        self.bottom.get(self.bottom.detached).is_some()
    }

    /// All detached entries.
    pub fn detached(&self) -> impl Iterator<Item = (K, u32)> + '_ {
        let nodes = self.bottom.detached().map(|id| &self.bottom[id]);
        nodes.flat_map(Node::items)
    }

    /// The path to the first entry for which `is_before` is false, and its place.
    fn place_behind(&self, is_before: impl Fn(&K) -> bool) -> (Path, Step) {
        let (path, node) = self.path_to(|n| rank(&n.keys()[1..], &is_before));
        let at = rank(self.bottom[node].keys(), &is_before) as u32;
        (path, Step { node, at })
    }

    /// Detaches what is between two places, level by level: first entries, then the links to nodes
    /// that were detached as a whole. Returns whether anything is left.
    fn cut(&mut self, left: (Path, Step), right: (Path, Step)) -> bool {
        let (mut from, mut to) = (left.1, right.1);
        let mut stay = self.bottom.cut(from, to);
        for depth in 0..self.height() {
            let is_one = stay.0 && from.node == to.node;
            (from, to) = (left.0[depth], right.0[depth]);
            // The links to nodes that have lost items, and the index that the right one will have.
            let (left_link, mut right_link) = (from, to);
            from.at += u32::from(stay.0);
            to.at += u32::from(!stay.1);
            if is_one {
                to = from;
            }
            right_link.at = if from.node == to.node { from.at } else { 0 };
            let level = &mut self.uppers[depth];
            if from.at == 0 || from.node != to.node {
                level[to.node].become_first(to.at as usize);
            }
            let stay_here = level.cut(from, to);
            if stay.0 {
                self.measure_anew(depth, left_link);
            }
            if stay.1 && !is_one {
                self.measure_anew(depth, right_link);
            }
            stay = stay_here;
        }
        stay.0 || stay.1
    }

    fn measure_anew(&mut self, depth: usize, step: Step) {
        let child = self.link_mut(depth, step).child;
        let (span, floor) = self.measure(depth, child);
        let link = self.link_mut(depth, step);
        *link = Link {
            span,
            floor,
            ..*link
        };
    }

    /// Merges nodes that have become small on the path to a place. It starts from the top, so that
    /// nodes whose parents are merged are neighbours when their turn comes.
    fn mend(&mut self, is_before: impl Fn(&K) -> bool) {
        for depth in (0..self.height()).rev() {
            let (path, leaf) = self.path_to(|n| rank(&n.keys()[1..], &is_before));
            let child = depth.checked_sub(1).map_or(leaf, |below| path[below].node);
            let items = self.items_in(depth, child);
            if items <= NODE / 2 {
                self.merge_around(depth, path[depth], items);
            }
        }
    }
}

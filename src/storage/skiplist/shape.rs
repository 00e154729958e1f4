//! Paths through the levels, and what changes along them. Growing and shrinking: adds links for new nodes, merges small neighbours, adds and removes levels.

use super::level::Level;
use super::node::Node;
use super::{Key, Link, Path, Skiplist, Step, MERGED, NIL, NODE, NOWHERE};
use crate::storage::prefetch::prefetch_all;
use std::mem;

impl<K: Key> Skiplist<K> {
    /// The upper levels that lead to entries of the list.
    #[inline]
    pub(super) fn levels(&self) -> &[Level<K, Link<K::Floor>>] {
        &self.uppers[..self.height()]
    }

    #[inline]
    pub(super) fn height(&self) -> usize {
        self.height as usize
    }

    /// Whether its nodes are in no near cache. Then a node's keys are requested at once: bisection would wait for one
    /// cache line after the other.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        const LARGE: u32 = if cfg!(debug_assertions) { 40 } else { 65_536 };
        self.len >= LARGE
    }

    /// The first node of the topmost level, and its only one; or the bottom's first if the list is empty.
    pub(super) fn top(&self) -> u32 {
        self.levels()
            .last()
            .map_or(self.bottom.first, |level| level.first)
    }

    #[inline]
    pub(super) fn path_to(
        &self,
        mut link: impl FnMut(&Node<K, Link<K::Floor>>) -> usize,
    ) -> (Path, u32) {
        let mut path = NOWHERE;
        let mut node = self.top();
        for (step, level) in path.iter_mut().zip(self.levels()).rev() {
            let links = &level[node];
            if self.is_large() {
                prefetch_all(links.keys());
            }
            let at = link(links);
            *step = Step {
                node,
                at: at as u32,
            };
            node = links.values()[at].child;
        }
        (path, node)
    }

    pub(super) fn path_to_start(&self) -> Path {
        let mut path = NOWHERE;
        for (step, level) in path.iter_mut().zip(self.levels()) {
            *step = Step {
                node: level.first,
                at: 0,
            };
        }
        path
    }

    #[inline]
    pub(super) fn path_to_end(&self) -> Path {
        let mut path = NOWHERE;
        for (step, level) in path.iter_mut().zip(self.levels()) {
            *step = Step {
                node: level.last,
                at: level[level.last].len() as u32 - 1,
            };
        }
        path
    }

    #[inline]
    pub(super) fn link_mut(&mut self, depth: usize, step: Step) -> &mut Link<K::Floor> {
        &mut self.uppers[depth][step.node].values_mut()[step.at as usize]
    }

    /// Span and floor of a link at `depth` that leads to `child`.
    pub(super) fn measure(&self, depth: usize, child: u32) -> (u32, K::Floor) {
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

    /// Adds `count` entries to the spans of a path; `floor` is the least of their floors.
    #[inline]
    pub(super) fn lengthen(&mut self, path: &Path, count: u32, floor: K::Floor) {
        self.len += count;
        let height = self.height();
        for (level, step) in self.uppers[..height].iter_mut().zip(path) {
            let link = &mut level[step.node].values_mut()[step.at as usize];
            link.span += count;
            link.floor = link.floor.min(floor);
        }
    }

    /// Updates a link below which `count` entries of this floor were removed.
    #[inline]
    pub(super) fn shorten(&mut self, depth: usize, step: Step, count: u32, floor: K::Floor) {
        let link = self.link_mut(depth, step);
        link.span -= count;
        if link.floor == floor && mem::size_of::<K::Floor>() > 0 {
            let child = link.child;
            self.link_mut(depth, step).floor = self.floor_of(depth, child);
        }
    }

    /// How many items the node below a link at `depth` has.
    pub(super) fn items_in(&self, depth: usize, child: u32) -> usize {
        if depth == 0 {
            self.bottom[child].len()
        } else {
            self.uppers[depth - 1][child].len()
        }
    }

    /// Adds links to leaf `right`, which is new after `leaf`; and, if that overfills a node, to the
    /// node's new neighbour, too.
    pub(super) fn add_links(
        &mut self,
        path: &Path,
        leaf: u32,
        right: u32,
        tie: impl Fn(u32) -> u64,
    ) {
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
            let step = if depth < self.height() {
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

    /// Adds a level on top, with a single link to the former top. Its key is never compared.
    fn add_level(&mut self, child: u32, key: K) -> Step {
        let height = self.height();
        let (span, floor) = self.measure(height, child);
        let link = Link {
            tie: (0, 0),
            floor,
            child,
            span,
        };
        if height == self.uppers.len() {
            self.uppers.push(Level::new());
        }
        self.height += 1;
        let node = self.uppers[height].add_after(NIL, Node::of(key, link));
        Step { node, at: 0 }
    }

    /// Called when `count` entries of this floor were removed from `leaf`: updates the path, frees
    /// empty nodes, merges small ones, and removes levels that skip nothing.
    pub(super) fn rebalance(&mut self, path: &Path, leaf: u32, count: u32, floor: K::Floor) {
        self.len -= count;
        if self.len == 0 {
            // Then it is the only leaf, with nothing above it.
            self.bottom.take(leaf);
            self.drop_bare_levels();
            return;
        }
        let mut child = leaf;
        for (depth, step) in path.iter().enumerate().take(self.height()) {
            let items = self.items_in(depth, child);
            if items == 0 {
                self.drop_node(depth, child);
                self.uppers[depth][step.node].remove_link(step.at as usize);
            } else {
                self.shorten(depth, *step, count, floor);
                let mut small = Some((*step, items)).filter(|_| items <= NODE / 2);
                while let Some((step, items)) = small {
                    small = self.merge_around(depth, step, items);
                }
            }
            child = step.node;
        }
        self.lower();
    }

    /// Removes the levels that skip nothing.
    pub(super) fn lower(&mut self) {
        while let Some(top) = self.levels().last().map(|level| level.first) {
            let level = &mut self.uppers[self.height as usize - 1];
            if level[top].len() > 1 {
                return;
            }
            level.take(top);
            self.height -= 1;
            self.drop_bare_levels();
        }
    }

    /// Frees levels that have no nodes any more, not even detached ones.
    pub(super) fn drop_bare_levels(&mut self) {
        let height = self.height();
        while self.uppers.len() > height && self.uppers.last().is_some_and(|l| !l.has_nodes()) {
            self.uppers.pop();
        }
        if self.uppers.is_empty() {
            self.uppers = Vec::new();
        }
        if !self.bottom.has_nodes() {
            self.begin_anew();
        }
    }

    /// Gives all memory back, as nothing is left.
    pub(super) fn begin_anew(&mut self) {
        *self = Skiplist {
            changes: self.changes,
            ..Self::new()
        };
    }

    fn drop_node(&mut self, depth: usize, child: u32) {
        if depth == 0 {
            self.bottom.take(child);
        } else {
            self.uppers[depth - 1].take(child);
        }
    }

    /// Merges the node below a link with its next or previous neighbour, if they fit and have the
    /// same parent. Returns the link that leads to the merged node, and how many items that has.
    pub(super) fn merge_around(
        &mut self,
        depth: usize,
        step: Step,
        items: usize,
    ) -> Option<(Step, usize)> {
        let at = step.at as usize;
        let links = self.uppers[depth][step.node].values();
        let fits = |l: &&Link<K::Floor>| {
            // A leaf's size is its span, known without reading the leaf.
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
            return None;
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
        let step = Step {
            node: step.node,
            at: left as u32,
        };
        Some((step, self.items_in(depth, into.child)))
    }
}

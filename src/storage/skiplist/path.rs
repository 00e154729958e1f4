//! Paths through the levels, and what changes along them.

use super::level::Level;
use super::node::Node;
use super::{Key, Link, Path, Skiplist, Step, NOWHERE};
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
}

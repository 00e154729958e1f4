//! Finds due entries in a list that is sorted by something else.

use super::node::Node;
use super::{rank, Key, Link, Skiplist, MAX_UPPERS};
use std::array;
use std::iter;
use std::mem;

impl<K: Key<Floor = u64>> Skiplist<K> {
    /// The first due entry, in the order of the list.
    pub fn first_due(&self, now: u64) -> Option<(K, u32)> {
        self.iter_due(now).next()
    }

    /// Gives an entry a key that is the same in the order, with another floor. False, and nothing changed, if it is not
    /// there.
    pub fn set_floor(&mut self, key: K, handle: u32, tie: impl Fn(u32) -> u64) -> bool {
        let Some((path, leaf, at)) = self.find(key, handle, tie) else {
            return false;
        };
        let node = &mut self.bottom[leaf];
        let start = node.start as usize;
        let before = mem::replace(&mut node.keys[start + at], key).floor();
        if key.floor() <= before {
            self.lengthen(&path, 0, key.floor());
            return true;
        }
        for (depth, step) in path.into_iter().enumerate().take(self.height()) {
            self.shorten(depth, step, 0, before);
        }
        true
    }

    /// The earliest due time of all.
    pub fn least_due(&self) -> Option<u64> {
        match self.levels().last() {
            Some(top) => top[top.first].values().iter().map(|link| link.floor).min(),
            None => self
                .bottom
                .get(self.bottom.first)
                .map(Node::<K, u32>::floor),
        }
    }

    /// The earliest due time of the entries whose key is below the bound.
    pub fn least_due_below(&self, bound: K) -> Option<u64> {
        let (mut least, mut node) = (None, self.top());
        let mut take = |floor: u64| least = Some(least.map_or(floor, |it: u64| it.min(floor)));
        for level in self.levels().iter().rev() {
            let at = rank(&level[node].keys()[1..], |k| *k < bound);
            let links = level[node].values();
            links[..at].iter().for_each(|link| take(link.floor));
            node = links[at].child;
        }
        let leaf = self.bottom.get(node);
        let items = leaf.into_iter().flat_map(Node::items);
        let below = items.take_while(|(key, _)| *key < bound);
        below.for_each(|(key, _)| take(key.floor()));
        least
    }

    /// All due entries, in the order of the list; subtrees without any are skipped.
    pub fn iter_due(&self, now: u64) -> impl Iterator<Item = (K, u32)> + '_ {
        self.nodes_due(now)
            .flat_map(Node::items)
            .filter(move |(key, _)| key.floor() <= now)
    }

    fn nodes_due(&self, now: u64) -> impl Iterator<Item = &Node<K, u32>> + '_ {
        let height = self.height();
        let mut untried: [_; MAX_UPPERS] = array::from_fn(|_| [].iter());
        let mut only = self.bottom.get(self.bottom.first).filter(|_| height == 0);
        if let Some(top) = self.levels().last() {
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

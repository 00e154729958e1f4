//! Having nodes on their way from memory before they are needed.

use super::{rank, Key, Skiplist};
use crate::prefetch::{prefetch, prefetch_all};

/// Where a key will go, if nothing happens to the list until then. Otherwise it is of no use, and does
/// no harm.
#[derive(Clone, Copy)]
pub struct Leaf(u32);

impl<K: Key> Skiplist<K> {
    /// Finds the leaf for a key and has it on its way, for [`Skiplist::fetch`] to read.
    pub fn approach(&self, key: K) -> Leaf {
        let mut node = self.top();
        for level in self.levels().iter().rev() {
            let links = &level[node];
            let at = rank(&links.keys()[1..], |k| *k < key);
            node = links.values()[at].child;
        }
        self.bottom.get(node).into_iter().for_each(prefetch);
        Leaf(node)
    }

    /// Has on its way what an insert into the leaf reads and moves.
    pub fn fetch(&self, leaf: Leaf) {
        if let Some(node) = self.bottom.get_any(leaf.0) {
            prefetch_all(node.keys());
            prefetch_all(node.values());
        }
    }

    /// The first entries, as many as one node has of them.
    pub fn leading(&self) -> &[u32] {
        self.bottom
            .get(self.bottom.first)
            .map_or(&[], |node| node.values())
    }
}

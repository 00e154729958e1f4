//! Having nodes on their way from memory before they are needed.

use super::{rank, Key, Path, Skiplist};
use crate::storage::prefetch::{prefetch, prefetch_all};

/// The way to where a key will go, if nothing happens to the list until then. Otherwise it is of no use,
/// and does no harm.
pub struct InsertHint<K> {
    key: K,
    pub(super) path: Path,
    pub(super) leaf: u32,
    changes: u16,
    /// The key's tie would have had to be asked for to know the way, or there is none yet.
    is_open: bool,
}

impl<K: Key> Skiplist<K> {
    /// Finds the leaf for a key and has it on its way, for [`Skiplist::fetch`] to read.
    pub fn insert_hint(&self, key: K) -> InsertHint<K> {
        let mut is_open = self.is_empty();
        let (path, leaf) = self.path_to(|links| {
            let keys = &links.keys()[1..];
            let at = rank(keys, |k| *k < key);
            is_open |= keys.get(at) == Some(&key);
            at
        });
        self.bottom.get(leaf).into_iter().for_each(prefetch);
        InsertHint {
            key,
            path,
            leaf,
            changes: self.changes,
            is_open,
        }
    }

    /// Whether it is the way that [`Skiplist::insert`] would find.
    pub(super) fn is_known(&self, way: &InsertHint<K>, key: K) -> bool {
        way.key == key && way.changes == self.changes && !way.is_open
    }

    /// Has on its way what an insert into the leaf reads and moves.
    pub fn fetch(&self, way: &InsertHint<K>) {
        if let Some(node) = self.bottom.get_any(way.leaf) {
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

//! Prefetches nodes before they are needed.

use super::{rank, Key, Path, Skiplist};
use crate::storage::prefetch::{prefetch, prefetch_all};

/// The path to a key's future place, if nothing changes in the list until then. Otherwise it is
/// useless, but harmless.
pub struct InsertHint<K> {
    key: K,
    pub(super) path: Path,
    pub(super) leaf: u32,
    changes: u16,
    /// The path is not known: it depends on the key's tie, or the list is empty.
    is_open: bool,
}

impl<K: Key> Skiplist<K> {
    /// Finds the leaf for a key and prefetches it, for [`Skiplist::fetch`] to read.
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

    /// Whether the hint is the path that [`Skiplist::insert`] would find.
    pub(super) fn is_known(&self, hint: &InsertHint<K>, key: K) -> bool {
        hint.key == key && hint.changes == self.changes && !hint.is_open
    }

    /// Prefetches what an insert into the leaf reads and moves.
    pub fn fetch(&self, hint: &InsertHint<K>) {
        if let Some(node) = self.bottom.get_any(hint.leaf) {
            prefetch_all(node.keys());
            prefetch_all(node.values());
        }
    }

    /// The first entries, as many as the first node has.
    pub fn leading(&self) -> &[u32] {
        self.bottom
            .get(self.bottom.first)
            .map_or(&[], |node| node.values())
    }
}

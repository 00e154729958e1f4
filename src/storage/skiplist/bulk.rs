//! Entries that come and go together: each leaf is looked for once, not each entry.

use super::{Skiplist, NODE};

/// What is asked for at the same time.
const TOGETHER: usize = 32;
/// Lists of fewer entries are in the processor's cache anyway. Tests go this way with any.
const MANY: usize = if cfg!(debug_assertions) { 40 } else { 10_000 };

impl Skiplist<u64> {
    /// Takes entries out, which are given in the order of the list; false where one is not there.
    pub fn remove_sorted(&mut self, entries: &[(u64, u32)], tie: impl Fn(u32) -> u64) -> bool {
        for entries in entries.chunks(TOGETHER) {
            if self.len() >= MANY {
                let ways: Vec<_> = entries
                    .iter()
                    .map(|&(key, _)| self.insert_hint(key))
                    .collect();
                ways.iter().for_each(|way| self.fetch(way));
            }
            let mut rest = entries;
            while let Some(&(key, handle)) = rest.first() {
                if self.is_empty() {
                    return false;
                }
                let (path, leaf) = self.path_to(|n| n.link_to(key, handle, &tie));
                let gone = self.bottom[leaf].remove_sorted(rest);
                if gone == 0 {
                    return false;
                }
                self.changes = self.changes.wrapping_add(1);
                self.settle(&path, leaf, gone as u32, ());
                rest = &rest[gone..];
            }
        }
        true
    }

    /// Adds entries, which are given in the order of the list and are not there.
    pub fn insert_sorted(&mut self, entries: &[(u64, u32)], tie: impl Fn(u32) -> u64) {
        let mut rest = entries;
        while let Some((&(key, handle), behind)) = rest.split_first() {
            self.insert(key, handle, &tie);
            rest = behind;
            if self.last() == Some((key, handle)) {
                let added = self.append(rest);
                rest = &rest[added..];
            }
        }
    }

    /// Fills the last leaf with what belongs behind all entries; returns with how many.
    fn append(&mut self, entries: &[(u64, u32)]) -> usize {
        let (path, leaf) = self.path_to_end();
        let node = &mut self.bottom[leaf];
        let count = entries.len().min(NODE - node.len());
        node.extend(&entries[..count]);
        self.changes = self.changes.wrapping_add(1);
        self.lengthen(&path, count as u32, ());
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// splitmix64
    fn scattered(number: u64) -> u64 {
        let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits ^ (bits >> 31)
    }

    /// What moves stands afterwards where it would if each entry had moved alone; whatever part of the list
    /// it is, in lists of few keys and of many.
    #[test]
    fn many_move_as_one_by_one() {
        for (keys, len, part) in [(1, 300, 2), (4, 2000, 3), (100_000, 3000, 1), (50, 3000, 9)] {
            let mut list = Skiplist::new();
            let mut entries: Vec<(u64, u32)> = (0..len)
                .map(|h| (scattered(u64::from(h)) % keys, h))
                .collect();
            entries
                .iter()
                .for_each(|&(key, h)| list.insert(key, h, u64::from));
            for round in 0..20 {
                let goes = |&&(_, h): &&(u64, u32)| {
                    scattered(round << 32 | u64::from(h)).is_multiple_of(part)
                };
                entries.sort_unstable();
                let gone: Vec<_> = entries.iter().filter(goes).copied().collect();
                entries.retain(|it| !goes(&it));
                assert!(list.remove_sorted(&gone, u64::from));
                list.check_invariants(u64::from).unwrap();
                assert!(list.iter().eq(entries.iter().copied()));
                assert!(gone.is_empty() || !list.remove_sorted(&gone[..1], u64::from));
                // Behind all others, or among them.
                let to = if round % 2 == 0 {
                    keys + round
                } else {
                    keys / 2
                };
                let mut come: Vec<_> = gone.iter().map(|&(_, h)| (to, h)).collect();
                come.sort_unstable();
                list.insert_sorted(&come, u64::from);
                entries.extend(come);
                entries.sort_unstable();
                list.check_invariants(u64::from).unwrap();
                assert!(list.iter().eq(entries.iter().copied()));
            }
        }
    }

    /// However much goes from a leaf at once, what is left does not lie in many small ones.
    #[test]
    fn small_neighbours_merge() {
        let mut list = Skiplist::new();
        let all: Vec<(u64, u32)> = (0..100_000).map(|h| (u64::from(h), h)).collect();
        list.insert_sorted(&all, u64::from);
        let gone: Vec<_> = all.iter().filter(|it| it.0 % 8 > 0).copied().collect();
        assert!(list.remove_sorted(&gone, u64::from));
        list.check_invariants(u64::from).unwrap();
        let nodes = list.bottom.ids().count();
        assert!(
            nodes * 24 < list.len(),
            "{nodes} for {} entries",
            list.len()
        );
    }
}

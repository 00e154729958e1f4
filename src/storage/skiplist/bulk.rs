//! Inserts and removes many entries together: each leaf is searched for once, not each entry.

use super::node::Node;
use super::{Key, Path, Skiplist, Tie, NIL, NODE};

/// How many entries are prefetched at the same time.
const TOGETHER: usize = 32;
/// Lists of fewer entries are in the processor's cache anyway. Low in debug builds, so that tests
/// prefetch, too.
const MANY: usize = if cfg!(debug_assertions) { 40 } else { 10_000 };

impl Skiplist<u64> {
    /// Removes entries, which are in the order of the list; false if one is not there.
    pub fn remove_sorted(&mut self, entries: &[(u64, u32)], tie: impl Fn(u32) -> u64) -> bool {
        for entries in entries.chunks(TOGETHER) {
            if self.len() >= MANY {
                let hints: Vec<_> = entries
                    .iter()
                    .map(|&(key, _)| self.insert_hint(key))
                    .collect();
                hints.iter().for_each(|hint| self.fetch(hint));
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
                self.rebalance(&path, leaf, gone as u32, ());
                rest = &rest[gone..];
            }
        }
        true
    }
}

impl<K: Key> Skiplist<K> {
    /// Adds entries that are not there, given in the order of the list. `tie` must know them all.
    pub fn insert_sorted(&mut self, entries: &[(K, u32)], tie: impl Fn(u32) -> u64) {
        let mut rest = entries;
        while let Some(&(key, handle)) = rest.first() {
            let added = self.insert_some(key, handle, rest, &tie);
            rest = &rest[added..];
        }
    }

    /// Adds the first entry, and with it those that belong right after it, as far as there is room.
    /// Returns how many.
    fn insert_some(
        &mut self,
        key: K,
        handle: u32,
        entries: &[(K, u32)],
        tie: impl Fn(u32) -> u64,
    ) -> usize {
        if self.is_empty() {
            self.bottom.add_after(NIL, Node::new());
        }
        let (path, leaf, end) = self.path_with_end(key, handle, &tie);
        let node = &mut self.bottom[leaf];
        let at = node.place_of(key, handle, &tie);
        if node.len() == NODE {
            if entries.len() > NODE / 4 {
                // All items after it move into a node of their own.
                node.expect_run(at);
            }
            self.insert_at(&path, (leaf, at), key, handle, tie);
            return 1;
        }
        let next = node.keys().get(at).zip(node.values().get(at));
        let next = next.map(|(&key, &next)| (key, next));
        let is_before = |(key, handle), (end, before): (K, Tie)| {
            key < end || (key == end && (tie(handle), handle) < before)
        };
        let fits = |&&(key, handle): &&(K, u32)| match next {
            // A tie is asked for only if keys are equal.
            Some((end, next)) if key == end => is_before((key, handle), (end, (tie(next), next))),
            Some((end, _)) => key < end,
            None => end.is_none_or(|end| is_before((key, handle), end)),
        };
        let room = NODE - node.len();
        let count = 1 + entries[1..].iter().take(room - 1).take_while(fits).count();
        let floors = entries[..count].iter().map(|(key, _)| key.floor());
        let floor = floors.fold(key.floor(), Ord::min);
        node.insert_all(at, &entries[..count]);
        self.changes = self.changes.wrapping_add(1);
        self.lengthen(&path, count as u32, floor);
        count
    }

    /// The path to an entry's leaf, and the least (key, tie) that belongs after that leaf.
    fn path_with_end(
        &self,
        key: K,
        handle: u32,
        tie: impl Fn(u32) -> u64,
    ) -> (Path, u32, Option<(K, Tie)>) {
        let mut end = None;
        let (path, leaf) = self.path_to(|links| {
            let at = links.link_to(key, handle, &tie);
            let behind = links.keys().get(at + 1).zip(links.values().get(at + 1));
            end = behind.map(|(&key, link)| (key, link.tie)).or(end);
            at
        });
        (path, leaf, end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ReadyKey;
    use super::*;

    /// splitmix64
    fn scattered(number: u64) -> u64 {
        let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits ^ (bits >> 31)
    }

    /// Entries that move together end where they would if each had moved alone: for any part of the
    /// list, in lists of few keys and of many.
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
                // After all others, or among them.
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

    /// Entries that are added together end where each alone would: entries of one key, between
    /// older and newer ties of that key, or of one priority among others. And they fill their
    /// nodes.
    #[test]
    fn many_come_as_one_by_one() {
        for (dues, others, come) in [(1, 100, 50), (3, 500, 200), (2000, 3000, 1000), (9, 0, 300)] {
            let key = |h: u32| ReadyKey {
                priority: (scattered(u64::from(h) << 1) % 2) as i32,
                due: scattered(u64::from(h)) % dues,
            };
            let tie = |h: u32| scattered(u64::from(h)) >> 8;
            let mut list = Skiplist::new();
            (0..others).for_each(|h| list.insert(key(h), h, tie));
            let mut all: Vec<_> = (0..others).map(|h| (key(h), h)).collect();
            for round in 0..30 {
                let first = others + round * come;
                let one = key(first);
                let is_alike = round % 2 == 0;
                let key = |h| if is_alike { one } else { key(h) };
                let order = |&(key, h): &(ReadyKey, u32)| (key, tie(h), h);
                let mut coming: Vec<_> = (first..first + come).map(|h| (key(h), h)).collect();
                coming.sort_unstable_by_key(order);
                list.insert_sorted(&coming, tie);
                list.check_invariants(tie).unwrap();
                all.extend(coming);
                all.sort_unstable_by_key(order);
                assert!(list.iter().eq(all.iter().copied()));
            }
            let nodes = list.bottom.ids().count();
            assert!(nodes * 24 < list.len(), "{nodes} for {}", list.len());
        }
    }

    /// So a job that a broken queue has lost does not affect others.
    #[test]
    fn asks_for_ties_only_where_keys_are_equal() {
        let never = |_| panic!("asked for a tie");
        let mut list = Skiplist::new();
        for part in 0..7 {
            let coming: Vec<_> = (0..900).map(|n| n * 7 + part).collect();
            let coming: Vec<_> = coming.iter().map(|&n| (u64::from(n), n)).collect();
            list.insert_sorted(&coming, never);
        }
        list.check_invariants(u64::from).unwrap();
        assert!(list.iter().eq((0..6300).map(|n| (u64::from(n), n))));
    }

    /// However many entries are removed from a leaf at once, the rest is not left in many small leaves.
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

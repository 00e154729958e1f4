use super::*;

/// Large lists of several levels. Ranges of every size are detached, one after the other.
fn detach_ranges<K: Key + std::fmt::Debug>(seed: u64, key: impl Fn(&mut Dice) -> K) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut twin = Twin::new();
    for round in 0..60 {
        let target = 1 << (4 + dice.below(11));
        while twin.sorted.len() < target {
            twin.insert(key(&mut dice), false);
        }
        for _ in 0..1 + dice.below(3) {
            let len = twin.sorted.len() as u64;
            let start = dice.below(len.max(1));
            let most = 1 << dice.below(16);
            let width = dice.below(most);
            let key_at = |at: u64| twin.sorted.get(at as usize).map(|e| e.0);
            let start_key = key_at(start).unwrap_or_else(|| key(&mut dice));
            let end_key = key_at(start + width).unwrap_or_else(|| key(&mut dice));
            twin.detach(start_key.min(end_key)..=start_key.max(end_key));
            twin.check(start_key);
            if dice.below(3) == 0 {
                let most = dice.below(twin.sorted.len() as u64 + 1) + 1;
                twin.detach_first(dice.below(most) as usize);
                twin.check(start_key);
            }
        }
        let popped = dice.below(twin.detached.len() as u64 * 3 / 2 + 1);
        (0..popped).for_each(|_| twin.pop_detached());
        twin.check(key(&mut dice));
        if round % 10 == 9 {
            // The whole list is detached, and a new one grows beside it.
            if let (Some(first), Some(last)) = (twin.list.first(), twin.list.last()) {
                twin.detach(first.0..=last.0);
                twin.check(first.0);
                assert!(twin.list.is_empty());
            }
        }
    }
    while !twin.detached.is_empty() {
        twin.pop_detached();
    }
    while !twin.sorted.is_empty() {
        twin.pop();
    }
    assert_eq!(twin.list.memory_bytes(), 0);
}

#[test]
fn any_range_can_be_detached() {
    for seed in 1..=3 {
        detach_ranges(seed, |d| d.below(1 << 40));
        detach_ranges(seed, |d| d.below(1000 * seed));
        detach_ranges(seed, |d| d.below(3));
        detach_ranges(seed, |d| ReadyKey {
            priority: d.below(seed * seed) as i32,
            due: d.below(100 * seed * seed * seed),
        });
    }
}

/// A node inside a level whose first entry was removed begins after its separator. A range that
/// begins with that node is detached from its first link on.
#[test]
fn a_range_may_begin_with_a_node() {
    let mut list = Skiplist::new();
    (0..20_000).for_each(|n| list.insert(u64::from(n), n, u64::from));
    let nodes: Vec<u32> = list.uppers[0].ids().collect();
    for pair in nodes.windows(2).skip(1) {
        let leaf = |l: &Skiplist<u64>, n: u32, at: usize| l.uppers[0][n].values()[at].child;
        let first = list.bottom[leaf(&list, pair[0], 0)].keys()[0];
        assert!(list.remove(first, first as u32, u64::from));
        let end = list.bottom[leaf(&list, pair[0], 2)].keys()[5];
        assert_eq!(list.detach(first + 1..=end) as u64, end - first);
        list.check_invariants(u64::from).unwrap();
    }
}

/// Detached entries take memory until they are popped.
#[test]
fn small_neighbours_merge_where_ranges_went() {
    // Of each four leaves, one keeps a few entries, and another loses a few: in turn, the leaf
    // before the range is small, or the one after it.
    for is_before in [true, false] {
        let mut list = Skiplist::new();
        (0..100_000).for_each(|n| list.insert(u64::from(n), n, u64::from));
        let whole = list.memory_bytes();
        for n in (1..390).map(|n| n * 256) {
            let range = if is_before {
                n + 16..=n + 259
            } else {
                100_092 - n..=100_096 - n + 239
            };
            assert!(list.detach(range) > 100);
        }
        list.check_invariants(u64::from).unwrap();
        assert!(list.memory_bytes() >= whole * 9 / 10);
        while list.pop_detached().is_some() {}
        assert!(list.memory_bytes() < list.len() * 12 * 4);
        let nodes = list.bottom.ids().count();
        assert!(
            nodes * 24 < list.len(),
            "{nodes} for {} entries",
            list.len()
        );
        list.check_invariants(u64::from).unwrap();
    }
}

#[test]
fn an_empty_or_inverted_range_detaches_nothing() {
    let mut list = Skiplist::new();
    assert_eq!(list.detach(0u64..=u64::MAX), 0);
    (0..5000).for_each(|n| list.insert(u64::from(n) * 2, n, u64::from));
    assert_eq!(list.detach(77..=77), 0);
    assert_eq!(list.detach(10_000..=u64::MAX), 0);
    #[allow(clippy::reversed_empty_ranges)]
    let inverted = 900..=100;
    assert_eq!(list.detach(inverted), 0);
    assert!(!list.has_detached() && list.pop_detached().is_none());
    assert_eq!(list.len(), 5000);
    list.check_invariants(u64::from).unwrap();
}

use super::*;
use crate::storage::relocate::tests::bytes_moved;
use std::collections::HashMap;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Handle to hash, from the best to the worst of hashes.
const HASHES: [fn(u32) -> u64; 5] = [
    |h| mix(u64::from(h) + 1),
    |h| mix(u64::from(h) % 97),
    |h| mix(u64::from(h)) >> 20,
    |h| {
        if h % 2 == 0 {
            u64::MAX
        } else {
            mix(u64::from(h)) >> 52 << 32
        }
    },
    |_| 0x8000_0000_1234_5678,
];

fn filled(handles: std::ops::Range<u32>, hash_of: fn(u32) -> u64) -> IdTable {
    let mut table = IdTable::new();
    handles.for_each(|h| table.insert(hash_of(h), h));
    table
}

#[test]
fn agrees_with_a_hash_map() {
    for (seed, hash_of) in HASHES.into_iter().enumerate() {
        let mut random = Random(seed as u64);
        let mut table = IdTable::new();
        let mut twin: HashMap<u32, u64> = HashMap::new();
        for step in 0..6000 {
            // few handles, then many, then few: removals catch up with inserts and fall behind
            let handles = if step / 1500 % 2 == 0 { 2000 } else { 100 };
            let h = (mix(step) % handles) as u32;
            let hash = hash_of(h);
            let found = twin.get(&h).map(|_| h);
            let (searched, near) = table.search(hash, |x| x == h);
            assert_eq!(searched, found);
            // A place that belongs to another table, too.
            let at = [near.at, u32::MAX, random.below(200) as u32][random.below(3) as usize];
            let near = Near { at, ..near };
            if found.is_none() && random.below(3) > 0 {
                table.insert_near(hash, h, near);
                twin.insert(h, hash);
            } else {
                let removed = table.remove_at(near, h) || table.remove(hash, h);
                assert_eq!(removed, twin.remove(&h).is_some());
            }
            if handles == 100 {
                let h = random.below(2000) as u32;
                assert_eq!(table.remove(hash_of(h), h), twin.remove(&h).is_some());
            }
            assert_eq!(table.len(), twin.len());
            if step % 8 == 0 || table.len() < 100 {
                table.check_invariants(|h| twin[&h]).unwrap();
            }
        }
        let mut all: Vec<u32> = table.handles().collect();
        all.sort_unstable();
        let mut expected: Vec<u32> = twin.keys().copied().collect();
        expected.sort_unstable();
        assert_eq!(all, expected);
    }
}

#[test]
fn large_growth_and_shrinking() {
    let hash_of = HASHES[0];
    let mut table = filled(0..200_000, hash_of);
    table.check_invariants(hash_of).unwrap();
    let longest = table.shards.iter().map(Vec::len).max();
    assert!(longest < Some(3 * SPLIT_ABOVE), "{longest:?}");
    assert!((0..200_000).all(|h| table.find(hash_of(h), |x| x == h) == Some(h)));
    assert!((200_000..400_000).all(|h| table.find(hash_of(h), |x| x == h).is_none()));
    for h in 0..200_000 {
        assert!(table.remove(hash_of(h), h));
        if h % 9973 == 0 {
            table.check_invariants(hash_of).unwrap();
        }
    }
    table.check_invariants(hash_of).unwrap();
    assert_eq!(
        (table.len(), table.count, table.scan(0, |_| panic!())),
        (0, 1, 0)
    );
}

#[test]
fn many_equal_hashes_stay_right() {
    let hash_of = HASHES[4];
    let mut table = filled(0..5000, hash_of);
    table.check_invariants(hash_of).unwrap();
    assert_eq!(table.find(hash_of(0), |x| x == 4999), Some(4999));
    for h in (0..5000).rev() {
        assert!(table.remove(hash_of(h), h));
    }
    assert_eq!(table.len(), 0);
    table.check_invariants(hash_of).unwrap();
}

#[test]
fn asks_only_about_equal_ranks() {
    let table = filled(0..100_000, HASHES[0]);
    let mut asked = 0;
    for h in 0..100_000 {
        table.find(HASHES[0](h), |x| {
            asked += 1;
            x == h
        });
        table.find(HASHES[0](h + 100_000), |_| {
            asked += 1;
            false
        });
    }
    assert!((100_000..100_020).contains(&asked), "{asked}");
}

/// While a scan runs, all but the first 500 handles come and go, up to `most` at a time.
fn scan_through(hash_of: fn(u32) -> u64, most: u32, seed: u64) {
    let mut random = Random(seed);
    let mut table = filled(0..500, hash_of);
    let mut guests: Vec<u32> = Vec::new();
    let mut next = 500;
    for _ in 0..random.below(u64::from(most)) {
        table.insert(hash_of(next), next);
        guests.push(next);
        next += 1;
    }
    let mut seen = HashMap::new();
    let mut cursor = 0;
    loop {
        let after = table.scan(cursor, |h| *seen.entry(h).or_insert(0) += 1);
        assert!(after == 0 || after > cursor);
        cursor = after;
        if cursor == 0 {
            break;
        }
        let target = random.below(u64::from(most)) as usize;
        for _ in 0..random.below(400) {
            if guests.len() < target {
                table.insert(hash_of(next), next);
                guests.push(next);
                next += 1;
            } else if !guests.is_empty() {
                let h = guests.swap_remove(random.below(guests.len() as u64) as usize);
                assert!(table.remove(hash_of(h), h));
            }
        }
    }
    table.check_invariants(hash_of).unwrap();
    assert!(
        (0..500).all(|h| seen.get(&h) == Some(&1)),
        "a handle was missed or came twice"
    );
}

#[test]
fn scan_keeps_its_promise_in_growth_and_shrinking() {
    for hash_of in HASHES {
        for seed in 0..5 {
            scan_through(hash_of, 3000, seed);
        }
    }
}

#[test]
fn scan_steps_are_small() {
    let table = filled(0..50_000, HASHES[0]);
    let (mut cursor, mut calls) = (0, 0);
    loop {
        let mut visited = 0;
        cursor = table.scan(cursor, |_| visited += 1);
        calls += 1;
        assert!(visited <= SCAN_STEP + 2);
        if cursor == 0 {
            break;
        }
    }
    assert!(calls < 50_000 / 4, "{calls}");
}

/// Ranks on and just below the borders of leaves, where a cut is easily off by one.
#[test]
fn borders_of_leaves() {
    let hash_of = |h: u32| {
        let border = u64::from(h / 2) << 22;
        let (mut low, mut high) = (0, u64::from(u32::MAX));
        while low < high {
            let middle = (low + high) / 2;
            if u64::from(rank_of(middle << 32)) < border {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.saturating_sub(u64::from(h % 2)) << 32
    };
    let exact = (0..2048)
        .filter(|&h| rank_of(hash_of(h)).trailing_zeros() >= 22)
        .count();
    assert!(exact > 512, "{exact}");
    let mut table = filled(0..2048, hash_of);
    table.check_invariants(hash_of).unwrap();
    for h in 0..2048 {
        assert_eq!(table.find(hash_of(h), |x| x == h), Some(h));
    }
    for h in 0..2048 {
        assert!(table.remove(hash_of(h), h));
        table.check_invariants(hash_of).unwrap();
    }
}

#[test]
fn any_cursor_is_safe() {
    let mut random = Random(7);
    for size in [0, 1, 7, 100, 5000] {
        let table = filled(0..size, HASHES[0]);
        let mut starts = vec![1, u64::MAX, 1 << 63, 1 << 32, (1 << 32) - 1, 1 << 31];
        starts.extend((0..50).map(|_| random.next()));
        starts.extend((0..20).map(|_| random.next() >> 32));
        for mut cursor in starts {
            let mut calls = 0;
            while cursor != 0 {
                cursor = table.scan(cursor, |h| assert!(h < size));
                calls += 1;
                assert!(calls < 5000);
            }
        }
    }
}

#[test]
fn memory_is_compact_at_every_size() {
    let hash_of = HASHES[0];
    let mut table = IdTable::new();
    assert!(table.memory_bytes() == 0 && size_of::<IdTable>() <= 64);
    table.insert(hash_of(0), 0);
    assert!(table.memory_bytes() <= 100, "{}", table.memory_bytes());
    let fits = |t: &IdTable| t.len() < 10_000 || t.memory_bytes() <= t.len() * 11;
    for h in 1..150_000 {
        table.insert(hash_of(h), h);
        assert!(
            fits(&table),
            "{} bytes for {}",
            table.memory_bytes(),
            table.len()
        );
    }
    for h in 0..150_000 {
        table.remove(hash_of(h), h);
        assert!(
            fits(&table),
            "{} bytes for {}",
            table.memory_bytes(),
            table.len()
        );
    }
    table = IdTable::new();
    assert_eq!(table.memory_bytes(), 0);
}

#[test]
fn ranks_ascend_and_reach_both_ends() {
    assert_eq!((rank_of(0), rank_of(u64::MAX)), (0, u32::MAX - 1));
    let ranks: Vec<u32> = (0..1 << 16).map(|x| rank_of(x << 48)).collect();
    assert!(ranks.is_sorted_by(|a, b| a < b));
}

/// The pages of a table of more than one shard.
fn pages(table: &mut IdTable) -> &mut Vec<Vec<Shard>> {
    match &mut table.shards {
        Shards::Pages(pages) => pages,
        Shards::One(_) => panic!("one shard"),
    }
}

/// Each kind of damage must be found, or the checks above prove nothing.
#[test]
fn check_invariants_can_fail() {
    let harms: [fn(&mut IdTable); 9] = [
        |t| t.len += 1,
        |t| t.capacity -= 1,
        |t| t.count -= 1,
        |t| pages(t)[0][3].swap(0, 1),
        |t| pages(t)[0][3][0] ^= 1,
        |t| pages(t)[0].swap(0, 1),
        |t| {
            pages(t)[0][3].pop();
        },
        |t| pages(t).push(Vec::new()),
        |t| {
            pages(t)[0][3].reserve_exact(1000);
            t.capacity = t.shards.iter().map(Vec::capacity).sum();
        },
    ];
    for (i, harm) in harms.into_iter().enumerate() {
        let mut table = filled(0..1000, HASHES[0]);
        table.check_invariants(HASHES[0]).unwrap();
        harm(&mut table);
        assert!(
            table.check_invariants(HASHES[0]).is_err(),
            "harm {i} went unseen"
        );
    }
    let table = filled(0..1000, HASHES[0]);
    assert!(
        table.check_invariants(HASHES[1]).is_err(),
        "wrong hashes went unseen"
    );
}

#[test]
fn made_at_once_is_as_made_one_by_one() {
    for hash_of in HASHES {
        for count in [0, 1, 64, 65, 1000, 70_000] {
            // Tables with few distinct hashes have long shards, so this is quadratic.
            let count = if hash_of(1) == hash_of(3) {
                count.min(1000)
            } else {
                count
            };
            let mut entries = bulk::Entries::default();
            (0..count).for_each(|h| entries.push(hash_of(h), h));
            let mut table = entries.into_table(|_, _| false).expect("no id twice");
            table.check_invariants(hash_of).unwrap();
            let one_by_one = filled(0..count, hash_of);
            assert!(table.handles().eq(one_by_one.handles()));
            // The table then works as any other.
            (count..count + 200).for_each(|h| table.insert(hash_of(h), h));
            (0..count).for_each(|h| assert!(table.remove(hash_of(h), h)));
            table.check_invariants(hash_of).unwrap();
            assert_eq!(table.len(), 200);
        }
    }
}

#[test]
fn an_id_that_comes_twice_is_noticed() {
    for hash_of in HASHES {
        let mut entries = bulk::Entries::default();
        (0..500).for_each(|h| entries.push(hash_of(h % 499), h));
        // Handles 0 and 499 have the same id.
        let same = |a: u32, b: u32| a % 499 == b % 499;
        assert!(entries.clone().into_table(same).is_none());
        assert!(entries.into_table(|_, _| false).is_some());
    }
}

#[test]
fn all_but_the_list_of_pages_is_moved() {
    let mut table = filled(0..200_000, HASHES[0]);
    assert!(pages(&mut table).len() > 2);
    let apart = pages(&mut table).capacity() * size_of::<Vec<Shard>>();
    let moved = bytes_moved(|from, mover| table.relocate(from, mover));
    assert_eq!(moved + apart, table.memory_bytes());
    table.check_invariants(HASHES[0]).unwrap();
}

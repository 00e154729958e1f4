mod detach;

use super::key::SEGMENT;
use super::*;
use std::cell::Cell;
use std::ops::{Range, RangeInclusive};

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Handles are reused and do not follow the order; ties only grow.
struct Twin<K: Key> {
    list: Skiplist<K>,
    sorted: Vec<(K, u64, u32)>,
    ties: Vec<u64>,
    free: Vec<u32>,
    next_tie: u64,
    /// What was detached and not popped since, sorted; the handles may be in use again.
    detached: Vec<(K, u32)>,
    /// A hint made some time ago.
    approached: Option<(K, InsertHint<K>)>,
}

impl<K: Key + std::fmt::Debug> Twin<K> {
    fn new() -> Self {
        Twin {
            list: Skiplist::new(),
            sorted: vec![],
            ties: vec![],
            free: vec![],
            next_tie: 0,
            detached: vec![],
            approached: None,
        }
    }

    /// Inserts an entry, mostly with the newest tie, sometimes with one that was left out before.
    /// Uses a hint made just now, one made before other changes, or none.
    fn insert(&mut self, mut key: K, late: bool) {
        let mut hint = Some(self.list.insert_hint(key));
        match self.next_tie % 10 {
            0 => hint = None,
            2 => self.approached = hint.take().map(|hint| (key, hint)),
            4 => {
                let approached = self.approached.take();
                (key, hint) = approached.map_or((key, None), |(key, hint)| (key, Some(hint)));
            }
            // A hint for another key.
            6 => {
                hint = self
                    .sorted
                    .first()
                    .map(|first| self.list.insert_hint(first.0))
            }
            _ => {}
        }
        let handle = self.free.pop().unwrap_or_else(|| {
            self.ties.push(0);
            self.ties.len() as u32 - 1
        });
        self.next_tie += 2;
        let mut tie = self.next_tie;
        if late {
            tie = (tie / 2) | 1;
            while self.sorted.iter().any(|e| e.1 == tie) {
                tie += 2;
            }
        }
        self.ties[handle as usize] = tie;
        let tie_of = |h: u32| self.ties[h as usize];
        self.list.insert_by(hint.as_ref(), key, handle, tie_of);
        let at = self.sorted.partition_point(|e| (e.0, e.1) < (key, tie));
        self.sorted.insert(at, (key, tie, handle));
    }

    fn remove(&mut self, at: usize) {
        let (key, _, handle) = self.sorted.remove(at);
        assert!(self.list.remove(key, handle, |h| self.ties[h as usize]));
        assert!(!self.list.remove(key, handle, |h| self.ties[h as usize]));
        self.free.push(handle);
    }

    fn pop(&mut self) {
        let expected = (!self.sorted.is_empty()).then(|| self.sorted.remove(0));
        assert_eq!(self.list.pop_first(), expected.map(|e| (e.0, e.2)));
        self.free.extend(expected.map(|e| e.2));
    }

    fn detach(&mut self, keys: RangeInclusive<K>) {
        let start = self.sorted.partition_point(|e| e.0 < *keys.start());
        let end = self.sorted.partition_point(|e| e.0 <= *keys.end());
        let gone = start..end.max(start);
        assert_eq!(self.list.detach(keys), gone.len());
        self.has_detached(gone);
    }

    fn detach_first(&mut self, count: usize) {
        let next = self.sorted.get(count).map(|e| (e.0, e.2));
        assert_eq!(self.list.nth(count), next);
        self.list.detach_first(count);
        assert_eq!(self.list.first(), next);
        self.has_detached(0..count);
    }

    fn has_detached(&mut self, gone: Range<usize>) {
        let gone: Vec<_> = self.sorted.drain(gone).collect();
        self.free.extend(gone.iter().map(|e| e.2));
        self.detached.extend(gone.iter().map(|e| (e.0, e.2)));
        self.detached.sort_unstable();
    }

    fn pop_detached(&mut self) {
        let popped = self.list.pop_detached();
        assert_eq!(popped.is_none(), self.detached.is_empty());
        if let Some(entry) = popped {
            let at = self.detached.binary_search(&entry);
            self.detached.remove(at.expect("one that was detached"));
        }
    }

    fn check(&self, probe: K) {
        let mut detached: Vec<_> = self.list.detached().collect();
        detached.sort_unstable();
        assert_eq!(detached, self.detached);
        assert_eq!(self.list.has_detached(), !detached.is_empty());
        self.list
            .check_invariants(|h| self.ties[h as usize])
            .unwrap();
        let entries = || self.sorted.iter().map(|e| (e.0, e.2));
        assert!(self.list.iter().eq(entries()));
        assert_eq!(
            (self.list.first(), self.list.last()),
            (entries().next(), entries().next_back())
        );
        assert_eq!(
            self.list.count_below(probe, false),
            entries().filter(|e| e.0 < probe).count()
        );
        assert_eq!(
            self.list.count_below(probe, true),
            entries().filter(|e| e.0 <= probe).count()
        );
        assert!(self
            .list
            .iter_from(probe)
            .eq(entries().filter(|e| e.0 >= probe)));
    }
}

fn play<K: Key + std::fmt::Debug>(
    seed: u64,
    steps: u64,
    every: u64,
    target: u64,
    key: impl Fn(&mut Dice) -> K,
    also: impl Fn(&Twin<K>, K),
) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut twin = Twin::new();
    let mut growing = true;
    for step in 0..steps {
        let len = twin.sorted.len() as u64;
        growing = if len == 0 {
            true
        } else if len >= target {
            false
        } else {
            growing
        };
        let k = key(&mut dice);
        match dice.below(100) {
            0..3 if dice.below(every) == 0 => {
                let other = key(&mut dice);
                twin.detach(k.min(other)..=k.max(other));
            }
            3..8 => (0..dice.below(60)).for_each(|_| twin.pop_detached()),
            n if n < 20 => twin.pop(),
            n if len > 0 && (n < 45 || (!growing && n < 85)) => {
                twin.remove(dice.below(len) as usize)
            }
            n => (0..1 + n % 3).for_each(|i| twin.insert(k, i == 2)),
        }
        if step % every == 0 {
            twin.check(k);
            also(&twin, k);
        }
    }
    while !twin.sorted.is_empty() {
        twin.pop();
    }
    twin.check(key(&mut dice));
    while !twin.detached.is_empty() {
        twin.pop_detached();
    }
    twin.check(key(&mut dice));
    assert_eq!(twin.list.memory_bytes(), 0);
}

#[test]
fn agrees_with_a_sorted_vec() {
    for seed in 1..=20 {
        play(seed, 2_000, 1, 20 * seed, |d| d.below(40 * seed), |_, _| ());
        play(seed, 2_000, 1, 20 * seed, |d| d.below(3), |_, _| ());
    }
    for (seed, keys) in [(21, 1), (22, 50), (23, 1 << 40)] {
        play(seed, 60_000, 500, 9_000, |d| d.below(keys), |_, _| ());
    }
}

#[test]
fn finds_what_is_due() {
    fn due(twin: &Twin<ReadyKey>, probe: ReadyKey) {
        let due = || {
            twin.sorted
                .iter()
                .filter(|e| e.0.due <= probe.due)
                .map(|e| (e.0, e.2))
        };
        assert!(twin.list.iter_due(probe.due).eq(due()));
        assert_eq!(twin.list.first_due(probe.due), due().next());
    }
    for seed in 1..=10 {
        let (priorities, dues) = (1 + seed % 4 * 3, 1 + seed * seed * 5);
        let key = |d: &mut Dice| ReadyKey {
            priority: d.below(priorities) as i32 - 3,
            due: d.below(dues),
        };
        play(seed, 2_000, 1, 40 * seed, key, due);
        play(seed, 40_000, 500, 6_000, key, due);
    }
}

#[test]
fn an_entry_keeps_its_place_when_its_floor_changes() {
    let (mut dice, mut list) = (Dice(9), Skiplist::new());
    let mut floors: Vec<u64> = (0..6_000).map(|_| dice.below(100)).collect();
    let key = |turn: u64, at: u64| TurnKey { turn, at };
    for (turn, &at) in (0..).zip(&floors) {
        list.insert(key(turn, at), turn as u32, |_| 0);
    }
    for step in 0..2_000 {
        let turn = dice.below(6_000);
        // To the least of all, which its links then know, and away from it.
        let at = [0, dice.below(100), 100][dice.below(3) as usize];
        floors[turn as usize] = at;
        assert!(list.set_floor(key(turn, at), turn as u32, |_| 0));
        assert!(!list.set_floor(key(turn, at), turn as u32 + 1, |_| 0));
        if step % 50 == 0 {
            list.check_invariants(|_| 0).unwrap();
            let due = (0..).zip(&floors).filter(|it| *it.1 <= 1);
            let found = list.iter_due(1).map(|(_, handle)| handle);
            assert!(found.eq(due.map(|it| it.0)));
        }
    }
}

#[test]
fn asks_for_ties_only_where_keys_are_equal() {
    let mut dice = Dice(7);
    let mut list = Skiplist::new();
    let mut keys: Vec<u64> = (0..20_000).map(|n| n << 20 | dice.below(1 << 20)).collect();
    for n in (1..keys.len()).rev() {
        keys.swap(n, dice.below(n as u64 + 1) as usize);
    }
    let never = |_| panic!("asked for a tie");
    keys.iter()
        .zip(0..)
        .for_each(|(k, h)| list.insert(*k, h, never));
    list.check_invariants(|h| h as u64).unwrap();
    assert!(keys.iter().zip(0..).all(|(k, h)| list.remove(*k, h, never)));
    assert_eq!(list.memory_bytes(), 0);
}

#[test]
fn asks_for_few_ties_where_all_keys_are_equal() {
    let asked = Cell::new(0);
    let most = Cell::new(0);
    let tie = |h: u32| {
        asked.set(asked.get() + 1);
        h as u64
    };
    let count = || most.set(most.get().max(asked.replace(0)));
    let mut list = Skiplist::new();
    let mut dice = Dice(5);
    let mut handles: Vec<u32> = (0..50_000).collect();
    for round in 0..2 {
        for h in &handles {
            list.insert(1u64, *h, tie);
            count();
        }
        list.check_invariants(|h| h as u64).unwrap();
        for n in (1..handles.len()).rev() {
            handles.swap(n, dice.below(n as u64 + 1) as usize);
        }
        for h in &handles {
            assert!(list.remove(1, *h, tie));
            count();
        }
        assert!(most.get() <= [25, 32][round], "asked {} times", most.get());
    }
}

#[test]
fn memory_follows_the_number_of_entries() {
    let tie = |h: u32| h as u64;
    let mut list = Skiplist::new();
    assert!(mem::size_of::<Skiplist<u64>>() <= 72 && list.memory_bytes() == 0);
    (0..8).for_each(|n| list.insert(n as u64, n, tie));
    assert!(
        list.memory_bytes() < 200,
        "{} bytes for 8 entries",
        list.memory_bytes()
    );
    (8..100_000).for_each(|n| list.insert(n as u64, n, tie));
    assert!(list.memory_bytes() < 100_000 * 14);
    // The worst case for removals: a sixteenth remains, spread over all nodes.
    (0..100_000)
        .filter(|n| n % 16 != 0)
        .for_each(|n| assert!(list.remove(n as u64, n, tie)));
    assert!(
        list.memory_bytes() < 6_250 * 12 * 2 + 100_000,
        "{} bytes",
        list.memory_bytes()
    );
    list.check_invariants(tie).unwrap();
    while list.len() > 4 {
        list.pop_first();
    }
    assert!(
        list.memory_bytes() < 2 * SEGMENT * 64,
        "{} bytes for 4 entries",
        list.memory_bytes()
    );
    let mut list = Skiplist::new();
    (0..64).for_each(|n| list.insert(n as u64, n, tie));
    (0..60).for_each(|n| assert_eq!(list.pop_first(), Some((n as u64, n))));
    assert!(
        list.memory_bytes() < 200,
        "{} bytes for 4 entries",
        list.memory_bytes()
    );
}

#[test]
fn a_corrupted_list_is_found_out() {
    type Corruption = fn(&mut Skiplist<ReadyKey>);
    let corruptions: [Corruption; 16] = [
        |l| l.len += 1,
        |l| l.bottom[3].keys.swap(1, 10),
        |l| l.bottom[3].values.swap(4, 5),
        |l| l.bottom[2].next = 4,
        |l| l.bottom[2].prev = 0,
        |l| l.bottom.segments[0].live -= 1,
        |l| l.uppers[0][0].values[1].span += 1,
        |l| l.uppers[0][0].values[1].floor -= 1,
        |l| l.uppers[0][0].values[2].tie.0 += 1000,
        |l| l.uppers[0][0].values.swap(1, 2),
        |l| l.height -= 1,
        |l| l.bottom.detached = NIL,
        |l| l.bottom.detached = l.bottom[l.bottom.detached].next,
        |l| l.uppers[0].detached = NIL,
        |l| {
            while l.bottom.detached != NIL {
                l.bottom.free_detached()
            }
        },
        |l| l.uppers.push(Level::new()),
    ];
    for (number, corrupt) in corruptions.into_iter().enumerate() {
        let mut list = Skiplist::new();
        let key = |h| ReadyKey {
            priority: 0,
            due: 5 + h as u64 / 100,
        };
        (0..1300).for_each(|h| list.insert(key(h), h, |h| h as u64));
        assert_eq!(list.detach(key(1000)..=key(1299)), 300);
        list.check_invariants(|h| h as u64).unwrap();
        corrupt(&mut list);
        assert!(
            list.check_invariants(|h| h as u64).is_err(),
            "corruption {number} passed"
        );
    }
}

#[test]
fn equal_ties_do_not_make_two_entries_one() {
    let mut list = Skiplist::new();
    let handles: Vec<u32> = (0..1000).map(|n| n * 7919 % 1000).collect();
    for &handle in &handles {
        list.insert(5u64, handle, |_| 1);
    }
    list.check_invariants(|_| 1).unwrap();
    for &handle in handles.iter().rev() {
        assert!(list.remove(5, handle, |_| 1), "{handle}");
        assert!(!list.remove(5, handle, |_| 1), "{handle} again");
    }
    assert_eq!(list.len(), 0);
}

#[test]
fn a_way_is_no_way_through_what_came_after_the_list_was_empty() {
    let tie = u64::from;
    let mut list = Skiplist::new();
    (0..100).for_each(|n| list.insert(10 * u64::from(n), n, tie));
    let hint = list.insert_hint(905);
    while list.pop_first().is_some() {}
    // The same number of changes as before.
    (0..100).for_each(|n| list.insert(1000 + u64::from(n), n, tie));
    list.insert_by(Some(&hint), 905, 100, tie);
    list.check_invariants(tie).unwrap();
    assert_eq!(list.first(), Some((905, 100)));
}

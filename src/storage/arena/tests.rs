use super::*;
use crate::storage::relocate::tests::bytes_moved;
use std::collections::HashMap;

/// A string with recognizable bytes, which leaves the arena's bits alone.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len)
        .map(|at| (seed as usize).wrapping_mul(31).wrapping_add(at * 7) as u8)
        .collect();
    bytes[HEAD_LAST] &= 3;
    bytes
}

/// The bytes without the arena's bits.
fn shown(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[HEAD_LAST] &= 3;
    bytes
}

struct Twin {
    arena: Arena,
    strings: HashMap<u32, Vec<u8>>,
    numbers: Vec<u32>,
    x: u64,
}

impl Twin {
    fn new() -> Self {
        Twin {
            arena: Arena::new(),
            strings: HashMap::new(),
            numbers: Vec::new(),
            x: 88172645463325252,
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.x ^= self.x << 13;
        self.x ^= self.x >> 7;
        self.x ^= self.x << 17;
        (self.x >> 16) as usize % below
    }

    fn insert(&mut self, len: usize) {
        let bytes = text(self.x, len);
        let (head, rest) = bytes.split_at(self.random(len));
        let number = self.arena.insert([head, rest]);
        let before = self.strings.insert(number, bytes);
        assert_eq!(before, None, "a number given twice");
        self.numbers.push(number);
    }

    fn remove(&mut self) {
        let at = self.random(self.numbers.len());
        let number = self.numbers.swap_remove(at);
        assert!(self.strings.remove(&number).is_some());
        assert!(self.arena.remove(number));
        assert!(!self.arena.remove(number), "removed twice");
        assert_eq!(self.arena.get(number), None);
    }

    fn gather(&mut self, most: usize) -> usize {
        let mut moved = 0;
        while let Some(old) = (moved < most).then(|| self.arena.misplaced()).flatten() {
            let new = self.arena.move_misplaced(old);
            let bytes = self.strings.remove(&old).expect("a string of ours");
            assert_eq!(
                self.strings.insert(new, bytes),
                None,
                "a number given twice"
            );
            let at = self.numbers.iter().position(|&it| it == old);
            self.numbers[at.expect("a number of ours")] = new;
            moved += 1;
        }
        moved
    }

    fn check(&self) {
        self.arena.check_invariants().unwrap();
        assert_eq!(self.arena.len(), self.strings.len());
        for (&number, bytes) in &self.strings {
            assert_eq!(&shown(self.arena.get(number).unwrap()), bytes);
        }
    }
}

#[test]
fn agrees_with_a_map_under_random_traffic() {
    for arena in [Arena::new(), Arena::fine()] {
        agrees_with_a_map(Twin {
            arena,
            ..Twin::new()
        });
    }
}

fn agrees_with_a_map(mut twin: Twin) {
    for step in 0..60_000usize {
        let growing = (step / 6_000) % 2 == 0;
        if twin.numbers.is_empty() || twin.random(10) < if growing { 7 } else { 2 } {
            let most = [40, 200, 1_100, 3_000][twin.random(4)];
            let len = 17 + twin.random(most);
            twin.insert(len);
        } else {
            twin.remove();
        }
        if twin.random(200) == 0 {
            let most = twin.random(300);
            twin.gather(most);
        }
        if step % 500 == 0 {
            twin.check();
        }
    }
    while !twin.numbers.is_empty() {
        twin.remove();
    }
    twin.check();
    let classes = allocated(twin.arena.classes.capacity() * size_of::<Class>());
    let lists = classes + twin.arena.long.memory_bytes();
    assert_eq!(
        twin.arena.memory_bytes(),
        lists,
        "an empty arena holds no pages"
    );
}

/// At most 97 bytes for each string of 96: a page of 85, its entry, and the page's spare bytes.
#[test]
fn many_strings_of_a_size_take_little_more_than_themselves() {
    let mut twin = Twin::new();
    (0..100_000).for_each(|_| twin.insert(96));
    let each = twin.arena.memory_bytes() as f64 / 100_000.0;
    assert!(each < 97.5, "{each}");
}

#[test]
fn what_lies_scattered_is_gathered_and_its_pages_go() {
    let mut twin = Twin::new();
    (0..20_000).for_each(|at| twin.insert([96, 96, 208, 1_000][at % 4]));
    let full = twin.arena.memory_bytes();
    while twin.numbers.len() > 1_000 {
        twin.remove();
    }
    assert!(
        twin.arena.memory_bytes() * 10 > full * 4,
        "pages are pinned"
    );
    assert!(twin.arena.is_scattered());
    // In steps, each of which leaves all invariants intact.
    let mut rounds = 0;
    while twin.gather(100) == 100 {
        twin.check();
        rounds += 1;
    }
    assert!(rounds > 5 && !twin.arena.is_scattered());
    twin.check();
    let content: usize = twin.strings.values().map(Vec::len).sum();
    assert!(twin.arena.memory_bytes() < 2 * content + 10_000);
}

/// The longest string of each slot size.
fn sizes() -> impl Iterator<Item = usize> {
    (1..=SHORT_MAX / 16)
        .map(|step| step * 16)
        .filter(|&len| size_for(len, false) == len)
}

/// Gathering neither starts again where it ended nor goes on for ever. Checked for each size and
/// each number of strings left of so many.
#[test]
fn strings_of_any_size_and_number_are_dense_once_they_are_gathered() {
    let mut gathered = 0;
    for size in sizes() {
        for left in 1..=300 {
            let mut twin = Twin::new();
            (0..left).for_each(|_| twin.insert(size));
            let class = &twin.arena.classes[0];
            assert!(class.is_dense(), "{left} of {size} afresh: {class:?}");
            let more = twin.random(3 * left);
            (0..more).for_each(|_| twin.insert(size));
            (0..more).for_each(|_| twin.remove());
            if twin.arena.is_scattered() {
                let moved = twin.gather(4 * left + SLOTS_MAX);
                // A string may move into a half-empty page, and later out of it.
                assert!(moved <= 2 * left, "{left} of {size}: {moved} moves");
                let class = &twin.arena.classes[0];
                assert!(class.is_dense() && !class.is_scattered(), "{class:?}");
                gathered += 1;
            }
            assert!(!twin.arena.is_scattered() && twin.arena.overhang <= FREE_MAX);
            twin.arena.check_invariants().unwrap();
        }
    }
    assert!(gathered > 1_000, "{gathered}");
}

/// A few strings that are left, of one size or of all, do not keep pages of many times their bytes.
#[test]
fn few_strings_take_few_pages() {
    let mut one = Twin::new();
    (0..32).for_each(|_| one.insert(960));
    (0..28).for_each(|_| one.remove());
    let mut all = Twin::new();
    (0..30).for_each(|_| sizes().for_each(|size| all.insert(size)));
    let classes = sizes().count();
    while all.numbers.len() > classes {
        all.remove();
    }
    for twin in [&mut one, &mut all] {
        let content: usize = twin.strings.values().map(Vec::len).sum();
        assert!(twin.arena.bytes > 2 * content + FREE_MAX as usize);
        assert!(twin.arena.is_scattered());
        twin.gather(usize::MAX);
        twin.check();
        let content = content as f64;
        let bytes = twin.arena.bytes as f64;
        assert!(bytes < 1.6 * content, "{bytes} bytes for {content}");
    }
}

#[test]
fn what_is_freed_in_steps_is_counted() {
    let mut twin = Twin::new();
    (0..10_000).for_each(|at| twin.insert(if at % 10 == 0 { 2_000 } else { 100 }));
    let steps = (0..).take_while(|_| twin.arena.free_some(256)).count();
    assert!(steps > 10 && twin.arena.len() == 0);
}

#[test]
fn each_array_is_moved_once() {
    let mut twin = Twin::new();
    (0..10_000).for_each(|at| twin.insert(20 + at % 1_500));
    let moved = bytes_moved(|from, mover| twin.arena.relocate_pages(from, mover))
        + bytes_moved(|from, mover| twin.arena.relocate_long(from, mover));
    assert!(moved * 100 > twin.arena.memory_bytes() * 90);
    twin.check();
}

//! Numbers in an order that the caller defines, four bytes each. Made for numbers that usually are
//! inserted last and removed first.
//!
//! ```text
//!   blocks:  [ 7 3 9 .. ]  [ 4 12 5 .. ]  [ 8 1 ]      up to 512 numbers each, ascending by their keys
//! ```
//!
//! Numbers with equal keys are in the order of insertion. The caller supplies a number's key, which
//! must not change while the number is here.

use crate::storage::allocated::allocated;
use crate::storage::relocate::{move_vec, Mover, STEP};
use std::collections::VecDeque;

type Block = Vec<u32>;

const BLOCK: usize = if cfg!(test) { 8 } else { 512 };
/// The capacity of the first block at its start.
const FIRST: usize = 4;

/// Numbers in the order of their keys.
#[derive(Clone, Debug, Default)]
pub struct Ordered {
    blocks: VecDeque<Block>,
    len: usize,
}

impl Ordered {
    pub const fn new() -> Self {
        Ordered {
            blocks: VecDeque::new(),
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn first(&self) -> Option<u32> {
        self.blocks.front()?.first().copied()
    }

    /// Inserts a number after those with the same key.
    pub fn insert(&mut self, number: u32, key: impl Fn(u32) -> u64) {
        let at = key(number);
        self.len += 1;
        let last = self.blocks.back().and_then(|block| block.last());
        if last.is_none_or(|&last| key(last) <= at) {
            return self.push(number);
        }
        let behind = |&number: &u32| key(number) <= at;
        let block = (self.blocks).partition_point(|block| block.first().is_some_and(behind));
        let block = block.saturating_sub(1);
        if self.blocks[block].len() == BLOCK {
            let upper = self.blocks[block].split_off(BLOCK / 2);
            self.blocks.insert(block + 1, upper);
        }
        let upper = self.blocks.get(block + 1);
        let is_upper = upper.is_some_and(|upper| upper.first().is_some_and(behind));
        let block = &mut self.blocks[block + usize::from(is_upper)];
        let place = block.partition_point(behind);
        reserve(block);
        block.insert(place, number);
    }

    fn push(&mut self, number: u32) {
        match self.blocks.back_mut().filter(|last| last.len() < BLOCK) {
            Some(last) => {
                reserve(last);
                last.push(number);
            }
            None => {
                let len = if self.blocks.is_empty() { FIRST } else { BLOCK };
                let mut block = Block::with_capacity(len);
                block.push(number);
                self.blocks.push_back(block);
            }
        }
    }

    /// The block of a number, and its index there.
    fn find(&self, number: u32, key: impl Fn(u32) -> u64) -> Option<(usize, usize)> {
        if self.first() == Some(number) {
            return Some((0, 0));
        }
        let at = key(number);
        let before = |&number: &u32| key(number) < at;
        let first = (self.blocks).partition_point(|block| block.last().is_none_or(before));
        for (index, block) in self.blocks.iter().enumerate().skip(first) {
            if block.first().is_none_or(|&first| key(first) > at) {
                break;
            }
            if let Some(place) = block.iter().position(|&other| other == number) {
                return Some((index, place));
            }
        }
        None
    }

    /// Removes a number; false if it was not there.
    pub fn remove(&mut self, number: u32, key: impl Fn(u32) -> u64) -> bool {
        let Some((index, place)) = self.find(number, key) else {
            return false;
        };
        let block = &mut self.blocks[index];
        block.remove(place);
        self.len -= 1;
        if block.is_empty() {
            self.blocks.remove(index);
        } else if block.len() <= BLOCK / 4 {
            self.merge(index);
            let before = index.checked_sub(1);
            let before = before.filter(|&it| self.blocks[it].len() <= BLOCK / 4);
            before.into_iter().for_each(|before| self.merge(before));
        }
        if self.blocks.is_empty() {
            self.blocks = VecDeque::new();
        }
        true
    }

    /// Joins a block that is nearly empty with the next one, if that is nearly empty, too.
    fn merge(&mut self, index: usize) {
        let next = self.blocks.get(index + 1).map_or(BLOCK, Vec::len);
        if next > BLOCK / 4 {
            return;
        }
        if let Some(mut next) = self.blocks.remove(index + 1) {
            let block = &mut self.blocks[index];
            block.append(&mut next);
        }
    }

    /// Replaces a number by another with the same key; false if it was not there.
    pub fn renumber(&mut self, old: u32, new: u32, key: impl Fn(u32) -> u64) -> bool {
        let found = self.find(old, key);
        if let Some((index, place)) = found {
            self.blocks[index][place] = new;
        }
        found.is_some()
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().flatten().copied()
    }

    /// All numbers except the first `place`.
    pub fn iter_at(&self, mut place: usize) -> impl Iterator<Item = u32> + '_ {
        let mut first = 0;
        while let Some(block) = self.blocks.get(first).filter(|it| it.len() <= place) {
            place -= block.len();
            first += 1;
        }
        let blocks = self.blocks.iter().skip(first).flatten();
        blocks.copied().skip(place)
    }

    /// The numbers whose key is `at` or larger.
    pub fn iter_from(&self, at: u64, key: impl Fn(u32) -> u64) -> impl Iterator<Item = u32> + '_ {
        let before = |&number: &u32| key(number) < at;
        let first = (self.blocks).partition_point(|block| block.last().is_none_or(before));
        let place = self.blocks.get(first);
        let place = place.map_or(0, |block| block.partition_point(before));
        let blocks = self.blocks.iter().skip(first).flatten();
        blocks.copied().skip(place)
    }

    /// How many numbers have a key of at most `at`.
    pub fn count_up_to(&self, at: u64, key: impl Fn(u32) -> u64) -> usize {
        let within = |&number: &u32| key(number) <= at;
        let blocks = (self.blocks).partition_point(|block| block.last().is_some_and(within));
        let whole: usize = self.blocks.iter().take(blocks).map(Vec::len).sum();
        let rest = self.blocks.get(blocks);
        whole + rest.map_or(0, |block| block.partition_point(within))
    }

    /// Frees about `count` numbers of a discarded list; false once all are freed.
    pub fn free_some(&mut self, count: usize) -> bool {
        let blocks = (0..count.div_ceil(BLOCK)).map_while(|_| self.blocks.pop_back());
        let freed: usize = blocks.map(|block| block.len()).sum();
        self.len -= freed;
        freed > 0
    }

    /// Moves the next few blocks: see [`crate::storage::relocate`].
    pub fn relocate(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        let from = from as usize;
        if from >= self.blocks.len() {
            return None;
        }
        let some = self.blocks.iter_mut().skip(from).take(STEP as usize);
        some.for_each(|block| move_vec(block, mover));
        Some(from as u32 + STEP)
    }

    /// The allocated bytes.
    pub fn memory_bytes(&self) -> usize {
        let blocks = self.blocks.iter();
        let blocks = blocks.map(|block| allocated(block.capacity() * size_of::<u32>()));
        allocated(self.blocks.capacity() * size_of::<Block>()) + blocks.sum::<usize>()
    }

    pub fn check_invariants(&self, key: impl Fn(u32) -> u64) -> Result<(), String> {
        let full = |block: &Block| (1..=BLOCK).contains(&block.len());
        if !self.blocks.iter().all(full) || self.iter().count() != self.len {
            return Err(format!("{} numbers, counted otherwise", self.len));
        }
        if !self.iter().is_sorted_by_key(&key) {
            return Err("numbers that are out of order".into());
        }
        Ok(())
    }
}

/// Doubles the capacity, up to a full block.
fn reserve(block: &mut Block) {
    if block.len() == block.capacity() {
        let wanted = (block.len() * 2).clamp(FIRST, BLOCK);
        block.reserve_exact(wanted.saturating_sub(block.len()).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::relocate::tests::bytes_moved;

    /// Compared with a sorted array under random operations. The keys have few values, so that many
    /// are equal.
    #[test]
    fn as_a_sorted_array() {
        let mut x = 88172645463325252u64;
        let mut random = move |below: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 16) % below
        };
        let (mut ordered, mut naive) = (Ordered::new(), Vec::<u32>::new());
        let mut keys: Vec<u64> = Vec::new();
        for step in 0..20_000u64 {
            let wave = step / 500 % 3;
            let of = |number: u32| keys[number as usize];
            match random(4) {
                0 | 1 if wave < 2 || naive.is_empty() => {
                    let late = random(3) > 0;
                    keys.push(if late { step / 40 } else { random(500) });
                    let of = |number: u32| keys[number as usize];
                    let number = keys.len() as u32 - 1;
                    ordered.insert(number, of);
                    let place = naive.partition_point(|&it| of(it) <= of(number));
                    naive.insert(place, number);
                }
                2 if !naive.is_empty() => {
                    let place = random(naive.len() as u64) as usize;
                    keys.push(of(naive[place]));
                    let new = keys.len() as u32 - 1;
                    let of = |number: u32| keys[number as usize];
                    assert!(ordered.renumber(naive[place], new, of));
                    naive[place] = new;
                }
                _ if !naive.is_empty() => {
                    let place = match random(2) {
                        0 => 0,
                        _ => random(naive.len() as u64) as usize,
                    };
                    let number = naive.remove(place);
                    assert!(ordered.remove(number, of));
                    assert!(!ordered.remove(number, of));
                }
                _ => {}
            }
            let of = |number: u32| keys[number as usize];
            ordered.check_invariants(of).unwrap();
            assert!(ordered.iter().eq(naive.iter().copied()));
            assert_eq!(ordered.first(), naive.first().copied());
            let place = random(naive.len() as u64 + 2) as usize;
            assert!(ordered.iter_at(place).eq(naive.iter().copied().skip(place)));
            let at = random(500);
            let from = naive.partition_point(|&it| of(it) < at);
            assert!(ordered.iter_from(at, of).eq(naive[from..].iter().copied()));
            let up_to = naive.partition_point(|&it| of(it) <= at);
            assert_eq!(ordered.count_up_to(at, of), up_to);
        }
        let moved = bytes_moved(|from, mover| ordered.relocate(from, mover));
        assert!(moved > 0 || naive.is_empty());
        while ordered.free_some(10) {}
        assert_eq!((ordered.iter().count(), ordered.len()), (0, 0));
    }

    #[test]
    fn takes_little() {
        let mut ordered = Ordered::new();
        (0..10_000).for_each(|number| ordered.insert(number, u64::from));
        assert!(ordered.memory_bytes() < 10_000 * 9);
        (0..10_000).for_each(|number| assert!(ordered.remove(number, u64::from)));
        assert_eq!(ordered.memory_bytes(), 0);
    }
}

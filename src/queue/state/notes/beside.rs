//! Steps that are too long to lie in the strings of their jobs, by series: a job has one, or none.
//!
//! ```text
//!   series ──► List:  numbers, in the order of first writing        by_name:  22 bits of a name's hash, 10 of its place in that order
//!                        │
//!                        ▼
//!              a record in an arena:   word   name   value
//!   word: bits 0-31 the series; 32-41 its place in the list; 48-55 name length - 1; 58-63 the arena's
//! ```
//!
//! So a step is found, written and added without looking at the others.

use crate::queue::job::STEPS_MAX;
use crate::queue::note::{Beside, NAME_LEN_SHIFT};
use crate::storage::allocated::allocated;
use crate::storage::arena::{Arena, HEAD_BITS};
use crate::storage::broken::{must, there};
use crate::storage::lazy::Unused;
use crate::storage::relocate::{move_vec, Mover};
use crate::storage::slab::Slab;

const PLACE_SHIFT: u32 = 32;
const PLACE: u64 = (1 << 10) - 1;
const PLACE_BITS: u32 = PLACE as u32;
const _: () = assert!(STEPS_MAX as u64 <= PLACE + 1 && 0xff << NAME_LEN_SHIFT < HEAD_BITS);
const NO_LIST: &str = "steps without their list";
const NO_STEP: &str = "a step that is on a list alone";

#[derive(Clone, Debug, Default)]
struct List {
    numbers: Vec<u32>,
    by_name: Vec<u32>,
}

impl List {
    fn memory_bytes(&self) -> usize {
        allocated(self.numbers.capacity() * size_of::<u32>())
            + allocated(self.by_name.capacity() * size_of::<u32>())
    }

    /// By a quarter: a job has few steps, or very many.
    fn make_room(&mut self) {
        if self.numbers.len() == self.numbers.capacity() {
            self.numbers.reserve_exact(2 + self.numbers.len() / 4);
        }
        if self.by_name.len() == self.by_name.capacity() {
            self.by_name.reserve_exact(2 + self.by_name.len() / 4);
        }
    }
}

/// See the picture above.
#[derive(Debug)]
pub struct Steps {
    values: Arena,
    lists: Slab<List>,
    /// What the lists take beside the slab.
    list_bytes: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Steps::new()
    }
}

impl Unused for Steps {
    const UNUSED: &'static Self = &Steps::new();
}

/// Copied lists have no spare capacity.
impl Clone for Steps {
    fn clone(&self) -> Self {
        let lists = self.lists.clone();
        Steps {
            values: self.values.clone(),
            list_bytes: lists.iter().map(List::memory_bytes).sum(),
            lists,
        }
    }
}

impl Steps {
    pub const fn new() -> Self {
        Steps {
            values: Arena::fine(),
            lists: Slab::new(),
            list_bytes: 0,
        }
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// How many jobs have any.
    pub fn series_len(&self) -> usize {
        self.lists.len()
    }

    pub fn has_room(&self) -> bool {
        self.values.has_room_for(STEPS_MAX) && self.lists.has_room_for(1)
    }

    /// Of a job that has none.
    pub fn new_series(&mut self) -> u32 {
        self.lists.insert(List::default())
    }

    fn list(&self, series: u32) -> &List {
        there(self.lists.get(series), NO_LIST)
    }

    pub fn of(&self, series: u32) -> Beside<'_> {
        Beside {
            numbers: &self.list(series).numbers,
            values: Some(&self.values),
        }
    }

    /// The place of a step in the list of its series.
    fn place(&self, series: u32, name: &[u8], hash: u32) -> Option<usize> {
        let list = self.list(series);
        let first = list.by_name.partition_point(|&it| it < hash & !PLACE_BITS);
        let alike = list.by_name[first..].iter();
        let mut alike = alike.take_while(|&it| (it ^ hash) & !PLACE_BITS == 0);
        let place = |&it: &u32| (it & PLACE_BITS) as usize;
        let is_it = |it: &&u32| {
            let step = self.of(series).step(list.numbers[place(it)]);
            there(step, NO_STEP).0 == name
        };
        alike.find(is_it).map(place)
    }

    /// The step of this name, and its value.
    pub fn step(&self, series: u32, name: &[u8], hash: u32) -> Option<(&[u8], &[u8])> {
        let place = self.place(series, name, hash)?;
        let step = self.of(series).step(self.list(series).numbers[place]);
        Some(there(step, NO_STEP))
    }

    /// Writes a step, in place of the one of its name. There must be room.
    pub fn set(&mut self, series: u32, (name, value): (&[u8], &[u8]), hash: u32) {
        let found = self.place(series, name, hash);
        let list = there(self.lists.get_mut(series), NO_LIST);
        let place = found.unwrap_or(list.numbers.len());
        if found.is_some() {
            must(self.values.remove(list.numbers[place]), NO_STEP);
        }
        let word = u64::from(series)
            | (place as u64) << PLACE_SHIFT
            | (name.len() as u64 - 1) << NAME_LEN_SHIFT;
        let number = self.values.insert([&word.to_le_bytes(), name, value]);
        match found {
            Some(place) => list.numbers[place] = number,
            None => {
                let before = list.memory_bytes();
                list.make_room();
                list.numbers.push(number);
                let entry = hash & !PLACE_BITS | place as u32;
                let at = list.by_name.partition_point(|&it| it < entry);
                list.by_name.insert(at, entry);
                self.list_bytes = self.list_bytes + list.memory_bytes() - before;
            }
        }
    }

    pub fn remove(&mut self, series: u32) {
        let list = there(self.lists.remove(series), NO_LIST);
        self.list_bytes -= list.memory_bytes();
        for number in list.numbers {
            must(self.values.remove(number), NO_STEP);
        }
    }

    fn word(&self, number: u32) -> u64 {
        let record = self.values.get(number);
        let word = record.and_then(|record| record.first_chunk());
        u64::from_le_bytes(*there(word, NO_STEP)) & HEAD_BITS
    }

    pub fn is_scattered(&self) -> bool {
        self.values.is_scattered()
    }

    /// Moves up to `budget` steps that lie scattered; returns the unused budget.
    pub fn gather(&mut self, budget: usize) -> usize {
        for left in (1..=budget).rev() {
            let Some(old) = self.values.misplaced() else {
                return left;
            };
            let word = self.word(old);
            let list = there(self.lists.get_mut(word as u32), NO_LIST);
            list.numbers[(word >> PLACE_SHIFT & PLACE) as usize] = self.values.move_misplaced(old);
        }
        0
    }

    /// Frees about `count` steps that are not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        let bytes = &mut self.list_bytes;
        self.values.free_some(count)
            || (self.lists).free_some_seen(count, |list| *bytes -= list.memory_bytes())
    }

    /// See [`crate::storage::relocate`].
    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.values.relocate_pages(from, mover),
            1 => self.values.relocate_long(from, mover),
            _ => self.lists.relocate(from, mover, |list, mover| {
                move_vec(&mut list.numbers, mover);
                move_vec(&mut list.by_name, mover);
            }),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.values.memory_bytes() + self.lists.memory_bytes() + self.list_bytes
    }

    /// The list of a series has its steps, each once, and finds them.
    pub fn check_series(&self, series: u32) -> Result<(), String> {
        let list = self.lists.get(series).ok_or(NO_LIST)?;
        let is_at_its_place = |(place, &number): (u64, &u32)| {
            let word = u64::from(series) | place << PLACE_SHIFT;
            self.values.get(number).is_some() && self.word(number) & ((1 << 42) - 1) == word
        };
        let mut places: Vec<u32> = list.by_name.iter().map(|&it| it & PLACE_BITS).collect();
        places.sort_unstable();
        let is_sound = (0..).zip(&list.numbers).all(is_at_its_place)
            && list.by_name.is_sorted()
            && places.into_iter().eq(0..list.numbers.len() as u32);
        match is_sound {
            true => Ok(()),
            false => Err(format!("steps of series {series} that are not as listed")),
        }
    }

    pub fn check_invariants(&self) -> Result<(), String> {
        self.values.check_invariants()?;
        let listed: usize = self.lists.iter().map(|list| list.numbers.len()).sum();
        let bytes: usize = self.lists.iter().map(List::memory_bytes).sum();
        match (listed, bytes) == (self.len(), self.list_bytes) {
            true => Ok(()),
            false => Err("steps and their lists differ in number or bytes".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes are kept in part, so names may be alike in what is left of theirs.
    #[test]
    fn names_of_alike_hashes_are_told_apart() {
        let mut steps = Steps::new();
        let series = steps.new_series();
        let named = |number: u32| {
            (
                number.to_string().into_bytes(),
                (7 << 10) | (number * 37 % 1024),
            )
        };
        for number in (0..100).chain(0..100) {
            let (name, hash) = named(number);
            steps.set(series, (&name, b"value"), hash);
            assert_eq!(steps.check_series(series), Ok(()));
        }
        assert_eq!(steps.len(), 100);
        for (name, hash) in (0..100).map(named) {
            let found = steps.step(series, &name, hash);
            assert_eq!(found, Some((&name[..], &b"value"[..])));
        }
        assert_eq!(steps.step(series, b"another", 7 << 10), None);
    }
}

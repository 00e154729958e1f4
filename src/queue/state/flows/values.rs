//! Results and reasons that blocked jobs keep: one copy for all ends of an id with the same value, whenever a job came
//! to be after them.

use crate::queue::after::{Moment, Outcome};
use crate::queue::state::store::allocated;
use crate::storage::broken::there;
use crate::storage::relocate::{move_boxed, Mover};
use crate::storage::slab::Slab;
use crate::storage::table::IdTable;
use std::hash::BuildHasher;

const NO_VALUE: &str = "a value that nobody keeps";

/// What an effect says of an end.
#[derive(Clone, Copy)]
pub struct EndOf<'a> {
    pub id: &'a [u8],
    pub outcome: Option<Outcome>,
    pub at: Moment,
    pub value: Option<EndValue<'a>>,
}

impl<'a> EndOf<'a> {
    /// Nothing is known of how it ended.
    pub fn unknown(id: &'a [u8]) -> Self {
        EndOf {
            id,
            outcome: None,
            at: Moment::default(),
            value: None,
        }
    }
}

/// What an end tells: the id that ended, and its value.
#[derive(Clone, Copy)]
pub struct EndValue<'a> {
    id: &'a [u8],
    value: &'a [u8],
    hash: u64,
}

impl<'a> EndValue<'a> {
    pub fn of(id: &'a [u8], value: &'a [u8], hasher: &impl BuildHasher) -> Self {
        let hash = hasher.hash_one((id, value));
        EndValue { id, value, hash }
    }

    pub fn len(&self) -> u64 {
        self.value.len() as u64
    }
}

#[derive(Clone, Debug)]
struct Value {
    /// The id, then the value.
    bytes: Box<[u8]>,
    hash: u64,
    id_len: u32,
    users: u32,
}

impl Value {
    fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.id_len as usize)
    }
}

#[derive(Clone, Default)]
pub struct Values {
    kept: Slab<Value>,
    index: IdTable,
    /// The lengths of all values, without ids.
    len: u64,
    heap_bytes: usize,
}

impl Values {
    fn value(&self, number: u32) -> &Value {
        there(self.kept.get(number), NO_VALUE)
    }

    pub fn get(&self, number: u32) -> &[u8] {
        self.value(number).parts().1
    }

    pub fn users(&self, number: u32) -> u32 {
        self.value(number).users
    }

    pub fn find(&self, value: &EndValue<'_>) -> Option<u32> {
        let is_it = |number| self.value(number).parts() == (value.id, value.value);
        self.index.find(value.hash, is_it)
    }

    pub fn acquire(&mut self, value: &EndValue<'_>) -> u32 {
        let number = self.find(value).unwrap_or_else(|| self.add(value));
        there(self.kept.get_mut(number), NO_VALUE).users += 1;
        number
    }

    fn add(&mut self, value: &EndValue<'_>) -> u32 {
        let bytes: Box<[u8]> = [value.id, value.value].concat().into();
        self.len += value.len();
        self.heap_bytes += allocated(bytes.len());
        let number = self.kept.insert(Value {
            bytes,
            hash: value.hash,
            id_len: value.id.len() as u32,
            users: 0,
        });
        self.index.insert(value.hash, number);
        number
    }

    pub fn release(&mut self, number: u32) {
        let value = there(self.kept.get_mut(number), NO_VALUE);
        value.users -= 1;
        if value.users == 0 {
            let value = there(self.kept.remove(number), NO_VALUE);
            self.index.remove(value.hash, number);
            self.len -= value.parts().1.len() as u64;
            self.heap_bytes -= allocated(value.bytes.len());
        }
    }

    /// The lengths of all values: what they count in a queue's bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn free_some(&mut self, count: usize) -> bool {
        self.kept.free_some(count) || self.index.free_some(count)
    }

    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.index.relocate(from, mover),
            _ => self.kept.relocate(from, mover, |value, mover| {
                move_boxed(&mut value.bytes, mover);
            }),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.kept.memory_bytes() + self.index.memory_bytes() + self.heap_bytes
    }

    /// For tests: whether exactly these are kept, each with so many users.
    pub fn check(&self, users: &std::collections::HashMap<u32, u32>) -> Result<(), String> {
        (self.index).check_invariants(|number| self.value(number).hash)?;
        let len: usize = users.keys().map(|&number| self.get(number).len()).sum();
        let right = users
            .iter()
            .all(|(&number, &count)| self.users(number) == count);
        match right && users.len() == self.kept.len() && len as u64 == self.len {
            true => Ok(()),
            false => Err("values that nobody has".into()),
        }
    }
}

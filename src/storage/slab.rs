//! Values by number, in segments: growing never copies more than one segment, and a segment is
//! freed with its last value.
//!
//! ```text
//!   segments: [ seg 0 | seg 1 | seg 2 | ... ]      number = segment * 1024 + index
//!                 │
//!                 ▼
//!             [ full | vacant ─► next vacant | full | ... ]   up to 1024 entries
//!   open:     the first of the segments that have room, each of which names the next one
//! ```

use crate::storage::allocated::reserve;
use crate::storage::broken::must;
use crate::storage::prefetch::prefetch;
use crate::storage::relocate::{move_vec, Mover, STEP};

const SEGMENT_BITS: u32 = 10;
const SEGMENT_LEN: usize = 1 << SEGMENT_BITS;
const NONE: u32 = u32::MAX;
/// The value of `next_open` of a full segment, which is not in the list of open ones.
const FULL: u32 = u32::MAX - 1;

#[derive(Clone, Debug)]
enum Entry<T> {
    Full(T),
    /// The next vacant entry of the segment, or NONE.
    Vacant(u32),
}

#[derive(Clone, Debug)]
struct Segment<T> {
    entries: Vec<Entry<T>>,
    vacant: u32,
    len: u32,
    /// The next open segment, NONE or FULL.
    next_open: u32,
}

#[derive(Clone, Debug)]
pub struct Slab<T> {
    segments: Vec<Segment<T>>,
    open: u32,
    len: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slab<T> {
    pub const fn new() -> Self {
        Slab {
            segments: Vec::new(),
            open: NONE,
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// An upper bound of all numbers, itself excluded.
    pub fn end(&self) -> u32 {
        (self.segments.len() as u32) << SEGMENT_BITS
    }

    /// Whether so many more values fit.
    pub fn has_room_for(&self, count: usize) -> bool {
        const CAPACITY: usize = (NONE >> SEGMENT_BITS) as usize * SEGMENT_LEN;
        count <= CAPACITY - self.len()
    }

    /// Inserts a value and returns its number. There must be room.
    pub fn insert(&mut self, value: T) -> u32 {
        let number = match self.open {
            NONE => self.add_segment(),
            open => open,
        };
        let segment = &mut self.segments[number as usize];
        let index = segment.vacant;
        let index = if index == NONE {
            if segment.entries.len() == segment.entries.capacity() {
                let more = segment.entries.len().clamp(1, SEGMENT_LEN / 2);
                let first = number == 0;
                let more = if first { more } else { SEGMENT_LEN };
                reserve(&mut segment.entries, more);
            }
            segment.entries.push(Entry::Full(value));
            segment.entries.len() as u32 - 1
        } else {
            let entry = &mut segment.entries[index as usize];
            let before = std::mem::replace(entry, Entry::Full(value));
            match before {
                Entry::Vacant(next) => segment.vacant = next,
                Entry::Full(_) => must(false, "a number that is vacant and taken"),
            }
            index
        };
        segment.len += 1;
        self.len += 1;
        if segment.len as usize == SEGMENT_LEN {
            self.open = std::mem::replace(&mut segment.next_open, FULL);
        }
        number << SEGMENT_BITS | index
    }

    fn add_segment(&mut self) -> u32 {
        let number = self.segments.len() as u32;
        debug_assert!(self.has_room_for(1));
        if number == 0 {
            reserve(&mut self.segments, 1);
        }
        self.segments.push(Segment {
            entries: Vec::new(),
            vacant: NONE,
            len: 0,
            next_open: self.open,
        });
        self.open = number;
        number
    }

    pub fn remove(&mut self, number: u32) -> Option<T> {
        let segment = self.segments.get_mut((number >> SEGMENT_BITS) as usize)?;
        let index = number & (SEGMENT_LEN as u32 - 1);
        let entry = segment.entries.get_mut(index as usize)?;
        if matches!(entry, Entry::Vacant(_)) {
            return None;
        }
        let Entry::Full(value) = std::mem::replace(entry, Entry::Vacant(segment.vacant)) else {
            return None;
        };
        segment.vacant = index;
        segment.len -= 1;
        self.len -= 1;
        if segment.len == 0 {
            segment.entries = Vec::new();
            segment.vacant = NONE;
        }
        if segment.next_open == FULL {
            segment.next_open = std::mem::replace(&mut self.open, number >> SEGMENT_BITS);
        }
        if self.len == 0 {
            *self = Self::new();
        }
        Some(value)
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        let segment = self.segments.get((number >> SEGMENT_BITS) as usize)?;
        match segment.entries.get(number as usize & (SEGMENT_LEN - 1))? {
            Entry::Full(value) => Some(value),
            Entry::Vacant(_) => None,
        }
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let segment = self.segments.get_mut((number >> SEGMENT_BITS) as usize)?;
        match segment
            .entries
            .get_mut(number as usize & (SEGMENT_LEN - 1))?
        {
            Entry::Full(value) => Some(value),
            Entry::Vacant(_) => None,
        }
    }

    /// Prefetches the entry, not what it owns.
    pub fn prefetch(&self, number: u32) {
        let segment = self.segments.get((number >> SEGMENT_BITS) as usize);
        let entry = segment.and_then(|s| s.entries.get(number as usize & (SEGMENT_LEN - 1)));
        entry.into_iter().for_each(prefetch);
    }

    /// Moves the next few entries, and lets `visit` move what they own. Returns the number to
    /// continue from.
    pub fn relocate<M: Mover>(
        &mut self,
        from: u32,
        mover: &mut M,
        visit: impl Fn(&mut T, &mut M),
    ) -> Option<u32> {
        let number = from >> SEGMENT_BITS;
        let segment = self.segments.get_mut(number as usize)?;
        let first = from as usize & (SEGMENT_LEN - 1);
        if first == 0 {
            move_vec(&mut segment.entries, mover);
        }
        let behind = segment.entries.iter_mut().skip(first);
        for entry in behind.take(STEP as usize) {
            if let Entry::Full(value) = entry {
                visit(value, mover);
            }
        }
        let next = first + STEP as usize;
        if next < segment.entries.len() {
            return Some(from + STEP);
        }
        Some((number + 1) << SEGMENT_BITS)
    }

    /// All values, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let entries = self.segments.iter().flat_map(|segment| &segment.entries);
        entries.filter_map(|entry| match entry {
            Entry::Full(value) => Some(value),
            Entry::Vacant(_) => None,
        })
    }

    /// Frees about `count` values of a discarded slab; false once all are freed.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.free_some_seen(count, |_| ())
    }

    /// As [`Slab::free_some`]; passes each value to `seen` before it is freed.
    pub fn free_some_seen(&mut self, count: usize, mut seen: impl FnMut(&T)) -> bool {
        let Some(segment) = self.segments.last_mut() else {
            return false;
        };
        let kept = segment.entries.len().saturating_sub(count.max(1));
        for entry in segment.entries.drain(kept..) {
            if let Entry::Full(value) = entry {
                seen(&value);
                self.len -= 1;
            }
        }
        if segment.entries.is_empty() {
            self.segments.pop();
        }
        true
    }

    /// Heap bytes requested, without what the values own.
    pub fn memory_bytes(&self) -> usize {
        let entries: usize = self.segments.iter().map(|s| s.entries.capacity()).sum();
        entries * size_of::<Entry<T>>() + self.segments.capacity() * size_of::<Segment<T>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::relocate::tests::bytes_moved;
    use std::collections::HashMap;

    #[test]
    fn an_entry_of_boxed_bytes_needs_no_tag() {
        assert_eq!(size_of::<Entry<Box<[u8]>>>(), 16);
    }

    #[test]
    fn agrees_with_a_map_under_random_traffic() {
        let mut slab = Slab::new();
        let mut twin = HashMap::new();
        let mut numbers = Vec::new();
        let mut x = 88172645463325252u64;
        for step in 0..200_000u64 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let growing = (step / 20_000) % 2 == 0;
            if numbers.is_empty() || x % 10 < if growing { 7 } else { 3 } {
                let number = slab.insert(step);
                assert_eq!(twin.insert(number, step), None, "a number given twice");
                numbers.push(number);
            } else {
                let number = numbers.swap_remove(x as usize / 16 % numbers.len());
                assert_eq!(slab.remove(number), twin.remove(&number));
                assert_eq!(slab.remove(number), None);
            }
            assert_eq!(slab.len(), twin.len());
        }
        for (number, value) in &twin {
            assert_eq!(slab.get(*number), Some(value));
            *slab.get_mut(*number).unwrap() += 1;
            assert_eq!(slab.get(*number), Some(&(value + 1)));
        }
        for number in numbers {
            assert!(slab.remove(number).is_some());
        }
        assert_eq!(slab.memory_bytes(), 0, "an empty slab holds no memory");
    }

    #[test]
    fn all_but_the_list_of_segments_is_moved_and_each_value_visited_once() {
        let mut slab = Slab::new();
        (0..5_000u32).for_each(|value| assert_eq!(slab.insert(value), value));
        (0..5_000).step_by(3).for_each(|number| {
            slab.remove(number);
        });
        let visits = std::cell::RefCell::new(Vec::new());
        let moved = bytes_moved(|from, mover| {
            slab.relocate(from, mover, |&mut value, _| visits.borrow_mut().push(value))
        });
        let apart = slab.segments.capacity() * size_of::<Segment<u32>>();
        assert_eq!(moved + apart, slab.memory_bytes());
        let kept: Vec<u32> = (0..5_000).filter(|value| value % 3 != 0).collect();
        assert_eq!(visits.into_inner(), kept);
    }
}

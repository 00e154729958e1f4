//! Moves the arrays of nodes: see [`crate::storage::relocate`].

use super::key::SEGMENT;
use super::level::Level;
use super::{Key, Skiplist};
use crate::storage::relocate::{move_vec, Mover, STEP};

impl<K: Key> Skiplist<K> {
    /// Moves up to [`STEP`] nodes, the bottom's first, then those of each level above. Returns the
    /// number to continue from.
    pub fn relocate(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        let mut passed = self.bottom.places();
        if from < passed {
            return Some(self.bottom.relocate(from, mover));
        }
        for level in &mut self.uppers {
            let places = level.places();
            if from - passed < places {
                return Some(passed + level.relocate(from - passed, mover));
            }
            passed += places;
        }
        None
    }
}

impl<K, V> Level<K, V> {
    fn places(&self) -> u32 {
        (self.segments.len() * SEGMENT) as u32
    }

    /// Returns the number to continue from; after a segment's last node that is the next segment's first.
    fn relocate(&mut self, from: u32, mover: &mut impl Mover) -> u32 {
        let (number, first) = (from as usize / SEGMENT, from as usize % SEGMENT);
        let Some(segment) = self.segments.get_mut(number) else {
            return self.places();
        };
        if first == 0 {
            move_vec(&mut segment.nodes, mover);
        }
        for node in segment.nodes.iter_mut().skip(first).take(STEP as usize) {
            move_vec(&mut node.keys, mover);
            move_vec(&mut node.values, mover);
        }
        let next = first + STEP as usize;
        if next < segment.nodes.len() {
            return from + STEP;
        }
        ((number + 1) * SEGMENT) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::relocate::tests::bytes_moved;
    use crate::storage::skiplist::level::Segment;
    use crate::storage::skiplist::Link;

    #[test]
    fn all_but_the_lists_of_segments_and_levels_is_moved() {
        let mut list = Skiplist::new();
        for handle in 0..200_000 {
            let scattered = u64::from(handle).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            list.insert(scattered, handle, u64::from);
        }
        assert!(list.height() > 1 && list.bottom.segments.len() > 2);
        let mut apart = list.uppers.capacity() * size_of::<Level<u64, Link<()>>>()
            + list.bottom.segments.capacity() * size_of::<Segment<u64, u32>>();
        for level in &list.uppers {
            apart += level.segments.capacity() * size_of::<Segment<u64, Link<()>>>();
        }
        let moved = bytes_moved(|from, mover| list.relocate(from, mover));
        assert_eq!(moved + apart, list.memory_bytes());
        list.check_invariants(u64::from).unwrap();
    }
}

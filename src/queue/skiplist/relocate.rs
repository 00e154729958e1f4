//! Moving the arrays of nodes: see [`crate::queue::relocate`].

use super::level::Level;
use super::{Key, Skiplist, SEGMENT};
use crate::queue::relocate::{move_vec, Mover, STEP};

impl<K: Key> Skiplist<K> {
    /// Up to [`STEP`] nodes, the bottom's first, then those of each level above; the number to go on from.
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

    /// The number to go on from; behind a segment's last node that is the next segment's first.
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

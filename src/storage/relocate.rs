//! Moves allocated arrays to other addresses: active defragmentation, by which the server empties
//! pages that are nearly empty.
//!
//! A structure passes out each of its arrays by value and takes back the same array, perhaps at
//! another address. So nothing depends on addresses, and the owner of the memory decides what
//! moves.

use crate::storage::broken::there;

/// Decides what moves, and for how long.
pub trait Mover {
    /// The same array, with the same capacity, perhaps at another address.
    fn moved<T>(&mut self, array: Vec<T>) -> Vec<T>;

    /// Whether to stop and continue later. Asked every few allocations.
    fn is_late(&mut self) -> bool;
}

/// Entries visited between two checks of the time: a few microseconds.
pub const STEP: u32 = 32;

/// Moves the memory of an array, not what its values refer to.
pub fn move_vec<T>(array: &mut Vec<T>, mover: &mut impl Mover) {
    *array = mover.moved(std::mem::take(array));
}

/// Moves bytes that have no capacity beyond their length.
pub fn move_boxed(bytes: &mut Box<[u8]>, mover: &mut impl Mover) {
    // Neither conversion copies: the capacity is the length.
    *bytes = mover
        .moved(Vec::from(std::mem::take(bytes)))
        .into_boxed_slice();
}

/// Moves a single value.
pub fn move_one<T>(one: Box<[T; 1]>, mover: &mut impl Mover) -> Box<[T; 1]> {
    // No conversion copies: one element has no spare capacity.
    let one: Box<[T]> = one;
    let moved = mover.moved(Vec::from(one)).into_boxed_slice();
    there(moved.try_into().ok(), "another number of elements")
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Moves everything, and is late after `patience` arrays.
    pub struct Everything {
        pub arrays: usize,
        pub bytes: usize,
        patience: usize,
        /// The addresses that arrays were moved to.
        places: HashSet<usize>,
    }

    impl Everything {
        pub fn new(patience: usize) -> Self {
            Everything {
                arrays: 0,
                bytes: 0,
                patience,
                places: HashSet::new(),
            }
        }
    }

    impl Mover for Everything {
        fn moved<T>(&mut self, array: Vec<T>) -> Vec<T> {
            let bytes = array.capacity() * size_of::<T>();
            let mut copy = Vec::with_capacity(array.capacity());
            if bytes > 0 {
                let is_new = !self.places.contains(&(array.as_ptr() as usize));
                assert!(is_new, "moved twice");
                self.places.insert(copy.as_ptr() as usize);
                self.arrays += 1;
                self.bytes += bytes;
            }
            copy.extend(array);
            copy
        }

        fn is_late(&mut self) -> bool {
            self.arrays >= self.patience
        }
    }

    /// The bytes of all arrays that a container passes out to be moved.
    pub fn bytes_moved(mut relocate: impl FnMut(u32, &mut Everything) -> Option<u32>) -> usize {
        let mut mover = Everything::new(usize::MAX);
        let mut from = Some(0);
        while let Some(number) = from {
            from = relocate(number, &mut mover);
        }
        mover.bytes
    }
}

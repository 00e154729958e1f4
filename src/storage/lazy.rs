//! A part that few owners need: it takes only a pointer until it is first changed.

use crate::storage::allocated::allocated;
use crate::storage::relocate::{move_one, Mover};
use std::ops::Deref;

/// A part that can be read before it is made.
pub trait Unused: Default + 'static {
    /// A constant equal to the default.
    const UNUSED: &'static Self;
}

/// Can always be read. To change it, a caller says whether it is to be made.
#[derive(Clone, Debug)]
pub struct Lazy<T>(Option<Box<[T; 1]>>);

impl<T> Lazy<T> {
    /// A part that is not made; allocates nothing.
    pub const fn new() -> Self {
        Lazy(None)
    }

    /// Whether it was ever made.
    #[inline]
    pub fn is_made(&self) -> bool {
        self.0.is_some()
    }

    /// The part, to be changed; none if it was never made.
    #[inline]
    pub fn made(&mut self) -> Option<&mut T> {
        match &mut self.0 {
            Some(part) => Some(&mut part[0]),
            None => None,
        }
    }

    /// The part, to be read; none if it was never made. Cheaper than reading its [`Unused`], for
    /// what is rarely made.
    #[inline]
    pub fn if_made(&self) -> Option<&T> {
        match &self.0 {
            Some(part) => Some(&part[0]),
            None => None,
        }
    }

    /// The bytes of the allocation itself, not of what it owns.
    pub fn memory_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| allocated(size_of::<T>()))
    }

    /// Moves the allocation itself.
    pub fn relocate(&mut self, mover: &mut impl Mover) {
        self.0 = self.0.take().map(|part| move_one(part, mover));
    }
}

impl<T: Unused> Lazy<T> {
    /// The part, to be changed; makes it if it was not made.
    #[inline]
    pub fn make(&mut self) -> &mut T {
        &mut self.0.get_or_insert_with(Self::first)[0]
    }

    #[cold]
    fn first() -> Box<[T; 1]> {
        Box::new([T::default()])
    }
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A part that was never made equals one that is back at its default.
impl<T: Unused + PartialEq> PartialEq for Lazy<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Unused + Eq> Eq for Lazy<T> {}

impl<T: Unused> Deref for Lazy<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(part) => &part[0],
            None => T::UNUSED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::relocate::tests::Everything;

    impl Unused for Vec<u64> {
        const UNUSED: &'static Self = &Vec::new();
    }

    #[test]
    fn takes_nothing_until_it_is_changed() {
        let mut part: Lazy<Vec<u64>> = Lazy::new();
        assert_eq!(size_of_val(&part), 8);
        assert!(part.is_empty() && part.made().is_none());
        assert_eq!(part.memory_bytes(), 0);
        part.make().push(7);
        assert_eq!((part[0], part.memory_bytes()), (7, 32));
        let mut mover = Everything::new(usize::MAX);
        part.relocate(&mut mover);
        assert_eq!((mover.bytes, part.made().map(|it| it[0])), (24, Some(7)));
    }
}

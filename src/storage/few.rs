//! A list that mostly has one element, which needs no allocation.

use super::allocated::allocated;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A list of elements in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Few<T> {
    /// Just one.
    One(T),
    /// None, or more than one.
    Many(Box<[T]>),
}

impl<T> Few<T> {
    /// All elements.
    pub fn get(&self) -> &[T] {
        match self {
            Few::One(one) => std::slice::from_ref(one),
            Few::Many(many) => many,
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut [T] {
        match self {
            Few::One(one) => std::slice::from_mut(one),
            Few::Many(many) => many,
        }
    }

    pub(crate) fn map<U>(&self, mut to: impl FnMut(&T) -> U) -> Few<U> {
        match self {
            Few::One(one) => Few::One(to(one)),
            Few::Many(many) => Few::Many(many.iter().map(to).collect()),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Few::One(_) => 0,
            Few::Many(many) => allocated(size_of_val(&**many)),
        }
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(mut all: Vec<T>) -> Self {
        match (all.len(), all.pop()) {
            (1, Some(one)) => Few::One(one),
            (_, None) => Few::Many(Box::default()),
            (_, Some(last)) => {
                all.push(last);
                Few::Many(all.into_boxed_slice())
            }
        }
    }
}

/// Encoded as any sequence is.
impl<T: Serialize> Serialize for Few<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(to)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::deserialize(from).map(Few::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_many_hold_the_same_in_order_and_are_written_as_a_list_is() {
        for len in 0..4_u32 {
            let all: Vec<u32> = (0..len).collect();
            let mut few = Few::from(all.clone());
            assert_eq!(few.get(), all);
            assert_eq!(matches!(few, Few::One(_)), len == 1);
            let (mut room, mut other) = ([0; 16], [0; 16]);
            let written = postcard::to_slice(&few, &mut room).unwrap();
            assert_eq!(written, postcard::to_slice(&all, &mut other).unwrap());
            assert_eq!(postcard::from_bytes::<Few<u32>>(written).unwrap(), few);
            few.get_mut().iter_mut().for_each(|it| *it += 1);
            let more = all.iter().map(|it| it + 1).collect::<Vec<_>>();
            assert_eq!(few, Few::from(more));
            assert_eq!(few.map(|it| it - 1).get(), all);
            assert_eq!(few.heap_bytes() == 0, len < 2);
        }
    }
}

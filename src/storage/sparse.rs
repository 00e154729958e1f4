//! Values of few of many numbers: little for a number that has one, and next to nothing for the others.
//!
//! ```text
//!   pages:  [ - | page | - | page | .. ]          number = page * 256 + bit
//!                  │
//!                  ▼
//!              bits    0010 0000 .. 1000 ..       which numbers of the page have a value
//!              values  [ v v .. ]                 in the order of their numbers, so that a value's place is the
//!                                                 number of bits before its own
//! ```

use super::allocated::allocated;
use super::prefetch::prefetch;
use super::relocate::{move_one, move_vec, Mover};

const PAGE_BITS: u32 = 8;
const PAGE: usize = 1 << PAGE_BITS;
/// Values of one step of a scan.
const SCAN_STEP: usize = 8;

#[derive(Clone)]
struct Page<T> {
    bits: [u64; PAGE / 64],
    values: Vec<T>,
}

/// Values by number.
pub struct Sparse<T> {
    pages: Vec<Option<Box<[Page<T>; 1]>>>,
    len: usize,
    /// Of all pages, as whoever frees memory asks for it at each step.
    bytes: usize,
}

/// The page of a number, and its bit there.
fn split(number: u32) -> (usize, usize) {
    ((number >> PAGE_BITS) as usize, number as usize % PAGE)
}

impl<T> Page<T> {
    fn has(&self, bit: usize) -> bool {
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn place(&self, bit: usize) -> usize {
        let before = self.bits[bit / 64] & ((1 << (bit % 64)) - 1);
        let words = self.bits[..bit / 64].iter().chain([&before]);
        words.map(|word| word.count_ones() as usize).sum()
    }

    fn bits(&self) -> impl Iterator<Item = usize> + '_ {
        (0..PAGE).filter(|&bit| self.has(bit))
    }

    /// On the heap, with its values.
    fn bytes_used(&self) -> usize {
        allocated(size_of::<Self>()) + allocated(self.values.capacity() * size_of::<T>())
    }

    /// Allocates an eighth more than there are, and as much as the allocator gives for that.
    fn make_room(&mut self) {
        let (len, size) = (self.values.len(), size_of::<T>());
        if len == self.values.capacity() {
            let room = allocated((len + len / 8 + 1) * size) / size;
            self.values.reserve_exact(room - len);
        }
    }
}

impl<T: Clone> Clone for Sparse<T> {
    fn clone(&self) -> Self {
        let pages = self.pages.clone();
        let each = pages.iter().flatten();
        Sparse {
            // No copy has room to spare.
            bytes: each.map(|page| page[0].bytes_used()).sum(),
            pages,
            len: self.len,
        }
    }
}

impl<T> Sparse<T> {
    pub const fn new() -> Self {
        Sparse {
            pages: Vec::new(),
            len: 0,
            bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        let (page, bit) = split(number);
        let [page] = &**self.pages.get(page)?.as_ref()?;
        page.has(bit).then(|| &page.values[page.place(bit)])
    }

    /// Prefetches the value of a number, if it has one.
    pub fn prefetch(&self, number: u32) {
        self.get(number).into_iter().for_each(prefetch);
    }

    /// Gives a number a value, in place of the one that it has.
    pub fn insert(&mut self, number: u32, value: T) {
        let (at, bit) = split(number);
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, || None);
        }
        let before = self.pages[at]
            .as_ref()
            .map_or(0, |page| page[0].bytes_used());
        let [page] = &mut **self.pages[at].get_or_insert_with(|| {
            Box::new([Page {
                bits: [0; PAGE / 64],
                values: Vec::new(),
            }])
        });
        let place = page.place(bit);
        if page.has(bit) {
            page.values[place] = value;
            return;
        }
        page.make_room();
        self.bytes += page.bytes_used() - before;
        page.values.insert(place, value);
        page.bits[bit / 64] |= 1 << (bit % 64);
        self.len += 1;
    }

    pub fn remove(&mut self, number: u32) -> Option<T> {
        let (at, bit) = split(number);
        let [page] = &mut **self.pages.get_mut(at)?.as_mut()?;
        if !page.has(bit) {
            return None;
        }
        let value = page.values.remove(page.place(bit));
        page.bits[bit / 64] &= !(1 << (bit % 64));
        self.len -= 1;
        if page.values.is_empty() {
            self.bytes -= page.bytes_used();
            self.pages[at] = None;
        }
        if self.len == 0 {
            self.pages = Vec::new();
        }
        Some(value)
    }

    /// The numbers that have values, from the first one on.
    fn numbers_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let pages = self.pages.iter().enumerate().skip(split(first).0);
        let pages = pages.flat_map(|(at, page)| page.iter().map(move |page| (at, page)));
        let numbers = pages.flat_map(|(at, page)| {
            let [page] = &**page;
            page.bits().map(move |bit| (at << PAGE_BITS | bit) as u32)
        });
        numbers.skip_while(move |&number| number < first)
    }

    /// All numbers that have values with these, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let values = self.pages.iter().flatten().flat_map(|page| &page[0].values);
        self.numbers_from(0).zip(values)
    }

    /// Visits the next few numbers that have values, and returns the cursor of the next call, 0 at the end. A number that
    /// has one throughout is visited by the calls from 0 to 0; every cursor is safe.
    pub fn scan(&self, cursor: u64, visit: impl FnMut(u32)) -> u64 {
        let Ok(first) = u32::try_from(cursor) else {
            return 0;
        };
        let mut numbers = self.numbers_from(first);
        numbers.by_ref().take(SCAN_STEP).for_each(visit);
        numbers.next().map_or(0, u64::from)
    }

    /// Frees about `count` values once none is used any more; false once all are freed.
    pub fn free_some(&mut self, count: usize) -> bool {
        let mut freed = 0;
        while freed < count {
            let Some(page) = self.pages.pop() else {
                break;
            };
            let values = page.as_ref().map_or(0, |page| page[0].values.len());
            self.bytes -= page.map_or(0, |page| page[0].bytes_used());
            self.len -= values;
            freed += 1 + values;
        }
        freed > 0
    }

    /// Moves the next page; returns the number to continue from. See [`super::relocate`].
    pub fn relocate(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        if from == 0 {
            move_vec(&mut self.pages, mover);
        }
        let place = self.pages.get_mut(from as usize)?;
        if let Some(page) = place.take() {
            let page = place.insert(move_one(page, mover));
            move_vec(&mut page[0].values, mover);
        }
        Some(from + 1)
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Option<Box<[Page<T>; 1]>>>() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::relocate::tests::bytes_moved;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_map_under_random_traffic() {
        let (mut sparse, mut twin) = (Sparse::new(), BTreeMap::new());
        let mut x = 88172645463325252u64;
        for step in 0..100_000u64 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Few of many numbers, and all of a few pages.
            let number = (x >> 8) as u32
                % if step / 10_000 % 2 == 0 {
                    1_000_000
                } else {
                    700
                };
            if x % 10 < if step < 60_000 { 7 } else { 3 } {
                sparse.insert(number, step);
                twin.insert(number, step);
            } else {
                assert_eq!(sparse.remove(number), twin.remove(&number));
            }
            assert_eq!(sparse.get(number), twin.get(&number));
            assert_eq!(sparse.len(), twin.len());
        }
        let all = || twin.iter().map(|(&number, value)| (number, value));
        assert!(sparse.iter().eq(all()));
        let (mut seen, mut cursor) = (Vec::new(), 0);
        loop {
            cursor = sparse.scan(cursor, |number| seen.push(number));
            if cursor == 0 {
                break;
            }
        }
        assert!(twin.keys().eq(&seen));
        assert_eq!(sparse.scan(u64::MAX, |_| unreachable!()), 0);
        let pages = sparse.pages.iter().flatten();
        assert_eq!(
            sparse.bytes,
            pages.map(|page| page[0].bytes_used()).sum::<usize>()
        );
        let mut freed = sparse.clone();
        for &number in twin.keys() {
            assert!(sparse.remove(number).is_some());
        }
        assert_eq!(sparse.memory_bytes(), 0);
        while freed.free_some(100) {}
        assert_eq!((freed.len(), freed.iter().count(), freed.bytes), (0, 0, 0));
    }

    #[test]
    fn one_in_ten_takes_little_beside_the_values_and_all_of_it_is_moved() {
        let mut sparse = Sparse::new();
        (0..100_000).for_each(|number| sparse.insert(10 * number, [0_u8; 34]));
        let bytes = sparse.memory_bytes() as f64 / 1e5;
        assert!(bytes < 34.0 * 1.25, "{bytes} bytes");
        let moved = bytes_moved(|from, mover| sparse.relocate(from, mover));
        assert!(moved as f64 > 0.9 * bytes * 1e5);
        assert_eq!(sparse.iter().count(), 100_000);
    }
}

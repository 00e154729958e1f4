//! Byte strings by number. Short ones are side by side in pages, each of which holds strings of one size.
//!
//! ```text
//!   number, short:   0 | page (24 bits) | slot (7 bits)        long:   1 | number of its own array
//!
//!   classes, by size:  first ─► page ◄─► page ◄─► page ◄─ last     pages with room, the last has had it longest
//!                                 │
//!                                 ▼
//!             [ string | free | string | string | ... ]  8 KB; a page grows to that as strings come
//! ```
//!
//! A string with an allocation of its own would need a number, an address, a length and an
//! allocation. Here the number gives the place, and the page gives the size. By how much a string
//! is shorter than its slot is in six bits of the string, reserved for that.
//!
//! When more than half of the slots of one size, or of all pages together, is free, the last pages
//! are emptied first: see [`Arena::is_scattered`]. The arena's owner does that, since strings get
//! new numbers by it.

mod page;

use crate::storage::allocated::{allocated, reserve};
use crate::storage::broken::must;
use crate::storage::lazy::{Lazy, Unused};
use crate::storage::relocate::{move_boxed, Mover};
use crate::storage::slab::Slab;
use page::{len_in, set_free, set_slack, size_for, Page, SLOTS_MIN};

/// Longer strings have an allocation of their own.
const SHORT_MAX: usize = 1024;
const SLOT_BITS: u32 = 7;
const SLOTS_MAX: usize = 1 << SLOT_BITS;
const LONG: u32 = 1 << 31;
const PAGES_MAX: usize = 1 << (31 - SLOT_BITS);
const NONE: u32 = u32::MAX;
/// So many bytes more than half of all pages may be free: less is not worth the work.
const FREE_MAX: isize = 1024;

/// The index, among a string's first eight bytes, of the byte that has its slack: how much shorter
/// it is than its slot.
const HEAD_LAST: usize = 7;
/// The bits of the first eight bytes, as a little-endian number, that the owner may use.
pub const HEAD_BITS: u64 = (1 << 58) - 1;

const MISCOUNTED: &str = "an arena that has lost count of its pages";

impl Unused for Slab<Box<[u8]>> {
    const UNUSED: &'static Self = &Slab::new();
}

/// The strings of one size.
#[derive(Clone, Debug)]
struct Class {
    size: u16,
    first: u32,
    last: u32,
    taken: u32,
    slots: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Arena {
    pages: Slab<Page>,
    long: Lazy<Slab<Box<[u8]>>>,
    /// Sorted by size.
    classes: Vec<Class>,
    short: u32,
    /// The allocated bytes of pages and long strings.
    bytes: usize,
    /// Bytes of free slots less those of taken ones.
    overhang: isize,
    /// A class has become scattered, or all of them together.
    is_scattered: bool,
    /// See [`size_for`].
    is_fine: bool,
}

impl Class {
    /// Whether more than half of the class is free, and by enough to be worth the work.
    fn is_scattered(&self) -> bool {
        self.slots > 2 * self.taken + 24
    }

    /// Where gathering ends: strings that are moved into empty pages one after another take at most
    /// this many slots, and at least half of these are taken.
    fn is_dense(&self) -> bool {
        self.slots <= self.taken + self.taken / 2 + 1
    }
}

fn parts(number: u32) -> (u32, usize) {
    (number >> SLOT_BITS, number as usize & (SLOTS_MAX - 1))
}

impl Arena {
    pub const fn new() -> Self {
        Arena {
            pages: Slab::new(),
            long: Lazy::new(),
            classes: Vec::new(),
            short: 0,
            bytes: 0,
            overhang: 0,
            is_scattered: false,
            is_fine: false,
        }
    }

    /// An arena for short strings of many lengths: see [`size_for`].
    pub const fn fine() -> Self {
        let mut arena = Arena::new();
        arena.is_fine = true;
        arena
    }

    pub fn len(&self) -> usize {
        self.short as usize + self.long.len()
    }

    /// Whether so many more strings fit, however long they are.
    pub fn has_room_for(&self, count: usize) -> bool {
        let pages = self.pages.len() + count / SLOTS_MIN + SHORT_MAX / 8;
        pages < PAGES_MAX && self.long.len() + count < LONG as usize
    }

    /// Inserts the concatenation of these parts. There must be room. It has at least eight bytes,
    /// of which the first eight use only [`HEAD_BITS`].
    #[inline]
    pub fn insert<const N: usize>(&mut self, parts: [&[u8]; N]) -> u32 {
        let len = parts.iter().map(|part| part.len()).sum();
        if len > SHORT_MAX {
            let bytes = parts.concat().into_boxed_slice();
            self.bytes += allocated(len);
            return LONG | self.long.make().insert(bytes);
        }
        let size = size_for(len, self.is_fine);
        let (page, slot) = self.take_slot(size, NONE);
        let place = self.pages.get_mut(page).and_then(|it| it.place_mut(slot));
        if let Some(place) = place {
            let mut rest = &mut place[..len];
            for part in parts {
                let to = rest.split_off_mut(..part.len());
                to.into_iter().for_each(|to| to.copy_from_slice(part));
            }
            set_slack(place, size - len);
        }
        self.short += 1;
        page << SLOT_BITS | slot as u32
    }

    /// Takes a slot of this size, in any page except `but`.
    fn take_slot(&mut self, size: usize, but: u32) -> (u32, usize) {
        let at = self.class_of(size);
        let class = &mut self.classes[at];
        let mut number = class.first;
        if number == NONE || number == but {
            number = self.pages.insert(Page::empty(size));
            self.open(at, number);
        }
        let class = &mut self.classes[at];
        let Some(page) = self.pages.get_mut(number) else {
            must(false, MISCOUNTED);
            return (NONE, 0);
        };
        let slot = page.first_free();
        if slot >= page.slots() {
            let before = (page.bytes.len(), page.slots);
            page.grow(class.taken as usize / 8);
            self.bytes = self.bytes + allocated(page.bytes.len()) - allocated(before.0);
            self.overhang += (page.bytes.len() - before.0) as isize;
            class.slots += u32::from(page.slots - before.1);
        }
        page.flip(slot);
        class.taken += 1;
        self.overhang -= 2 * size as isize;
        if !page.has_room() {
            self.close(at, number);
        }
        (number, slot)
    }

    /// The index of the class of this size.
    fn class_of(&mut self, size: usize) -> usize {
        let found = (self.classes).binary_search_by_key(&size, |class| class.size.into());
        found.unwrap_or_else(|at| {
            let new = Class {
                size: size as u16,
                first: NONE,
                last: NONE,
                taken: 0,
                slots: 0,
            };
            reserve(&mut self.classes, 1);
            self.classes.insert(at, new);
            at
        })
    }

    /// Puts a page with room at the front of its class's list.
    fn open(&mut self, at: usize, number: u32) {
        let class = &mut self.classes[at];
        let next = std::mem::replace(&mut class.first, number);
        if next == NONE {
            class.last = number;
        } else if let Some(next) = self.pages.get_mut(next) {
            next.before = number;
        }
        if let Some(page) = self.pages.get_mut(number) {
            (page.is_open, page.before, page.next) = (true, NONE, next);
        }
    }

    fn close(&mut self, at: usize, number: u32) {
        let Some(page) = self.pages.get_mut(number) else {
            return;
        };
        page.is_open = false;
        let (before, next) = (page.before, page.next);
        match self.pages.get_mut(before) {
            Some(before) => before.next = next,
            None => self.classes[at].first = next,
        }
        match self.pages.get_mut(next) {
            Some(next) => next.before = before,
            None => self.classes[at].last = before,
        }
    }

    /// Removes a string; false if it does not exist.
    pub fn remove(&mut self, number: u32) -> bool {
        if number & LONG != 0 {
            let removed = self
                .long
                .made()
                .and_then(|long| long.remove(number & !LONG));
            self.bytes -= removed.as_ref().map_or(0, |bytes| allocated(bytes.len()));
            return removed.is_some();
        }
        let (number, slot) = parts(number);
        let page = self.pages.get_mut(number);
        let Some(page) = page.filter(|page| page.is_taken(slot)) else {
            return false;
        };
        if self.short == 1 && self.long.len() == 0 {
            let is_fine = self.is_fine;
            *self = Arena {
                is_fine,
                ..Arena::new()
            };
            return true;
        }
        page.flip(slot);
        page.place_mut(slot).into_iter().for_each(set_free);
        self.short -= 1;
        let (size, slots, is_open) = (page.size(), page.slots, page.is_open);
        let (is_empty, len) = (page.taken == [0; 2], page.bytes.len());
        let at = self.class_of(size);
        let class = &mut self.classes[at];
        class.taken -= 1;
        self.overhang += 2 * size as isize;
        if is_empty {
            class.slots -= u32::from(slots);
            self.bytes -= allocated(len);
            self.overhang -= len as isize;
            if is_open {
                self.close(at, number);
            }
            self.pages.remove(number);
            if self.classes[at].slots == 0 {
                self.classes.remove(at);
            }
        } else if !is_open {
            self.open(at, number);
        }
        if self.overhang > FREE_MAX || (self.classes.get(at)).is_some_and(Class::is_scattered) {
            self.is_scattered = true;
        }
        true
    }

    /// For tests: removes the string, but leaves all counters unchanged.
    #[cfg(any(test, feature = "breakable"))]
    pub fn lose(&mut self, number: u32) {
        let (page, slot) = parts(number);
        let page = self.pages.get_mut(page);
        let place = page.and_then(|page| page.place_mut(slot));
        place.into_iter().for_each(set_free);
    }

    #[inline]
    pub fn get(&self, number: u32) -> Option<&[u8]> {
        if number & LONG != 0 {
            return self.long.get(number & !LONG).map(|bytes| &**bytes);
        }
        let (page, slot) = parts(number);
        self.pages.get(page)?.string(slot)
    }

    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut [u8]> {
        if number & LONG != 0 {
            let bytes = self.long.made()?.get_mut(number & !LONG);
            return bytes.map(|bytes| &mut **bytes);
        }
        let (page, slot) = parts(number);
        let place = self.pages.get_mut(page)?.place_mut(slot)?;
        let len = len_in(place)?;
        place.get_mut(..len)
    }

    /// Whether pages are so empty that strings should move. Then [`Arena::misplaced`] returns them,
    /// one after another.
    #[inline]
    pub fn is_scattered(&self) -> bool {
        self.is_scattered
    }

    /// A string that must move; none once pages are dense.
    pub fn misplaced(&mut self) -> Option<u32> {
        let page = if self.is_scattered {
            let class = self.classes.iter().find(|class| !class.is_dense());
            class.map(|class| class.last)
        } else {
            None
        };
        let slot = page.and_then(|page| self.pages.get(page)?.first_taken());
        let (Some(page), Some(slot)) = (page, slot) else {
            self.is_scattered = false;
            return None;
        };
        Some(page << SLOT_BITS | slot as u32)
    }

    /// Moves a string that [`Arena::misplaced`] returned; returns its new number.
    pub fn move_misplaced(&mut self, number: u32) -> u32 {
        let (from, slot) = parts(number);
        let place = self.pages.get(from).and_then(|page| page.place(slot));
        let size = place.map_or(0, <[u8]>::len);
        must(place.and_then(len_in).is_some(), MISCOUNTED);
        let mut bytes = [0; SHORT_MAX];
        place
            .into_iter()
            .for_each(|it| bytes[..size].copy_from_slice(it));
        let (to, free) = self.take_slot(size, from);
        let place = self.pages.get_mut(to).and_then(|it| it.place_mut(free));
        place
            .into_iter()
            .for_each(|it| it.copy_from_slice(&bytes[..size]));
        self.short += 1;
        let new = to << SLOT_BITS | free as u32;
        self.remove(number);
        new
    }

    /// Prefetches what leads to a string, not the string.
    pub fn prefetch(&self, number: u32) {
        if number & LONG != 0 {
            self.long.prefetch(number & !LONG);
        } else {
            self.pages.prefetch(number >> SLOT_BITS);
        }
    }

    /// The slot of a string, slack included: found without reading the string.
    pub fn place(&self, number: u32) -> Option<&[u8]> {
        if number & LONG != 0 {
            return self.get(number);
        }
        let (page, slot) = parts(number);
        self.pages.get(page)?.place(slot)
    }

    /// Moves pages with their strings: see [`crate::storage::relocate`].
    pub fn relocate_pages(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        let visit = |page: &mut Page, mover: &mut _| move_boxed(&mut page.bytes, mover);
        self.pages.relocate(from, mover, visit)
    }

    pub fn relocate_long(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        if from == 0 {
            self.long.relocate(mover);
        }
        self.long.made()?.relocate(from, mover, move_boxed)
    }

    /// Frees about `count` strings of a discarded arena; false once all are freed.
    pub fn free_some(&mut self, count: usize) -> bool {
        let (short, bytes) = (&mut self.short, &mut self.bytes);
        let pages = self
            .pages
            .free_some_seen(count.div_ceil(SLOTS_MAX), |page| {
                *short -= page.taken() as u32;
                *bytes -= allocated(page.bytes.len());
            });
        let free_long = |it: &mut Slab<Box<[u8]>>| {
            it.free_some_seen(count, |long| *bytes -= allocated(long.len()))
        };
        pages || self.long.made().is_some_and(free_long)
    }

    /// The allocated bytes of all of it.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
            + self.pages.memory_bytes()
            + self.long.memory_bytes()
            + Slab::memory_bytes(&self.long)
            + allocated(self.classes.capacity() * size_of::<Class>())
    }

    pub fn check_invariants(&self) -> Result<(), String> {
        let (mut bytes, mut short, mut overhang) = (0, 0, 0);
        for class in &self.classes {
            let (mut taken, mut slots, mut open) = (0, 0, 0);
            for page in self.pages.iter().filter(|page| page.size == class.size) {
                bytes += allocated(page.bytes.len());
                taken += page.taken() as u32;
                slots += u32::from(page.slots);
                open += usize::from(page.is_open);
                let is_marked = |slot| {
                    let place = page.place(slot);
                    page.is_taken(slot) == place.and_then(len_in).is_some()
                };
                let is_sound = page.bytes.len() == page.slots() * page.size()
                    && (0..SLOTS_MAX).all(is_marked)
                    && page.taken() > 0
                    && page.is_open == page.has_room();
                if !is_sound {
                    return Err(format!("a page of {} that is not as it should", page.size));
                }
            }
            if (taken, slots) != (class.taken, class.slots) || slots == 0 {
                return Err(format!("{taken} of {slots} slots, counted otherwise"));
            }
            if self.open_pages(class) != Some(open) {
                return Err(format!(
                    "{open} open pages of {}, listed otherwise",
                    class.size
                ));
            }
            short += taken;
            overhang += (i64::from(slots) - 2 * i64::from(taken)) * i64::from(class.size);
        }
        bytes += self
            .long
            .iter()
            .map(|it| allocated(it.len()))
            .sum::<usize>();
        if (bytes, short, overhang as isize) != (self.bytes, self.short, self.overhang) {
            return Err(format!(
                "{bytes} bytes, {short} short strings, {overhang} bytes more free than taken, counted otherwise"
            ));
        }
        Ok(())
    }

    /// How many pages the class's list has; none if its links disagree.
    fn open_pages(&self, class: &Class) -> Option<usize> {
        let (mut number, mut before, mut count) = (class.first, NONE, 0);
        while number != NONE && count <= self.pages.len() {
            let page = self.pages.get(number)?;
            if page.before != before || !page.is_open || page.size != class.size {
                return None;
            }
            (before, number, count) = (number, page.next, count + 1);
        }
        (class.last == before).then_some(count)
    }
}

#[cfg(test)]
mod tests;

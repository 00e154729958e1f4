//! One page: slots of one size, some of them taken.

use super::{HEAD_LAST, NONE, SHORT_MAX, SLOTS_MAX};
use crate::storage::allocated::{allocated, reserve};

const PAGE: usize = 8 << 10;
/// How many slots of the largest size fit in a page.
pub const SLOTS_MIN: usize = PAGE / SHORT_MAX;
const SLACK_SHIFT: u32 = 2;
/// The slack that marks a free slot: no string is so much shorter than its slot.
const FREE: usize = 63;

#[derive(Clone, Debug)]
pub struct Page {
    pub bytes: Box<[u8]>,
    /// A bit for each slot that is taken.
    pub taken: [u64; 2],
    pub size: u16,
    pub slots: u8,
    /// Whether it is in the list of pages of its size that have room, or may grow.
    pub is_open: bool,
    pub before: u32,
    pub next: u32,
}

/// The slot size for strings of this length. `is_fine` means small steps, where each byte counts,
/// at the price of more pages that are partly free.
pub fn size_for(len: usize, is_fine: bool) -> usize {
    let step = match len {
        513.. => 32,
        _ if is_fine => 8,
        _ => 16,
    };
    len.next_multiple_of(step)
}

pub fn most_slots(size: usize) -> usize {
    (PAGE / size).min(SLOTS_MAX)
}

impl Page {
    pub fn empty(size: usize) -> Self {
        Page {
            bytes: Box::default(),
            taken: [0; 2],
            size: size as u16,
            slots: 0,
            is_open: false,
            before: NONE,
            next: NONE,
        }
    }

    pub fn size(&self) -> usize {
        self.size.into()
    }

    pub fn slots(&self) -> usize {
        self.slots.into()
    }

    pub fn is_taken(&self, slot: usize) -> bool {
        self.taken[slot / 64] >> (slot % 64) & 1 != 0
    }

    pub fn flip(&mut self, slot: usize) {
        self.taken[slot / 64] ^= 1 << (slot % 64);
    }

    pub fn taken(&self) -> usize {
        self.taken.map(u64::count_ones).into_iter().sum::<u32>() as usize
    }

    pub fn first_taken(&self) -> Option<usize> {
        let [low, high] = self.taken.map(|bits| bits.trailing_zeros() as usize);
        Some(if low < 64 { low } else { 64 + high }).filter(|&slot| slot < SLOTS_MAX)
    }

    /// The first free slot; if all are taken, the number of slots.
    pub fn first_free(&self) -> usize {
        let [low, high] = self.taken.map(|bits| bits.trailing_ones() as usize);
        if low < 64 {
            low
        } else {
            64 + high
        }
    }

    pub fn has_room(&self) -> bool {
        let free = self.first_free();
        free < self.slots() || free < most_slots(self.size())
    }

    /// Grows by about a quarter or by `more` slots, and by what the allocator rounds up to.
    pub fn grow(&mut self, more: usize) {
        let wanted = self.slots() + more.max(self.slots() / 4 + 1);
        let slots = (allocated(wanted * self.size()) / self.size()).min(most_slots(self.size()));
        let mut bytes = std::mem::take(&mut self.bytes).into_vec();
        let free = bytes.len();
        reserve(&mut bytes, slots * self.size() - free);
        bytes.resize(slots * self.size(), 0);
        for place in bytes[free..].chunks_exact_mut(self.size()) {
            set_free(place);
        }
        self.bytes = bytes.into_boxed_slice();
        self.slots = slots as u8;
    }

    /// The string in a slot; none if the slot is free.
    #[inline]
    pub fn string(&self, slot: usize) -> Option<&[u8]> {
        let from = slot * self.size();
        let slack = usize::from(self.bytes.get(from + HEAD_LAST)? >> SLACK_SHIFT);
        match slack {
            FREE => None,
            _ => self.bytes.get(from..from + self.size() - slack),
        }
    }

    #[inline]
    pub fn place(&self, slot: usize) -> Option<&[u8]> {
        let from = slot * self.size();
        self.bytes.get(from..from + self.size())
    }

    #[inline]
    pub fn place_mut(&mut self, slot: usize) -> Option<&mut [u8]> {
        let (from, size) = (slot * self.size(), self.size());
        self.bytes.get_mut(from..from + size)
    }
}

/// The length of the string in a slot; none if the slot is free.
#[inline]
pub fn len_in(place: &[u8]) -> Option<usize> {
    let slack = usize::from(place.get(HEAD_LAST)? >> SLACK_SHIFT);
    (slack != FREE).then(|| place.len() - slack)
}

pub fn set_slack(place: &mut [u8], slack: usize) {
    let head = &mut place[HEAD_LAST];
    *head = *head & ((1 << SLACK_SHIFT) - 1) | (slack as u8) << SLACK_SHIFT;
}

pub fn set_free(place: &mut [u8]) {
    set_slack(place, FREE);
}

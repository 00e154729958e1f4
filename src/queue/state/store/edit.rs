//! Changes to a stored job and to its rare part.

use super::extra::{Extra, Parts};
use super::stored::Status;
use super::stored::{
    bits_of, bits_of_terms, terms_of, word, DUE_BITS, HAS_RARE, NO_GROUP, NO_TRAILER, PLACE_BITS,
    SEQ_BITS,
};
use super::{Rare, Store, NO_JOB, NO_RARE, NO_RULE, OUT_OF_BOUNDS};
use crate::queue::job::{Failure, Handle, Life, Place, Terms, INSTANT_MAX};
use crate::queue::recurring::rule::Occurrence;
use crate::storage::broken::{must, there};
use crate::storage::slab::Slab;

impl Store {
    /// Overwrites the number of the group that a purged job has left.
    pub fn leave_group(&mut self, handle: Handle) {
        let bytes = there(self.slots.get_mut(handle), NO_JOB);
        let number = bytes.last_chunk_mut::<{ size_of::<u32>() }>();
        *there(number, NO_TRAILER) = NO_GROUP.to_le_bytes();
    }

    /// A job has a rare part exactly if there is something to keep in it.
    pub fn set_status(&mut self, handle: Handle, status: Status) {
        let Status { place, due, life } = status;
        must(due <= INSTANT_MAX, OUT_OF_BOUNDS);
        let bytes = there(self.slots.get_mut(handle), NO_JOB);
        let word0 = word(bytes, 0);
        let rare = (word0 & HAS_RARE != 0).then_some((word0 & DUE_BITS) as u32);
        let part = rare.map(|rare| there(self.rares.get_mut(rare), NO_RARE));
        let changed = match (rare, part) {
            (Some(rare), Some(part)) if life == Life::default() && part.extra.is_none() => {
                self.rares.remove(rare);
                word0 & !(DUE_BITS | HAS_RARE) | due
            }
            (_, Some(part)) => {
                part.due = due;
                part.set_life(life);
                if place == Place::Reserved && word0 & PLACE_BITS != bits_of(place) {
                    part.client = std::mem::take(&mut self.client);
                }
                word0
            }
            _ if life != Life::default() => {
                let client = std::mem::take(&mut self.client);
                with_rare(&mut self.rares, word0, Rare::new(due, life, client, None))
            }
            _ => word0 & !DUE_BITS | due,
        };
        let changed = changed & !PLACE_BITS | bits_of(place);
        bytes[..8].copy_from_slice(&changed.to_le_bytes());
    }

    /// Names the client of the next job that becomes reserved.
    #[inline]
    pub fn deliver_to(&mut self, client: u64) {
        self.client = client;
    }

    /// Names the client to which this reserved job was delivered.
    pub fn set_client(&mut self, handle: Handle, client: u64) {
        let word0 = word(self.bytes(handle), 0);
        there(self.rare_mut(word0), NO_RARE).client = client;
    }

    pub fn set_seq(&mut self, handle: Handle, seq: u64) {
        self.edit(handle, 8, |word| word & !SEQ_BITS | seq);
    }

    pub fn set_priority(&mut self, handle: Handle, priority: i32) {
        let Some(old) = terms_of(self.bytes(handle)) else {
            return self.edit_extra(handle, |parts| {
                there(parts.terms.as_mut(), NO_RARE).priority = priority;
            });
        };
        let terms = Terms {
            priority,
            ..self.terms.get(old).clone()
        };
        let new = self.terms.acquire(&terms, &*self.hasher);
        if new.is_none() {
            self.edit_extra(handle, |parts| parts.terms = Some(terms));
        }
        self.edit(handle, 8, |word1| word1 & SEQ_BITS | bits_of_terms(new));
        self.terms.release(old, &*self.hasher);
    }

    pub fn set_failure(&mut self, handle: Handle, failure: Failure<'_>) {
        self.edit_extra(handle, |parts| parts.failed = Some(failure.into()));
    }

    pub fn clear_failure(&mut self, handle: Handle) {
        if self.job(handle).failure().is_some() {
            self.edit_extra(handle, |parts| parts.failed = None);
        }
    }

    /// The job must have a rule.
    pub fn set_occurrence(&mut self, handle: Handle, occurrence: Occurrence) {
        let word0 = word(self.bytes(handle), 0);
        let extra = self.rare_mut(word0).and_then(|rare| rare.extra.as_mut());
        let recurring = extra.and_then(|extra| extra.recurring_mut());
        there(recurring, NO_RULE).occurrence = occurrence;
    }

    /// Notes that the current occurrence was delivered.
    pub fn note_delivered(&mut self, handle: Handle) {
        let occurrence = self.job(handle).recurring().map(|it| it.occurrence);
        if let Some(occurrence) = occurrence.filter(|occurrence| !occurrence.delivered) {
            let delivered = true;
            self.set_occurrence(
                handle,
                Occurrence {
                    delivered,
                    ..occurrence
                },
            );
        }
    }

    fn edit_extra(&mut self, handle: Handle, change: impl FnOnce(&mut Parts)) {
        let mut word0 = word(self.bytes(handle), 0);
        if word0 & HAS_RARE == 0 {
            let rare = Rare::new(word0 & DUE_BITS, Life::default(), 0, None);
            word0 = with_rare(&mut self.rares, word0, rare);
            self.edit(handle, 0, |_| word0);
        }
        let rare = there(self.rare_mut(word0), NO_RARE);
        let old = rare.extra.take();
        let before = old.as_ref().map_or(0, |extra| extra.heap_bytes());
        let mut parts = old.map_or(Parts::default(), |extra| extra.into_parts());
        change(&mut parts);
        rare.extra = Extra::of(parts);
        let after = rare.extra.as_ref().map_or(0, |extra| extra.heap_bytes());
        self.extra_bytes = self.extra_bytes + after - before;
    }

    pub(super) fn edit(&mut self, handle: Handle, at: usize, change: impl FnOnce(u64) -> u64) {
        let bytes = there(self.slots.get_mut(handle), NO_JOB);
        let changed = change(word(bytes, at));
        bytes[at..at + 8].copy_from_slice(&changed.to_le_bytes());
    }
}

/// The first word of a job that gets a rare part.
fn with_rare(rares: &mut Slab<Rare>, word0: u64, rare: Rare) -> u64 {
    let rare = rares.insert(rare);
    word0 & !DUE_BITS | u64::from(rare) | HAS_RARE
}

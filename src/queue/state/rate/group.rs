//! The windows of GROUPRATE, one for each group that was served lately. A window outlives its group, so that a group
//! that comes again has no fresh one. It is dropped once its last delivery has left it.

use super::{leaves_ms, Delivered, Deliveries};
use crate::queue::clock::Now;
use crate::queue::settings::Rate;
use crate::queue::state::store::allocated;
use crate::storage::broken::{must, there};
use crate::storage::slab::Slab;
use crate::storage::table::IdTable;
use ahash::RandomState;
use std::collections::VecDeque;
use std::sync::Arc;

struct Window {
    name: Box<[u8]>,
    deliveries: Deliveries,
    /// The first millisecond in which another delivery that counts 1 fits.
    opens_ms: u64,
}

pub struct GroupRates {
    rate: Rate,
    /// The last token before these windows began: older deliveries are in none.
    since: u64,
    windows: Slab<Window>,
    names: IdTable,
    /// When a window had a delivery, the oldest first: for each window the first delivery within
    /// [`GroupRates::slot_us`].
    recent: VecDeque<(u64, u32)>,
    /// Bytes of names and deliveries.
    heap_bytes: usize,
    hasher: Arc<RandomState>,
}

/// How many deliveries of a group are kept apart, at most.
const ENTRIES: usize = 1000;
const NO_WINDOW: &str = "a window that is not there";
/// How many old deliveries are looked at with each new one, to drop windows that have ended: more than are added.
const PASSED_WITH_EACH: usize = 2;

impl Window {
    fn note_opening(&mut self, rate: Rate, now: Now) {
        self.opens_ms = self.deliveries.opens_us(rate, 1, now).div_ceil(1000);
    }

    fn heap_bytes(&self) -> usize {
        allocated(self.name.len()) + self.deliveries.memory_bytes()
    }
}

impl GroupRates {
    pub fn new(rate: Rate, since: u64, hasher: Arc<RandomState>) -> Self {
        GroupRates {
            rate,
            since,
            windows: Slab::new(),
            names: IdTable::new(),
            recent: VecDeque::new(),
            heap_bytes: 0,
            hasher,
        }
    }

    pub fn len(&self) -> usize {
        self.windows.len()
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        let is_it = |number| *there(self.windows.get(number), NO_WINDOW).name == *name;
        self.names.find(self.hasher.hash_one(name), is_it)
    }

    /// The first millisecond in which a delivery of this group that counts 1 fits; in the past if it fits now.
    pub fn opens_ms(&self, name: &[u8]) -> u64 {
        let window = self.find(name).and_then(|number| self.windows.get(number));
        window.map_or(0, |window| window.opens_ms)
    }

    /// As [`GroupRates::opens_ms`], for a delivery that counts `weight`.
    pub fn opens_ms_for(&self, name: &[u8], weight: u32, now: Now) -> u64 {
        let window = self.find(name).and_then(|number| self.windows.get(number));
        let opens_us = |window: &Window| window.deliveries.opens_us(self.rate, weight, now);
        window.map_or(0, |window| opens_us(window).div_ceil(1000))
    }

    /// What the deliveries in a group's window count: each until the millisecond in which it no longer does.
    pub fn used(&self, name: &[u8], now: Now) -> u64 {
        let window = self.find(name).and_then(|number| self.windows.get(number));
        window.map_or(0, |window| {
            let is_past = |us| self.leaves_ms(us) <= now.ms();
            window.deliveries.used(is_past)
        })
    }

    /// The names of all groups that have a window.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        let windows = self.names.handles();
        windows.filter_map(|number| Some(&*self.windows.get(number)?.name))
    }

    /// The first instant after now at which a delivery leaves a window.
    pub fn next_opens_ms(&self, now: Now) -> Option<u64> {
        let passed = self
            .recent
            .partition_point(|&(us, _)| self.leaves_ms(us) <= now.ms());
        let next = self.recent.get(passed).map(|&(us, _)| self.leaves_ms(us));
        // Other deliveries may have followed the first of a slot.
        let passing = self.recent.range(..passed).rev();
        let passing = passing.take_while(|&&(us, _)| self.slot_leaves_ms(us) > now.ms());
        let followed = passing.filter_map(|&(_, number)| {
            let window = self.windows.get(number)?;
            window.deliveries.next_leaves_ms(self.rate, now)
        });
        followed.chain(next).min()
    }

    /// The first millisecond in which a delivery of this instant no longer counts.
    fn leaves_ms(&self, us: u64) -> u64 {
        leaves_ms(self.rate, us)
    }

    /// The first millisecond in which no delivery of the slot that began at this instant counts any more.
    fn slot_leaves_ms(&self, us: u64) -> u64 {
        self.leaves_ms(us.saturating_add(self.slot_us()))
    }

    /// Deliveries of a group within a slot of this length have one entry in `recent`, for the first of them. It is 0 if
    /// a window never holds more deliveries than are kept apart.
    fn slot_us(&self) -> u64 {
        if self.rate.count as usize <= ENTRIES {
            return 0;
        }
        self.rate.window_us() / ENTRIES as u64
    }

    pub fn record(&mut self, name: &[u8], new: Delivered, now: Now) {
        self.drop_past(now);
        let number = self.find(name).unwrap_or_else(|| {
            let number = self.windows.insert(Window {
                name: name.into(),
                deliveries: Deliveries::new(),
                opens_ms: 0,
            });
            self.names.insert(self.hasher.hash_one(name), number);
            self.heap_bytes += allocated(name.len());
            number
        });
        let (rate, slot_us) = (self.rate, self.slot_us());
        let window = there(self.windows.get_mut(number), NO_WINDOW);
        let before = window.heap_bytes();
        let last_us = window.deliveries.last_us();
        window.deliveries.record(rate, ENTRIES, new, now);
        window.note_opening(rate, now);
        self.heap_bytes = self.heap_bytes + window.heap_bytes() - before;
        let is_recent = |slot: u64| slot != 0 && last_us / slot == now.us() / slot;
        if !is_recent(slot_us) {
            self.recent.push_back((now.us(), number));
        }
    }

    /// The delivery with this token counts `weight` from now on; false if nothing changes.
    pub fn reweigh(&mut self, name: &[u8], token: u64, weight: u32, now: Now) -> bool {
        let (rate, number) = (self.rate, self.find(name));
        let window = number.and_then(|number| self.windows.get_mut(number));
        let Some(window) = window.filter(|_| token > self.since) else {
            return false;
        };
        let before = window.heap_bytes();
        let is_changed = window.deliveries.reweigh(token, weight);
        window.note_opening(rate, now);
        self.heap_bytes = self.heap_bytes + window.heap_bytes() - before;
        is_changed
    }

    /// Whether the clock was set back behind the last delivery.
    pub fn is_ahead(&self, now: Now) -> bool {
        self.recent.back().is_some_and(|&(us, _)| us > now.us())
    }

    /// Moves instants in the future, where the clock was set back, to now. Returns the names of the groups that may be
    /// served sooner by that.
    pub fn step_back(&mut self, now: Now) -> Vec<Box<[u8]>> {
        let ahead = self.recent.iter_mut().rev();
        let ahead = ahead.take_while(|(us, _)| *us > now.us());
        let mut numbers: Vec<u32> = ahead
            .map(|(us, number)| {
                *us = now.us();
                *number
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut names = Vec::new();
        for number in numbers {
            if let Some(window) = self.windows.get_mut(number) {
                let before = window.heap_bytes();
                window.deliveries.step_back(now);
                window.note_opening(self.rate, now);
                self.heap_bytes = self.heap_bytes + window.heap_bytes() - before;
                names.push(window.name.clone());
            }
        }
        names
    }

    fn drop_past(&mut self, now: Now) {
        for _ in 0..PASSED_WITH_EACH {
            let first = self.recent.front().copied();
            let past = first.filter(|&(us, _)| self.slot_leaves_ms(us) <= now.ms());
            let Some((_, number)) = past else {
                return;
            };
            self.recent.pop_front();
            let window = self.windows.get(number);
            let is_past = |window: &Window| self.leaves_ms(window.deliveries.last_us()) <= now.ms();
            if window.is_some_and(is_past) {
                let window = there(self.windows.remove(number), NO_WINDOW);
                let hash = self.hasher.hash_one(&*window.name);
                must(self.names.remove(hash, number), NO_WINDOW);
                self.heap_bytes -= window.heap_bytes();
            }
        }
    }

    /// Frees about `count` windows that are not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.windows.free_some(count) || self.names.free_some(count)
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.windows.memory_bytes()
            + self.names.memory_bytes()
            + self.recent.capacity() * size_of::<(u64, u32)>()
            + self.heap_bytes
    }
}

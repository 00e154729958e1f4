//! The windows of GROUPRATE and of groups' own RATE, one for each group that was served lately. A window outlives its
//! group, so that a group that comes again has no fresh one. It is dropped once its last delivery has left it.

use super::{leaves_ms, Delivered, Deliveries};
use crate::queue::clock::Now;
use crate::queue::settings::Rate;
use crate::queue::state::store::allocated;
use crate::storage::broken::{must, there};
use crate::storage::slab::Slab;
use crate::storage::table::IdTable;
use ahash::RandomState;
use std::sync::Arc;

struct Window {
    name: Box<[u8]>,
    deliveries: Deliveries,
    rate: Rate,
    /// The last token before the window began: older deliveries are not in it.
    since: u64,
    /// The first millisecond in which another delivery that counts 1 fits.
    opens_ms: u64,
}

/// Windows by the names of their groups.
struct Windows {
    all: Slab<Window>,
    names: IdTable,
    /// The last window that was looked at to see whether it has ended.
    looked_at: u32,
    /// When the last delivery was.
    last_us: u64,
    /// Bytes of names and deliveries.
    heap_bytes: usize,
}

pub struct GroupRates {
    /// GROUPRATE.
    rate: Option<Rate>,
    common: Windows,
    /// Of groups with a RATE of their own.
    own: Windows,
    hasher: Arc<RandomState>,
}

/// Whose window is meant: the group's name, and the RATE that it has of its own, if it has one.
#[derive(Clone, Copy)]
pub struct Rated<'a> {
    pub name: &'a [u8],
    pub own: Option<Option<Rate>>,
}

/// How many deliveries of a group are kept apart, at most.
const ENTRIES: usize = 1000;
const NO_WINDOW: &str = "a window that is not there";
/// How many windows are looked at with each new delivery, to drop those that have ended: more than begin.
const LOOKED_AT: u32 = 2;

impl Window {
    /// Changes its deliveries.
    fn edit<T>(&mut self, now: Now, edit: impl FnOnce(&mut Deliveries, Rate) -> T) -> T {
        let result = edit(&mut self.deliveries, self.rate);
        self.opens_ms = self.deliveries.opens_us(self.rate, 1, now).div_ceil(1000);
        result
    }

    fn has_ended(&self, now: Now) -> bool {
        leaves_ms(self.rate, self.deliveries.last_us()) <= now.ms()
    }

    fn heap_bytes(&self) -> usize {
        allocated(self.name.len()) + self.deliveries.memory_bytes()
    }
}

impl Windows {
    const fn new() -> Self {
        Windows {
            all: Slab::new(),
            names: IdTable::new(),
            looked_at: 0,
            last_us: 0,
            heap_bytes: 0,
        }
    }

    fn number(&self, name: &[u8], hash: u64) -> Option<u32> {
        let is_it = |number| *there(self.all.get(number), NO_WINDOW).name == *name;
        self.names.find(hash, is_it)
    }

    fn edit<T>(
        &mut self,
        number: u32,
        now: Now,
        edit: impl FnOnce(&mut Deliveries, Rate) -> T,
    ) -> T {
        let window = there(self.all.get_mut(number), NO_WINDOW);
        let before = window.heap_bytes();
        let result = window.edit(now, edit);
        self.heap_bytes = self.heap_bytes + window.heap_bytes() - before;
        result
    }

    fn begin(&mut self, name: &[u8], hash: u64, rate: Rate, since: u64) -> u32 {
        let window = Window {
            name: name.into(),
            deliveries: Deliveries::new(),
            rate,
            since,
            opens_ms: 0,
        };
        self.heap_bytes += window.heap_bytes();
        let number = self.all.insert(window);
        self.names.insert(hash, number);
        number
    }

    fn drop_window(&mut self, number: u32, hash: u64) {
        if let Some(window) = self.all.remove(number) {
            must(self.names.remove(hash, number), NO_WINDOW);
            self.heap_bytes -= window.heap_bytes();
        }
    }

    /// Looks at the next few windows, and drops those that have ended.
    fn drop_past(&mut self, now: Now, hasher: &RandomState) {
        for _ in 0..LOOKED_AT {
            self.looked_at = match self.looked_at + 1 {
                next if next < self.all.end() => next,
                _ => 0,
            };
            let window = self.all.get(self.looked_at);
            let past = window.filter(|window| window.has_ended(now));
            if let Some(hash) = past.map(|window| hasher.hash_one(&*window.name)) {
                self.drop_window(self.looked_at, hash);
            }
        }
    }

    fn step_back(&mut self, now: Now, names: &mut Vec<Box<[u8]>>) {
        if self.last_us <= now.us() {
            return;
        }
        self.last_us = now.us();
        let numbers: Vec<u32> = self.names.handles().collect();
        for number in numbers {
            let window = there(self.all.get(number), NO_WINDOW);
            if window.deliveries.last_us() > now.us() {
                names.push(window.name.clone());
                self.edit(number, now, |it, _| it.step_back(now));
            }
        }
    }

    fn free_some(&mut self, count: usize) -> bool {
        self.all.free_some(count) || self.names.free_some(count)
    }

    fn memory_bytes(&self) -> usize {
        self.all.memory_bytes() + self.names.memory_bytes() + self.heap_bytes
    }
}

impl GroupRates {
    pub fn new(rate: Option<Rate>, hasher: Arc<RandomState>) -> Self {
        GroupRates {
            rate,
            common: Windows::new(),
            own: Windows::new(),
            hasher,
        }
    }

    pub fn len(&self) -> usize {
        self.common.all.len() + self.own.all.len()
    }

    /// Begins the windows of GROUPRATE anew, with another rate; returns the old ones.
    pub fn renew(&mut self, rate: Option<Rate>) -> Self {
        self.rate = rate;
        GroupRates {
            common: std::mem::replace(&mut self.common, Windows::new()),
            ..GroupRates::new(None, self.hasher.clone())
        }
    }

    /// Begins the window of one group anew.
    pub fn forget(&mut self, name: &[u8]) {
        let hash = self.hasher.hash_one(name);
        for windows in [&mut self.common, &mut self.own] {
            if let Some(number) = windows.number(name, hash) {
                windows.drop_window(number, hash);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Window> {
        self.common.all.iter().chain(self.own.all.iter())
    }

    fn windows(&mut self, group: Rated<'_>) -> (&mut Windows, &RandomState) {
        let windows = match group.own {
            None => &mut self.common,
            Some(_) => &mut self.own,
        };
        (windows, &self.hasher)
    }

    fn find(&self, group: Rated<'_>) -> Option<&Window> {
        let windows = match group.own {
            None => &self.common,
            Some(_) => &self.own,
        };
        if windows.all.len() == 0 {
            return None;
        }
        let number = windows.number(group.name, self.hasher.hash_one(group.name))?;
        windows.all.get(number)
    }

    /// The first millisecond in which a delivery of this group that counts 1 fits; in the past if it fits now.
    pub fn opens_ms(&self, group: Rated<'_>) -> u64 {
        self.find(group).map_or(0, |window| window.opens_ms)
    }

    /// As [`GroupRates::opens_ms`], for a delivery that counts `weight`.
    pub fn opens_ms_for(&self, group: Rated<'_>, weight: u32, now: Now) -> u64 {
        self.find(group).map_or(
            0,
            |Window {
                 deliveries, rate, ..
             }| { deliveries.opens_us(*rate, weight, now).div_ceil(1000) },
        )
    }

    /// What the deliveries in a group's window count: each until the millisecond in which it no longer does.
    pub fn used(&self, group: Rated<'_>, now: Now) -> u64 {
        self.find(group).map_or(
            0,
            |Window {
                 deliveries, rate, ..
             }| { deliveries.used(|us| leaves_ms(*rate, us) <= now.ms()) },
        )
    }

    /// The names of all groups that have a window.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.iter().map(|window| &*window.name)
    }

    /// The first instant after now at which a delivery leaves a window. Looks at all windows: for the test clock.
    pub fn next_opens_ms(&self, now: Now) -> Option<u64> {
        let next = |it: &Window| it.deliveries.next_leaves_ms(it.rate, now);
        self.iter().filter_map(next).min()
    }

    /// Records a delivery. `since` is the last token before it.
    pub fn record(&mut self, group: Rated<'_>, new: Delivered, since: u64, now: Now) {
        let Some(rate) = group.own.unwrap_or(self.rate) else {
            return;
        };
        let (windows, hasher) = self.windows(group);
        windows.drop_past(now, hasher);
        let hash = hasher.hash_one(group.name);
        let number = windows.number(group.name, hash);
        let number = number.unwrap_or_else(|| windows.begin(group.name, hash, rate, since));
        windows.last_us = windows.last_us.max(now.us());
        windows.edit(number, now, |it, rate| it.record(rate, ENTRIES, new, now));
    }

    /// The delivery with this token counts `weight` from now on; false if nothing changes.
    pub fn reweigh(&mut self, group: Rated<'_>, token: u64, weight: u32, now: Now) -> bool {
        let (windows, hasher) = self.windows(group);
        let number = windows.number(group.name, hasher.hash_one(group.name));
        let number = number.filter(|&number| {
            let window = windows.all.get(number);
            window.is_some_and(|window| token > window.since)
        });
        number.is_some_and(|number| windows.edit(number, now, |it, _| it.reweigh(token, weight)))
    }

    /// Whether the clock was set back behind the last delivery.
    pub fn is_ahead(&self, now: Now) -> bool {
        self.common.last_us.max(self.own.last_us) > now.us()
    }

    /// Moves instants in the future, where the clock was set back, to now. Returns the names of the groups that may be
    /// served sooner by that.
    pub fn step_back(&mut self, now: Now) -> Vec<Box<[u8]>> {
        let mut names = Vec::new();
        self.common.step_back(now, &mut names);
        self.own.step_back(now, &mut names);
        names
    }

    /// Frees about `count` windows that are not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.common.free_some(count) || self.own.free_some(count)
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.common.memory_bytes() + self.own.memory_bytes()
    }
}

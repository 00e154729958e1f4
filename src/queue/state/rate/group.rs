//! The windows of GROUPRATE, one for each group that was served lately. A group's outlives the group: one that
//! comes again has no fresh one. Each goes once its last delivery has left it.

use super::RateWindow;
use crate::queue::clock::Now;
use crate::queue::job::Handle;
use crate::queue::settings::Rate;
use crate::queue::state::store::allocated;
use crate::queue::state::Queue;
use crate::storage::broken::{must, there};
use crate::storage::slab::Slab;
use crate::storage::table::IdTable;
use ahash::RandomState;
use std::collections::VecDeque;
use std::sync::Arc;

struct Window {
    name: Box<[u8]>,
    deliveries: RateWindow,
    /// The first millisecond in which another delivery fits.
    opens_ms: u64,
}

pub struct GroupRates {
    rate: Rate,
    windows: Slab<Window>,
    names: IdTable,
    /// When a window had a delivery, the oldest first.
    recent: VecDeque<(u64, u32)>,
    /// Of names and deliveries.
    heap_bytes: usize,
    hasher: Arc<RandomState>,
}

const NO_WINDOW: &str = "a window that is not there";
/// Deliveries looked at with each one, for windows that are past: more than come.
const PASSED_WITH_EACH: usize = 2;

impl Window {
    fn heap_bytes(&self) -> usize {
        allocated(self.name.len()) + self.deliveries.memory_bytes()
    }
}

impl GroupRates {
    pub fn new(rate: Rate, hasher: Arc<RandomState>) -> Self {
        GroupRates {
            rate,
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

    /// The first millisecond in which a delivery of that group fits; in the past where one fits now.
    pub fn opens_ms(&self, name: &[u8]) -> u64 {
        let window = self.find(name).and_then(|number| self.windows.get(number));
        window.map_or(0, |window| window.opens_ms)
    }

    /// The first instant after now at which a delivery leaves a window.
    pub fn next_opens_ms(&self, now: Now) -> Option<u64> {
        let passed = self
            .recent
            .partition_point(|&(us, _)| self.leaves_ms(us) <= now.ms());
        self.recent.get(passed).map(|&(us, _)| self.leaves_ms(us))
    }

    /// The first millisecond in which a delivery of that instant counts no more.
    fn leaves_ms(&self, us: u64) -> u64 {
        us.saturating_add(self.rate.window_us()).div_ceil(1000)
    }

    fn record(&mut self, name: &[u8], now: Now) {
        self.drop_past(now);
        let number = self.find(name).unwrap_or_else(|| {
            let number = self.windows.insert(Window {
                name: name.into(),
                deliveries: RateWindow::new(self.rate),
                opens_ms: 0,
            });
            self.names.insert(self.hasher.hash_one(name), number);
            self.heap_bytes += allocated(name.len());
            number
        });
        let window = there(self.windows.get_mut(number), NO_WINDOW);
        let before = window.heap_bytes();
        window.deliveries.record(now);
        window.opens_ms = window.deliveries.opens_ms(now);
        self.heap_bytes = self.heap_bytes + window.heap_bytes() - before;
        self.recent.push_back((now.us(), number));
    }

    /// The clock has stepped back behind the last delivery.
    fn is_ahead(&self, now: Now) -> bool {
        self.recent.back().is_some_and(|&(us, _)| us > now.us())
    }

    /// What seems to lie ahead was at the latest now. The names of those who may be served sooner than they stand.
    fn step_back(&mut self, now: Now) -> Vec<Box<[u8]>> {
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
                window.deliveries.step_back(now);
                window.opens_ms = window.deliveries.opens_ms(now);
                names.push(window.name.clone());
            }
        }
        names
    }

    fn drop_past(&mut self, now: Now) {
        for _ in 0..PASSED_WITH_EACH {
            let first = self.recent.front().copied();
            let past = first.filter(|&(us, _)| self.leaves_ms(us) <= now.ms());
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

impl Queue {
    /// Before a delivery: where the clock has stepped back, no group waits longer than a window from now on.
    #[inline]
    pub(in crate::queue) fn follow_clock_back(&mut self, now: Now) {
        let rates = self.group_rates.as_deref_mut();
        if let Some(rates) = rates.filter(|rates| rates.is_ahead(now)) {
            let names = rates.step_back(now);
            self.refresh_named(&names);
        }
    }

    /// A delivery, if of a job with a group.
    #[inline(never)]
    pub(in crate::queue::state) fn record_in_group(&mut self, handle: Handle, now: Now) {
        let number = self.jobs.job(handle).group();
        if let (Some(rates), Some(groups), Some(number)) =
            (&mut self.group_rates, &self.groups, number)
        {
            rates.record(groups.name(number), now);
        }
    }
}

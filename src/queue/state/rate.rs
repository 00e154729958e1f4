//! The exact sliding window behind RATE and GROUPRATE: when deliveries were, and what each counts.
//!
//! Where each counts 1, their instants are all there is, and a token tells which one is its own. Otherwise, and where
//! there would be too many, they are [`Weighed`].

pub mod group;
mod weighed;

use crate::queue::clock::Now;
use crate::queue::job::{Handle, TOKEN_MS_SHIFT, TOKEN_US_SHIFT};
use crate::queue::settings::Rate;
use crate::queue::state::Queue;
use std::collections::VecDeque;
use weighed::Weighed;

/// Deliveries that the window of RATE tells apart, at most.
pub const ENTRIES: usize = 100_000;

/// Tokens of one microsecond; and how far those of all deliveries that are counted separately reach.
const TOKENS_PER_US: usize = 1 << TOKEN_US_SHIFT;
const AHEAD_US: u64 = (ENTRIES / TOKENS_PER_US) as u64 + 1;

/// What is recorded: its token is 0 if no DQ.TOUCH can correct it any more.
#[derive(Clone, Copy)]
pub struct Delivered {
    pub token: u64,
    pub cost: u32,
}

/// The deliveries of one window.
#[derive(Clone, Debug)]
pub enum Deliveries {
    /// In microseconds, the oldest first: whole milliseconds would let two deliveries 9.2 ms apart pass as 10.
    Plain(VecDeque<u64>),
    Weighed(Box<Weighed>),
}

/// Without the low bits, which tell apart what was drawn in one microsecond.
fn first_of(token: u64) -> u64 {
    token >> TOKEN_US_SHIFT << TOKEN_US_SHIFT
}

/// The microsecond at which a token was drawn.
fn drawn_us(token: u64) -> u64 {
    let us = (token >> TOKEN_US_SHIFT) & ((1 << (TOKEN_MS_SHIFT - TOKEN_US_SHIFT)) - 1);
    (token >> TOKEN_MS_SHIFT) * 1000 + us
}

/// Whether that token, where so many were drawn at once that they reach into microseconds to come, may be of a
/// delivery at that instant.
fn may_be_of(token: u64, us: u64) -> bool {
    (us..=us + AHEAD_US).contains(&drawn_us(token))
}

/// The first millisecond in which a delivery of that instant counts no more.
fn leaves_ms(rate: Rate, us: u64) -> u64 {
    us.saturating_add(rate.window_us()).div_ceil(1000)
}

impl Deliveries {
    pub const fn new() -> Self {
        Deliveries::Plain(VecDeque::new())
    }

    /// The first microsecond at which a delivery of that cost fits. What seems to lie ahead, because the clock
    /// stepped back, was at the latest now.
    #[inline]
    pub fn opens_us(&self, rate: Rate, cost: u32, now: Now) -> u64 {
        let last_to_leave = match self {
            Deliveries::Plain(recent) => {
                let may_stay = rate.count.saturating_sub(cost) as usize;
                let leaving = recent.len().saturating_sub(may_stay);
                leaving.checked_sub(1).map(|last| recent[last])
            }
            Deliveries::Weighed(weighed) => weighed.last_to_leave(rate, cost),
        };
        let leaves = |us: u64| us.min(now.us()).saturating_add(rate.window_us());
        last_to_leave.map_or(0, leaves)
    }

    /// A delivery at this instant, of as many as `most` that are counted separately.
    pub fn record(&mut self, rate: Rate, most: usize, new: Delivered, now: Now) {
        self.step_back(now);
        self.forget(rate, now);
        let is_plain = new.cost == 1 && self.is_told_by(new.token, now);
        match self {
            Deliveries::Plain(recent) if is_plain && recent.len() < most => {
                recent.push_back(now.us());
            }
            Deliveries::Weighed(weighed) if is_plain && weighed.is_empty() => {
                *self = Deliveries::Plain(VecDeque::from([now.us()]));
            }
            _ => self.weigh().record(rate, most, new, now),
        }
    }

    /// Those go that have left before a delivery at this instant. Groups go by whole milliseconds: no earlier than
    /// these, but for one that must have left, or this one would not fit.
    fn forget(&mut self, rate: Rate, now: Now) {
        let is_past = |us: u64| us.saturating_add(rate.window_us()) <= now.ms() * 1000;
        match self {
            Deliveries::Plain(recent) => {
                let mut is_full = recent.len() >= rate.count as usize;
                while recent.front().is_some_and(|&us| is_full || is_past(us)) {
                    is_full = false;
                    recent.pop_front();
                }
            }
            Deliveries::Weighed(weighed) => weighed.forget(rate, is_past),
        }
    }

    /// Whether its token tells that it is of this instant.
    #[inline]
    fn is_told_by(&self, token: u64, now: Now) -> bool {
        token == 0 || first_of(token) == now.first_token() || self.is_behind(token, now)
    }

    /// Whether it follows on as many of this instant as there are tokens.
    #[cold]
    fn is_behind(&self, token: u64, now: Now) -> bool {
        let Deliveries::Plain(recent) = self else {
            return false;
        };
        let before = recent.len().checked_sub(TOKENS_PER_US);
        before.is_some_and(|at| recent[at] == now.us()) && may_be_of(token, now.us())
    }

    /// That delivery counts so much from now on. False where nothing changes: also where none is told apart from
    /// others by that token.
    pub fn reweigh(&mut self, token: u64, cost: u32) -> bool {
        if let Deliveries::Plain(recent) = self {
            let behind = recent.partition_point(|&us| us <= drawn_us(token));
            let own = behind.checked_sub(1).map(|at| recent[at]);
            if cost == 1 || !own.is_some_and(|us| may_be_of(token, us)) {
                return false;
            }
        }
        self.weigh().reweigh(token, cost)
    }

    fn weigh(&mut self) -> &mut Weighed {
        if let Deliveries::Plain(recent) = self {
            *self = Deliveries::Weighed(Box::new(Weighed::of(recent)));
        }
        match self {
            Deliveries::Weighed(weighed) => weighed,
            Deliveries::Plain(_) => unreachable!("weighed just now"),
        }
    }

    /// What seems to lie ahead was at the latest now.
    fn step_back(&mut self, now: Now) {
        // The tokens do not tell any more when that was.
        if self.last_us() > now.us() {
            self.weigh().step_back(now);
        }
    }

    /// The last delivery.
    fn last_us(&self) -> u64 {
        match self {
            Deliveries::Plain(recent) => recent.back().copied().unwrap_or(0),
            Deliveries::Weighed(weighed) => weighed.last_us(),
        }
    }

    /// The first millisecond after now in which one counts no more.
    fn next_leaves_ms(&self, rate: Rate, now: Now) -> Option<u64> {
        let is_past = |us: u64| leaves_ms(rate, us) <= now.ms();
        let next = match self {
            Deliveries::Plain(recent) => {
                let past = recent.partition_point(|&us| is_past(us));
                recent.get(past).copied()
            }
            Deliveries::Weighed(weighed) => weighed.first_not(is_past),
        };
        next.map(|us| leaves_ms(rate, us.min(now.us())))
    }

    /// What those count that are in the window.
    fn used(&self, rate: Rate, now: Now) -> u64 {
        let is_past = |us: u64| us.saturating_add(rate.window_us()) <= now.us();
        match self {
            Deliveries::Plain(recent) => {
                (recent.len() - recent.partition_point(|&us| is_past(us))) as u64
            }
            Deliveries::Weighed(weighed) => weighed.used(is_past),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        match self {
            Deliveries::Plain(recent) => recent.capacity() * size_of::<u64>(),
            Deliveries::Weighed(weighed) => weighed.memory_bytes(),
        }
    }
}

/// The window of RATE.
#[derive(Clone, Debug)]
pub struct RateWindow {
    deliveries: Deliveries,
    /// The last token before it began: older deliveries are not in it.
    since: u64,
}

impl RateWindow {
    pub fn new(since: u64) -> Self {
        RateWindow {
            deliveries: Deliveries::new(),
            since,
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.deliveries.memory_bytes()
    }
}

impl Queue {
    /// What a delivery of that job counts.
    #[inline]
    pub(in crate::queue) fn cost_of(&self, handle: Handle) -> u32 {
        if self.jobs.has_notes() {
            self.jobs.notes(handle).cost()
        } else {
            1
        }
    }

    /// Whether deliveries are recorded.
    #[inline]
    pub(super) fn has_rates(&self) -> bool {
        self.cold.rate.is_some() || self.group_rates.is_some()
    }

    /// The window of RATE, and how much it lets go.
    #[inline]
    fn rate(&self) -> Option<(&RateWindow, Rate)> {
        self.cold.rate.as_deref().zip(self.settings.rate)
    }

    /// The first millisecond in which RATE lets a delivery of that cost go; 0 where it does now.
    #[inline]
    pub(in crate::queue) fn rate_opens_ms(&self, cost: u32, now: Now) -> u64 {
        let Some((window, rate)) = self.rate() else {
            return 0;
        };
        let opens_us = window.deliveries.opens_us(rate, cost, now);
        if opens_us <= now.us() {
            return 0;
        }
        opens_us.div_ceil(1000)
    }

    /// What the deliveries in the window of RATE count; 0 without one.
    pub fn rate_used(&self, now: Now) -> u64 {
        self.rate()
            .map_or(0, |(window, rate)| window.deliveries.used(rate, now))
    }

    /// When RATE may let something go that it does not now, but for what is due later; perhaps earlier than it does.
    pub(super) fn next_rate_instant(&self, now: Now) -> Option<u64> {
        let (window, rate) = self.rate()?;
        let is_plain = matches!(window.deliveries, Deliveries::Plain(_));
        if is_plain && !self.jobs.has_notes() {
            return Some(self.rate_opens_ms(1, now));
        }
        window.deliveries.next_leaves_ms(rate, now)
    }

    /// A delivery, in the window of RATE.
    #[inline]
    pub(super) fn record_in_rate(&mut self, new: Delivered, now: Now) {
        let window = self.cold.made().and_then(|cold| cold.rate.as_mut());
        if let Some((window, rate)) = window.zip(self.settings.rate) {
            window.deliveries.record(rate, ENTRIES, new, now);
        }
    }

    /// What a job's current delivery counts from now on, in the windows of RATE and GROUPRATE.
    pub(in crate::queue) fn reweigh(&mut self, handle: Handle, cost: u32, now: Now) {
        let token = self.jobs.job(handle).life().token;
        let window = self.cold.made().and_then(|cold| cold.rate.as_mut());
        if let Some(window) = window.filter(|window| token > window.since) {
            window.deliveries.reweigh(token, cost);
        }
        self.reweigh_in_group(handle, token, cost, now);
    }
}

#[cfg(test)]
mod tests;

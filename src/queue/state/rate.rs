//! The exact sliding window behind RATE and GROUPRATE: when deliveries were, and what each counts.
//!
//! If each delivery counts 1, only its instant is kept, and a token tells which delivery is its own. Otherwise, and if
//! there would be too many, they are [`Weighed`].

pub mod group;
mod weighed;

use crate::queue::clock::Now;
use crate::queue::job::{TOKEN_MS_SHIFT, TOKEN_US_SHIFT};
use crate::queue::settings::Rate;
use std::collections::VecDeque;
use weighed::Weighed;

/// How many deliveries the window of RATE keeps apart, at most.
pub const ENTRIES: usize = 100_000;

/// Tokens of one microsecond; and how many microseconds ahead the tokens of [`ENTRIES`] deliveries reach.
const TOKENS_PER_US: usize = 1 << TOKEN_US_SHIFT;
const AHEAD_US: u64 = (ENTRIES / TOKENS_PER_US) as u64 + 1;

/// A delivery to be recorded. Its token is 0 if no DQ.TOUCH can correct it any more.
#[derive(Clone, Copy)]
pub struct Delivered {
    pub token: u64,
    pub weight: u32,
}

/// The deliveries of one window.
#[derive(Clone, Debug)]
pub enum Deliveries {
    /// In microseconds, the oldest first: whole milliseconds would let two deliveries 9.2 ms apart pass as 10.
    Plain(VecDeque<u64>),
    Weighed(Box<Weighed>),
}

/// A token without its low bits, which distinguish the tokens of one microsecond.
fn first_of(token: u64) -> u64 {
    token >> TOKEN_US_SHIFT << TOKEN_US_SHIFT
}

/// The microsecond at which a token was drawn.
fn drawn_us(token: u64) -> u64 {
    let us = (token >> TOKEN_US_SHIFT) & ((1 << (TOKEN_MS_SHIFT - TOKEN_US_SHIFT)) - 1);
    (token >> TOKEN_MS_SHIFT) * 1000 + us
}

/// Whether this token may be of a delivery at this instant: if very many are drawn at once, tokens reach into later
/// microseconds.
fn may_be_of(token: u64, us: u64) -> bool {
    (us..=us + AHEAD_US).contains(&drawn_us(token))
}

/// The first millisecond in which a delivery of this instant no longer counts.
fn leaves_ms(rate: Rate, us: u64) -> u64 {
    us.saturating_add(rate.window_us()).div_ceil(1000)
}

impl Deliveries {
    pub const fn new() -> Self {
        Deliveries::Plain(VecDeque::new())
    }

    /// The first microsecond at which a delivery of this weight fits. Where the clock was set back, recorded instants in
    /// the future count as now.
    #[inline]
    pub fn opens_us(&self, rate: Rate, weight: u32, now: Now) -> u64 {
        let last_to_leave = match self {
            Deliveries::Plain(recent) => {
                let may_stay = rate.count.saturating_sub(weight) as usize;
                let leaving = recent.len().saturating_sub(may_stay);
                leaving.checked_sub(1).map(|last| recent[last])
            }
            Deliveries::Weighed(weighed) => weighed.last_to_leave(rate, weight),
        };
        let leaves = |us: u64| us.min(now.us()).saturating_add(rate.window_us());
        last_to_leave.map_or(0, leaves)
    }

    /// Records a delivery. At most `most` deliveries are kept apart.
    pub fn record(&mut self, rate: Rate, most: usize, new: Delivered, now: Now) {
        self.step_back(now);
        self.forget(rate, now);
        let is_plain = new.weight == 1 && self.is_told_by(new.token, now);
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

    /// Drops deliveries that have left the window, by whole milliseconds, as groups go by these. From a full window the
    /// first has left in any case, as the new delivery would not fit otherwise.
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

    /// Whether the token says that its delivery is of this instant.
    #[inline]
    fn is_told_by(&self, token: u64, now: Now) -> bool {
        token == 0 || first_of(token) == now.first_token() || self.is_behind(token, now)
    }

    /// Whether the delivery follows as many others of this instant as there are tokens for.
    #[cold]
    fn is_behind(&self, token: u64, now: Now) -> bool {
        let Deliveries::Plain(recent) = self else {
            return false;
        };
        let before = recent.len().checked_sub(TOKENS_PER_US);
        before.is_some_and(|at| recent[at] == now.us()) && may_be_of(token, now.us())
    }

    /// The delivery with this token counts `weight` from now on. False if nothing changes, or if the token does not
    /// distinguish one delivery from others.
    pub fn reweigh(&mut self, token: u64, weight: u32) -> bool {
        if let Deliveries::Plain(recent) = self {
            let behind = recent.partition_point(|&us| us <= drawn_us(token));
            let own = behind.checked_sub(1).map(|at| recent[at]);
            if weight == 1 || !own.is_some_and(|us| may_be_of(token, us)) {
                return false;
            }
        }
        self.weigh().reweigh(token, weight)
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

    /// Moves instants in the future, where the clock was set back, to now.
    fn step_back(&mut self, now: Now) {
        // The tokens no longer tell when those deliveries were.
        if self.last_us() > now.us() {
            self.weigh().step_back(now);
        }
    }

    /// The instant of the last delivery.
    fn last_us(&self) -> u64 {
        match self {
            Deliveries::Plain(recent) => recent.back().copied().unwrap_or(0),
            Deliveries::Weighed(weighed) => weighed.last_us(),
        }
    }

    /// The first millisecond after now in which a delivery no longer counts.
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

    /// What the deliveries count together that are not past. Past ones come before the others.
    fn used(&self, is_past: impl Fn(u64) -> bool) -> u64 {
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
    /// The last token before the window began: older deliveries are not in it.
    since: u64,
}

impl RateWindow {
    pub fn new(since: u64) -> Self {
        RateWindow {
            deliveries: Deliveries::new(),
            since,
        }
    }

    /// The first millisecond in which a delivery of this weight is allowed; 0 if it is now.
    #[inline]
    pub fn opens_ms(&self, rate: Rate, weight: u32, now: Now) -> u64 {
        let opens_us = self.deliveries.opens_us(rate, weight, now);
        if opens_us <= now.us() {
            return 0;
        }
        opens_us.div_ceil(1000)
    }

    /// What the deliveries in the window count.
    pub fn used(&self, rate: Rate, now: Now) -> u64 {
        let is_past = |us: u64| us.saturating_add(rate.window_us()) <= now.us();
        self.deliveries.used(is_past)
    }

    /// When a delivery may be allowed that is not now, or earlier. `is_plain`: each counts 1.
    pub fn next_ms(&self, rate: Rate, is_plain: bool, now: Now) -> Option<u64> {
        match self.deliveries {
            Deliveries::Plain(_) if is_plain => Some(self.opens_ms(rate, 1, now)),
            _ => self.deliveries.next_leaves_ms(rate, now),
        }
    }

    pub fn record(&mut self, rate: Rate, new: Delivered, now: Now) {
        self.deliveries.record(rate, ENTRIES, new, now);
    }

    /// The delivery with this token counts `weight` from now on.
    pub fn reweigh(&mut self, token: u64, weight: u32) {
        if token > self.since {
            self.deliveries.reweigh(token, weight);
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.deliveries.memory_bytes()
    }
}

#[cfg(test)]
mod tests;

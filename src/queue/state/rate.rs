//! The exact sliding window behind RATE: the instants of the last `count` deliveries.

pub mod group;

use crate::queue::clock::Now;
use crate::queue::settings::Rate;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub struct RateWindow {
    rate: Rate,
    /// In microseconds, the oldest first: whole milliseconds would let two deliveries 9.2 ms apart
    /// pass as 10.
    recent_us: VecDeque<u64>,
}

impl RateWindow {
    pub fn new(rate: Rate) -> Self {
        RateWindow {
            rate,
            recent_us: VecDeque::new(),
        }
    }

    /// The first microsecond at which another delivery fits. What seems to lie ahead, because the
    /// clock stepped back, was at the latest now.
    fn opens_us(&self, now: Now) -> u64 {
        if self.recent_us.len() < self.rate.count as usize {
            return 0;
        }
        let oldest = self.recent_us.front().copied().unwrap_or(0);
        oldest.min(now.us()).saturating_add(self.rate.window_us())
    }

    pub fn is_open(&self, now: Now) -> bool {
        self.opens_us(now) <= now.us()
    }

    /// The first millisecond in which another delivery fits.
    pub fn opens_ms(&self, now: Now) -> u64 {
        self.opens_us(now).div_ceil(1000)
    }

    pub fn record(&mut self, now: Now) {
        if self.recent_us.len() >= self.rate.count as usize {
            self.recent_us.pop_front();
        }
        self.step_back(now);
        self.recent_us.push_back(now.us());
    }

    /// What seems to lie ahead was at the latest now.
    fn step_back(&mut self, now: Now) {
        let recent = self.recent_us.iter_mut().rev();
        for us in recent.take_while(|us| **us > now.us()) {
            *us = now.us();
        }
    }

    /// The last delivery.
    fn last_us(&self) -> u64 {
        self.recent_us.back().copied().unwrap_or(0)
    }

    pub fn memory_bytes(&self) -> usize {
        self.recent_us.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_window_holds_more_than_its_count() {
        let rate = Rate {
            count: 3,
            window_ms: 10,
        };
        let mut window = RateWindow::new(rate);
        let mut deliveries = Vec::new();
        for us in (0..200_000).step_by(370) {
            let now = Now::from_us(us);
            if window.is_open(now) {
                window.record(now);
                deliveries.push(us);
            } else {
                assert!(window.opens_ms(now) * 1000 > us);
            }
        }
        assert!(deliveries.windows(4).all(|w| w[3] - w[0] >= 10_000));
        assert!(
            deliveries.len() > 3 * 200 / 11,
            "and it is not stricter than that"
        );

        let stepped_back = Now::from_us(1000);
        assert!(!window.is_open(stepped_back));
        assert_eq!(window.opens_ms(stepped_back), 11);
        assert!(window.is_open(Now::from_us(300_000)));
    }
}

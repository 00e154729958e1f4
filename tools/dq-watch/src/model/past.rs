//! How many were delivered when: fine for the last hour, coarse for the last month. Nothing is kept for times
//! without deliveries.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

/// Width of a slot in seconds, and how many are kept.
const RINGS: [(i64, usize); 3] = [(10, 360), (300, 288), (3600, 744)];

#[derive(Clone, Debug, Default)]
pub struct Past([VecDeque<(i64, u64)>; RINGS.len()]);

impl Past {
    pub fn add(&mut self, at_ms: i64, count: u64) {
        if count == 0 {
            return;
        }
        for (ring, (seconds, kept)) in self.0.iter_mut().zip(RINGS) {
            let slot = at_ms.div_euclid(1000 * seconds);
            match ring.back_mut() {
                Some((last, sum)) if *last >= slot => *sum += count,
                _ => ring.push_back((slot, count)),
            }
            while ring
                .front()
                .is_some_and(|(first, _)| slot - first >= kept as i64)
            {
                ring.pop_front();
            }
        }
    }

    /// Deliveries from `from_ms` to `to_ms` in so many parts; a slot counts where it begins.
    pub fn buckets(&self, from_ms: i64, to_ms: i64, count: usize) -> Vec<u64> {
        let reach =
            |(seconds, kept): &(i64, usize)| seconds * 1000 * *kept as i64 >= to_ms - from_ms;
        let which = RINGS.iter().position(reach).unwrap_or(RINGS.len() - 1);
        let mut buckets = vec![0; count];
        let span = (to_ms - from_ms).max(1);
        for (slot, sum) in &self.0[which] {
            let at = slot * RINGS[which].0 * 1000;
            if (from_ms..to_ms).contains(&at) {
                buckets[((at - from_ms) as i128 * count as i128 / i128::from(span)) as usize] +=
                    sum;
            }
        }
        buckets
    }
}

/// Of this machine's clock.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_told_by_time_and_forgotten() {
        let mut past = Past::default();
        let hour = 3_600_000;
        for minute in 0..120 {
            past.add(minute * 60_000, 2);
        }
        assert_eq!(past.buckets(hour, 2 * hour, 4), [30; 4]);
        assert_eq!(past.buckets(0, 24 * hour, 24).iter().sum::<u64>(), 240);
        assert_eq!(
            past.buckets(0, hour, 2),
            [0, 0],
            "the fine ones are of one hour"
        );
        // An hour is told by its fine slots: the last of them is the last ten seconds.
        past.add(2 * hour - 10_000, 5);
        assert_eq!(past.buckets(hour, 2 * hour, 360)[359], 5);
        past.add(40 * 24 * hour, 1);
        assert_eq!(past.buckets(0, 41 * 24 * hour, 1), [1]);
    }

    #[test]
    fn a_clock_that_goes_back_loses_none() {
        let mut past = Past::default();
        past.add(50_000, 1);
        past.add(10_000, 1);
        assert_eq!(past.buckets(0, 60_000, 1), [2]);
    }
}

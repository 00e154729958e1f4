//! What a queue did in a minute or in an hour (a slot), and how slots are spread over the parts of
//! a chart.

use dq_watch::model::lateness::{Cumulative, Histogram, Late};
use dq_watch::model::stats::{Stats, Totals, ACKED, ADDED, DELIVERED, DIED, NACKED, TIMED_OUT};

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 3_600_000;

/// What a queue reported at an instant: its totals, and its deliveries by lateness.
pub type Told = (Totals, Vec<(Option<u64>, u64)>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    pub added: u64,
    pub delivered: u64,
    pub acked: u64,
    /// Failed attempts: the job was given back, or its lease expired.
    pub failed: u64,
    pub died: u64,
    /// 99 % of the deliveries were not later; 0 without any.
    pub late_us: u64,
}

impl Slot {
    /// The growth between two readings of totals; a total that fell was reset in between.
    pub fn between(old: &Told, new: &Stats) -> Slot {
        let grown = |of: usize| {
            new.totals[of]
                .checked_sub(old.0[of])
                .unwrap_or(new.totals[of])
        };
        Slot {
            added: grown(ADDED),
            delivered: grown(DELIVERED),
            acked: grown(ACKED),
            failed: grown(NACKED) + grown(TIMED_OUT),
            died: grown(DIED),
            late_us: late(&old.1, &new.lateness).min(new.lateness_max_us),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Slot::default()
    }

    pub fn and(self, other: Slot) -> Slot {
        Slot {
            added: self.added + other.added,
            delivered: self.delivered + other.delivered,
            acked: self.acked + other.acked,
            failed: self.failed + other.failed,
            died: self.died + other.died,
            late_us: self.late_us.max(other.late_us),
        }
    }
}

fn late(old: &Cumulative, new: &Cumulative) -> u64 {
    match Histogram::between(old, new).percentile(0.99) {
        None => 0,
        Some(Late::AtMost(us) | Late::Over(us)) => us,
    }
}

/// The parts of a chart: where the first begins, and how long each is.
#[derive(Debug, PartialEq)]
pub struct Parts {
    from_ms: i64,
    part_ms: i64,
    pub delivered: Vec<f64>,
    pub failed: Vec<f64>,
    pub died: Vec<f64>,
    pub late_us: Vec<u64>,
    /// For each part, whether anything was recorded.
    pub known: Vec<bool>,
}

/// Rates per second at the end of each part; None where nothing is known.
pub struct Rates {
    pub delivered: Vec<Option<f64>>,
    pub failed: Vec<Option<f64>>,
    /// What 99 % of the deliveries do not exceed, and what none does, if that is known.
    pub late_us: Vec<Option<f64>>,
    pub latest_us: Vec<Option<f64>>,
}

impl Parts {
    pub fn new(from_ms: i64, part_ms: i64, count: usize) -> Parts {
        Parts {
            from_ms,
            part_ms,
            delivered: vec![0.0; count],
            failed: vec![0.0; count],
            died: vec![0.0; count],
            late_us: vec![0; count],
            known: vec![false; count],
        }
    }

    pub fn part_ms(&self) -> i64 {
        self.part_ms
    }

    /// From the begin of the first part to the end of the last.
    pub fn range_ms(&self) -> (i64, i64) {
        let long_ms = self.part_ms * self.known.len() as i64;
        (self.from_ms, self.from_ms + long_ms)
    }

    /// The parts that a slot overlaps, each with its share of the slot.
    fn shares(&self, at_ms: i64, long_ms: i64) -> impl Iterator<Item = (usize, f64)> {
        let (from, part, count) = (self.from_ms, self.part_ms, self.known.len() as i64);
        let first = (at_ms - from).div_euclid(part).max(0);
        let last = (at_ms + long_ms - 1 - from).div_euclid(part).min(count - 1);
        (first..=last).map(move |index| {
            let begin = (from + index * part).max(at_ms);
            let end = (from + (index + 1) * part).min(at_ms + long_ms);
            (index as usize, (end - begin) as f64 / long_ms as f64)
        })
    }

    pub fn add(&mut self, at_ms: i64, long_ms: i64, slot: Slot) {
        for (index, share) in self.shares(at_ms, long_ms) {
            self.delivered[index] += slot.delivered as f64 * share;
            self.failed[index] += slot.failed as f64 * share;
            self.died[index] += slot.died as f64 * share;
            self.late_us[index] = self.late_us[index].max(slot.late_us);
        }
    }

    /// Fills the parts from rates: a part is known if it has a rate.
    pub fn of_rates(mut self, rates: Rates) -> Parts {
        let each_s = self.part_ms as f64 / 1000.0;
        let count = |rates: &[Option<f64>], index: usize| {
            let rate = rates.get(index).copied().flatten();
            rate.map(|rate| (rate * each_s).max(0.0))
        };
        for index in 0..self.known.len() {
            let delivered = count(&rates.delivered, index);
            self.known[index] = delivered.is_some();
            self.delivered[index] = delivered.unwrap_or(0.0);
            self.failed[index] = count(&rates.failed, index).unwrap_or(0.0);
            let [late, latest] =
                [&rates.late_us, &rates.latest_us].map(|it| it.get(index).copied().flatten());
            let late = late.map(|us| us.min(latest.unwrap_or(us)));
            // The cast saturates: a lateness beyond all buckets is the largest number.
            self.late_us[index] = late.map_or(0, |us| us as u64);
        }
        self
    }

    pub fn knows(&mut self, at_ms: i64, long_ms: i64) {
        for (index, _) in self.shares(at_ms, long_ms) {
            self.known[index] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_what_grew() {
        let mut stats = Stats {
            lateness: vec![(Some(10), 90), (Some(500), 100), (None, 100)],
            lateness_max_us: 400,
            ..Stats::default()
        };
        let old = (stats.totals, stats.lateness.clone());
        stats.totals[DELIVERED] = 10;
        stats.totals[NACKED] = 2;
        stats.totals[TIMED_OUT] = 1;
        stats.lateness = vec![(Some(10), 90), (Some(500), 110), (None, 110)];
        let slot = Slot::between(&old, &stats);
        assert_eq!((slot.delivered, slot.failed, slot.late_us), (10, 3, 400));
        let mut before = old;
        before.0[DELIVERED] = 99;
        let anew = Slot::between(&before, &stats);
        assert_eq!(anew.delivered, 10, "the server began anew");
        let sum = slot.and(anew);
        assert_eq!((sum.delivered, sum.late_us), (20, 400));
    }

    #[test]
    fn rates_are_counts_of_a_part() {
        let parts = Parts::new(0, 30_000, 3).of_rates(Rates {
            delivered: vec![Some(2.0), None, Some(0.0)],
            failed: vec![Some(0.1), None],
            late_us: vec![Some(1500.0), None, Some(f64::INFINITY)],
            latest_us: vec![Some(1400.0), Some(1.0)],
        });
        assert_eq!(parts.delivered, [60.0, 0.0, 0.0]);
        assert_eq!(parts.failed, [3.0, 0.0, 0.0]);
        assert_eq!(parts.known, [true, false, true]);
        assert_eq!(parts.late_us, [1400, 0, u64::MAX]);
    }

    #[test]
    fn a_slot_lies_over_the_parts_that_it_touches() {
        let slot = Slot {
            delivered: 60,
            late_us: 7,
            ..Slot::default()
        };
        let mut parts = Parts::new(1_000_000, 30_000, 4);
        parts.add(1_000_000 + 15_000, MINUTE_MS, slot);
        assert_eq!(parts.delivered, [15.0, 30.0, 15.0, 0.0]);
        assert_eq!(parts.late_us, [7, 7, 7, 0]);
        // What is outside is left out, and not counted inside.
        let mut early = Parts::new(1_000_000, 30_000, 2);
        early.add(1_000_000 - 45_000, MINUTE_MS, slot);
        early.add(900_000, 1000, slot);
        early.add(1_000_000 + 60_000, MINUTE_MS, slot);
        assert_eq!(early.delivered, [15.0, 0.0]);
        early.knows(1_000_000 + 30_000, 1);
        assert_eq!(early.known, [false, true]);
    }
}

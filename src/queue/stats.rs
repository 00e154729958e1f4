//! What was counted since the queue came to this server, or, over all queues, since the module was
//! loaded. Not data: neither persisted nor replicated nor part of the digest.

use super::clock::Now;
use crate::storage::lazy::{Lazy, Unused};
use serde::{Deserialize, Serialize};

/// Upper bounds of the lateness buckets, in microseconds: one, two, five, ten, ... to an hour.
pub const LATENESS_BOUNDS_US: [u64; 27] = bounds();

const fn bounds() -> [u64; 27] {
    let mut bounds = [0; 27];
    let (mut i, mut decade) = (0, 10);
    while i < 24 {
        bounds[i] = decade;
        bounds[i + 1] = decade * 2;
        bounds[i + 2] = decade * 5;
        decade *= 10;
        i += 3;
    }
    bounds[24] = 1_000_000_000;
    bounds[25] = 2_000_000_000;
    bounds[26] = 3_600_000_000;
    bounds
}

/// How often each thing happened.
#[allow(missing_docs, reason = "called as DQ.STATS calls them")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub added: u64,
    pub delivered: u64,
    pub acked: u64,
    pub nacked: u64,
    pub timed_out: u64,
    pub died: u64,
    pub deleted: u64,
    pub expired: u64,
    pub missed: u64,
    /// Allocated with the first delivery.
    pub lateness: Lazy<Lateness>,
}

/// Time of delivery minus due time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// How many deliveries were counted.
    pub count: u64,
    /// The sum of their lateness.
    pub sum_us: u64,
    /// The largest lateness of a delivery.
    pub max_us: u64,
    /// Deliveries by bucket; the last bucket has no bound.
    counts: [u64; LATENESS_BOUNDS_US.len() + 1],
}

/// How late one delivery is, and in which bucket it counts: found once for all totals.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    us: u64,
    bucket: usize,
}

impl Late {
    /// That of a job that was due at `due_ms`.
    pub fn of(now: Now, due_ms: u64) -> Self {
        let us = now.us().saturating_sub(due_ms * 1000);
        let bucket = LATENESS_BOUNDS_US.partition_point(|&bound| bound < us);
        Late { us, bucket }
    }
}

impl Unused for Lateness {
    const UNUSED: &'static Self = &Lateness {
        count: 0,
        sum_us: 0,
        max_us: 0,
        counts: [0; LATENESS_BOUNDS_US.len() + 1],
    };
}

impl Lateness {
    /// Counts one delivery.
    pub fn record(&mut self, late: Late) {
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(late.us);
        self.max_us = self.max_us.max(late.us);
        self.counts[late.bucket] += 1;
    }

    /// (upper bound in us, deliveries not later than it); the last without a bound.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let bounds = LATENESS_BOUNDS_US.iter().copied().map(Some).chain([None]);
        let mut sum = 0;
        bounds.zip(self.counts).map(move |(bound, count)| {
            sum += count;
            (bound, sum)
        })
    }

    fn add(&mut self, other: &Lateness) {
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }
}

impl Totals {
    /// Adds the totals of another queue, or of another step.
    pub fn add(&mut self, other: &Totals) {
        self.added += other.added;
        self.delivered += other.delivered;
        self.acked += other.acked;
        self.nacked += other.nacked;
        self.timed_out += other.timed_out;
        self.died += other.died;
        self.deleted += other.deleted;
        self.expired += other.expired;
        self.missed += other.missed;
        if other.lateness.count > 0 {
            self.lateness.make().add(&other.lateness);
        }
    }

    /// Counts a delivery by how late it is.
    #[inline]
    pub fn record_delivery(&mut self, late: Late) {
        self.lateness.make().record(late);
    }

    /// By the names that DQ.STATS and INFO give them.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("added", self.added),
            ("delivered", self.delivered),
            ("acked", self.acked),
            ("nacked", self.nacked),
            ("timed-out", self.timed_out),
            ("died", self.died),
            ("deleted", self.deleted),
            ("expired", self.expired),
            ("missed", self.missed),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_two_queues_are_added_one_by_one() {
        let lateness = |late_us: u64| {
            let mut lateness = Lazy::<Lateness>::new();
            let late = Late::of(Now::from_us(1_000_000 + late_us), 1000);
            lateness.make().record(late);
            lateness
        };
        let one = Totals {
            added: 1,
            delivered: 2,
            acked: 3,
            nacked: 4,
            timed_out: 5,
            died: 6,
            deleted: 7,
            expired: 8,
            missed: 9,
            lateness: lateness(30),
        };
        let mut sum = Totals {
            lateness: lateness(12),
            ..one.clone()
        };
        sum.add(&one);
        assert_eq!(
            sum.named().map(|(_, it)| it),
            [2, 4, 6, 8, 10, 12, 14, 16, 18]
        );
        let Lateness {
            count,
            sum_us,
            max_us,
            ..
        } = *sum.lateness;
        assert_eq!((count, sum_us, max_us), (2, 42, 30));
        let buckets: Vec<_> = sum.lateness.buckets().take(3).collect();
        assert_eq!(buckets, [(Some(10), 0), (Some(20), 1), (Some(50), 2)]);
    }

    #[test]
    fn buckets_cover_everything_once() {
        assert!(LATENESS_BOUNDS_US.is_sorted());
        let mut lateness = Lateness::default();
        for late_us in [0, 10, 11, 999, 1_000_000, u64::from(u32::MAX)] {
            lateness.record(Late::of(Now::from_us(1_000_000 + late_us), 1000));
        }
        lateness.record(Late::of(Now::from_us(5), 1000));
        let buckets: Vec<_> = lateness.buckets().collect();
        assert_eq!(
            buckets[0],
            (Some(10), 3),
            "at the bound counts as below; early as 0"
        );
        assert_eq!(buckets[1], (Some(20), 4));
        assert_eq!(*buckets.last().unwrap(), (None, 7));
        assert_eq!((lateness.count, lateness.max_us), (7, u64::from(u32::MAX)));
    }
}

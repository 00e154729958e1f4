//! How late deliveries were, between two readings of the buckets.

/// As DQ.STATS has it: (upper bound in us, deliveries not later than it); the last without a bound.
pub type Cumulative = [(Option<u64>, u64)];

/// Deliveries by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    pub buckets: Vec<(Option<u64>, u64)>,
}

/// What is known of a percentile: the buckets only say between which bounds it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Late {
    AtMost(u64),
    Over(u64),
}

impl Histogram {
    /// The deliveries between two readings. If the counts fell, or the bounds differ, the queue was made anew in
    /// between: then all deliveries are new.
    pub fn between(old: &Cumulative, new: &Cumulative) -> Histogram {
        let goes_on = old.len() == new.len()
            && old
                .iter()
                .zip(new)
                .all(|(old, new)| old.0 == new.0 && old.1 <= new.1);
        let before = |index: usize| if goes_on { old[index].1 } else { 0 };
        let mut below = 0;
        let mut buckets = Vec::with_capacity(new.len());
        for (index, &(bound, count)) in new.iter().enumerate() {
            let up_to_here = count.saturating_sub(before(index));
            buckets.push((bound, up_to_here.saturating_sub(below)));
            below = up_to_here;
        }
        Histogram { buckets }
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, count)| count).sum()
    }

    /// The bound below which `share` (0 to 1) of the deliveries lies; None without deliveries.
    pub fn percentile(&self, share: f64) -> Option<Late> {
        let (over, at_most) = self.bounds(share)?;
        Some(at_most.map_or(Late::Over(over), Late::AtMost))
    }

    /// The bounds of the bucket in which this percentile lies: it is later than the first, and not later than the second.
    pub fn bounds(&self, share: f64) -> Option<(u64, Option<u64>)> {
        let count = self.count();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut below = 0;
        let mut last_bound = 0;
        for &(bound, in_it) in &self.buckets {
            below += in_it;
            if in_it > 0 && below >= rank {
                return Some((last_bound, bound));
            }
            last_bound = bound.unwrap_or(last_bound);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cumulative(counts: [u64; 4]) -> Vec<(Option<u64>, u64)> {
        let bounds = [Some(10), Some(20), Some(50), None];
        bounds.into_iter().zip(counts).collect()
    }

    #[test]
    fn percentiles_are_of_what_came_between() {
        // 1000 early deliveries that must not count, then 98 up to 20 us and 2 up to 50.
        let old = cumulative([1000, 1000, 1000, 1000]);
        let new = cumulative([1000, 1098, 1100, 1100]);
        let between = Histogram::between(&old, &new);
        assert_eq!(between.count(), 100);
        assert_eq!(between.percentile(0.5), Some(Late::AtMost(20)));
        assert_eq!(between.percentile(0.98), Some(Late::AtMost(20)));
        assert_eq!(between.percentile(0.99), Some(Late::AtMost(50)));
        assert_eq!(between.percentile(1.0), Some(Late::AtMost(50)));
        assert_eq!(between.bounds(0.99), Some((20, Some(50))));
        assert_eq!(Histogram::between(&new, &new).percentile(0.5), None);
    }

    #[test]
    fn beyond_the_last_bound_only_that_is_known() {
        let late = Histogram::between(&cumulative([0; 4]), &cumulative([0, 0, 0, 1]));
        assert_eq!(late.percentile(0.5), Some(Late::Over(50)));
        assert!(Late::Over(50) > Late::AtMost(50));
    }

    #[test]
    fn a_queue_that_began_anew_is_all_new() {
        let between = Histogram::between(&cumulative([5, 9, 9, 9]), &cumulative([1, 1, 1, 1]));
        assert_eq!(between.count(), 1);
        assert_eq!(between.percentile(0.99), Some(Late::AtMost(10)));
        let first = Histogram::between(&[], &cumulative([1, 3, 3, 4]));
        let counts: Vec<u64> = first.buckets.iter().map(|bucket| bucket.1).collect();
        assert_eq!(counts, [1, 2, 0, 1]);
    }
}

//! What all queues did together in the last hour, in parts of some seconds.

use std::collections::VecDeque;

use dq_watch::model::stats::{Rates, DELIVERED, NACKED, TIMED_OUT};

pub const EACH_MS: i64 = 10_000;
pub const PARTS: i64 = 360;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    pub delivered: f64,
    pub failed: f64,
    /// Jobs that were ready, at most.
    pub ready: u64,
}

#[derive(Default)]
pub struct Course {
    parts: VecDeque<(i64, Part)>,
    last_ms: i64,
}

impl Course {
    /// Takes what all queues do at this moment.
    pub fn add(&mut self, now_ms: i64, rates: &Rates, ready: u64) {
        let place = now_ms / EACH_MS;
        if self.parts.back().is_none_or(|(last, _)| *last != place) {
            self.parts.push_back((place, Part::default()));
        }
        while self
            .parts
            .front()
            .is_some_and(|(first, _)| *first <= place - PARTS)
            || self.parts.len() > PARTS as usize
        {
            self.parts.pop_front();
        }
        // After a pause of the board nothing is known of it.
        let seconds = (now_ms - self.last_ms).clamp(0, EACH_MS) as f64 / 1000.0;
        let is_first = self.last_ms == 0;
        self.last_ms = now_ms;
        let Some((_, part)) = self.parts.back_mut() else {
            return;
        };
        part.ready = part.ready.max(ready);
        if !is_first {
            part.delivered += rates[DELIVERED] * seconds;
            part.failed += (rates[NACKED] + rates[TIMED_OUT]) * seconds;
        }
    }

    /// The last hour, oldest first; None: the board did not run, or reached no server.
    pub fn hour(&self, now_ms: i64) -> Vec<Option<Part>> {
        let last = now_ms / EACH_MS;
        let mut hour = vec![None; PARTS as usize];
        for (place, part) in &self.parts {
            let index = usize::try_from(place - (last - PARTS + 1));
            if let Some(slot) = index.ok().and_then(|it| hour.get_mut(it)) {
                *slot = Some(*part);
            }
        }
        hour
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_counted_and_what_was_not_seen_is_not_known() {
        let mut course = Course::default();
        let mut rates = Rates::default();
        (rates[DELIVERED], rates[NACKED], rates[TIMED_OUT]) = (4.0, 1.0, 1.0);
        for half in 0..41 {
            course.add(1_000_000 + half * 500, &rates, half as u64);
        }
        let hour = course.hour(1_020_000);
        assert_eq!(hour.len(), PARTS as usize);
        let last: Vec<_> = hour.iter().flatten().collect();
        assert_eq!(last.len(), 3);
        assert_eq!(last.iter().map(|it| it.delivered).sum::<f64>(), 80.0);
        assert_eq!(
            (last[1].delivered, last[1].failed, last[1].ready),
            (40.0, 20.0, 39)
        );
        course.add(1_020_000 + 2 * PARTS * EACH_MS, &rates, 0);
        let after = course.hour(1_020_000 + 2 * PARTS * EACH_MS);
        assert_eq!(after.iter().flatten().count(), 1, "bounded");
    }
}

//! What all queues did together in the last hour, in parts of some seconds.

use std::collections::VecDeque;

use dq_watch::model::stats::{Rates, Totals, DELIVERED, NACKED, TIMED_OUT};

pub const EACH_MS: i64 = 10_000;
pub const PARTS: i64 = 360;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    pub delivered: f64,
    pub failed: f64,
    /// Jobs that were ready, at most.
    pub ready: u64,
}

/// What the servers say at a moment.
pub enum Told<'a> {
    /// Of so many servers. Of another number of them what these sums have grown by is not known.
    Totals(usize, &'a Totals),
    /// Of some of the queues no totals are known.
    Rates(&'a Rates),
}

#[derive(Default)]
pub struct Course {
    parts: VecDeque<(i64, Part)>,
    last_ms: i64,
    last: (usize, Totals),
}

impl Course {
    pub fn add(&mut self, now_ms: i64, told: Told, ready: u64) {
        let place = now_ms / EACH_MS;
        if self.parts.back().is_none_or(|(last, _)| *last != place) {
            self.parts.push_back((place, Part::default()));
        }
        let is_old = |(at, _): &(i64, Part)| *at <= place - PARTS;
        while self.parts.front().is_some_and(is_old) {
            self.parts.pop_front();
        }
        let grown = self.grown(now_ms, told);
        if let Some((_, part)) = self.parts.back_mut() {
            part.ready = part.ready.max(ready);
            part.delivered += grown(DELIVERED);
            part.failed += grown(NACKED) + grown(TIMED_OUT);
        }
    }

    /// By how much each total has grown since the last time.
    fn grown<'a>(&mut self, now_ms: i64, told: Told<'a>) -> impl Fn(usize) -> f64 + 'a {
        // After a pause of the board nothing is known of it.
        let since = if self.last_ms == 0 {
            0
        } else {
            now_ms - self.last_ms
        };
        let seconds = since.clamp(0, EACH_MS) as f64 / 1000.0;
        self.last_ms = now_ms;
        let before = match told {
            Told::Totals(servers, totals) => std::mem::replace(&mut self.last, (servers, *totals)),
            Told::Rates(_) => self.last,
        };
        move |of| match told {
            Told::Totals(servers, totals) if servers == before.0 => {
                totals[of].saturating_sub(before.1[of]) as f64
            }
            Told::Totals(..) => 0.0,
            Told::Rates(rates) => rates[of] * seconds,
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

    fn told(hour: &[Option<Part>]) -> Vec<(f64, f64, u64)> {
        let parts = hour.iter().flatten();
        parts
            .map(|it| (it.delivered, it.failed, it.ready))
            .collect()
    }

    #[test]
    fn an_hour_is_counted_and_what_was_not_seen_is_not_known() {
        let (mut course, mut totals) = (Course::default(), Totals::default());
        totals[DELIVERED] = 1_000_000;
        for second in 0..21 {
            course.add(
                1_000_000 + second * 1000,
                Told::Totals(1, &totals),
                second as u64,
            );
            totals[DELIVERED] += 4;
            totals[NACKED] += 1;
            totals[TIMED_OUT] += 1;
        }
        let hour = course.hour(1_020_000);
        assert_eq!(hour.len(), PARTS as usize);
        assert_eq!(
            told(&hour),
            [(36.0, 18.0, 9), (40.0, 20.0, 19), (4.0, 2.0, 20)]
        );
        // Another server's past is nothing that happened now; nor is the end of one.
        totals[DELIVERED] += 1_000_000;
        course.add(1_020_500, Told::Totals(2, &totals), 0);
        course.add(1_021_000, Told::Totals(2, &Totals::default()), 0);
        assert_eq!(told(&course.hour(1_021_000))[2], (4.0, 2.0, 20));
        let later = 1_020_000 + 2 * PARTS * EACH_MS;
        course.add(later, Told::Totals(2, &Totals::default()), 0);
        assert_eq!(told(&course.hour(later)).len(), 1, "bounded");
    }

    #[test]
    fn of_some_queues_rates_are_added_up() {
        let (mut course, mut rates) = (Course::default(), Rates::default());
        rates[DELIVERED] = 4.0;
        for half in 0..21 {
            course.add(1_000_000 + half * 500, Told::Rates(&rates), 0);
        }
        let delivered: f64 = told(&course.hour(1_010_000)).iter().map(|it| it.0).sum();
        assert_eq!(delivered, 40.0);
    }
}

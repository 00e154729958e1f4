//! RATE and GROUPRATE: whether a window had more deliveries than it holds, wherever in their milliseconds they were.
//!
//! Those with NOACK are left out, as nothing tells their instants.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use dq::queue::settings::Rate;

use super::Begun;

/// The last deliveries, as many as the rate allows.
type Recent = VecDeque<Begun>;

#[derive(Clone, Debug, Default)]
pub struct Rates {
    rate: Option<Rate>,
    group_rate: Option<Rate>,
    recent: Recent,
    of_groups: HashMap<Rc<[u8]>, Recent>,
    /// How many groups there may be before those are looked for whose windows are past.
    groups_max: usize,
}

const GROUPS_MIN: usize = 1024;

impl Rates {
    /// Another rate begins its own window.
    pub fn set(&mut self, rate: Option<Rate>) {
        if self.rate != rate {
            self.rate = rate;
            self.recent.clear();
        }
    }

    pub fn set_of_groups(&mut self, rate: Option<Rate>) {
        if self.group_rate != rate {
            self.group_rate = rate;
            self.of_groups.clear();
        }
    }

    /// As a server does that starts.
    pub fn forget(&mut self) {
        self.recent.clear();
        self.of_groups.clear();
    }

    /// A job of that group was delivered. The setting that did not allow it.
    pub fn deliver(&mut self, group: Option<&Rc<[u8]>>, at: Begun) -> Option<&'static str> {
        let is_over = self
            .rate
            .is_some_and(|rate| record(&mut self.recent, rate, at));
        let Some((rate, group)) = self.group_rate.zip(group) else {
            return is_over.then_some("RATE");
        };
        self.drop_past(rate, at);
        let recent = self.of_groups.entry(Rc::clone(group)).or_default();
        let is_over_in_group = record(recent, rate, at);
        match is_over {
            true => Some("RATE"),
            false => is_over_in_group.then_some("GROUPRATE"),
        }
    }

    fn drop_past(&mut self, rate: Rate, at: Begun) {
        if self.of_groups.len() < self.groups_max.max(GROUPS_MIN) {
            return;
        }
        let is_past = |last: &Begun| last.latest.saturating_add(rate.window_ms) < at.earliest;
        self.of_groups
            .retain(|_, recent| !recent.back().is_none_or(is_past));
        self.groups_max = 2 * self.of_groups.len();
    }
}

/// Whether this one is one too many.
fn record(recent: &mut Recent, rate: Rate, at: Begun) -> bool {
    // Where the clock was set back, what seems to lie ahead may have been at any instant.
    if recent.back().is_some_and(|last| last.earliest > at.latest) {
        recent.clear();
    }
    let mut is_over = false;
    if recent.len() >= rate.count as usize {
        let oldest = recent.pop_front();
        // It ended before the millisecond after `latest`.
        let apart = oldest.and_then(|oldest| at.latest.checked_sub(oldest.earliest));
        is_over = apart.is_some_and(|ms| ms < rate.window_ms);
    }
    recent.push_back(at);
    is_over
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(earliest: u64, latest: u64) -> Begun {
        Begun { earliest, latest }
    }

    fn rates(count: u32, window_ms: u64) -> Rates {
        let mut rates = Rates::default();
        rates.set(Some(Rate { count, window_ms }));
        rates
    }

    #[test]
    fn only_what_is_certain_is_over() {
        for (second, is_over) in [
            (within(1009, 1009), true),
            (within(1008, 1009), true),
            (within(1009, 1010), false),
            (within(1010, 1010), false),
            (within(998, 999), false),
        ] {
            let mut rates = rates(1, 10);
            assert_eq!(rates.deliver(None, within(1000, 1001)), None);
            let found = rates.deliver(None, second);
            assert_eq!(found, is_over.then_some("RATE"), "{second:?}");
        }
    }

    #[test]
    fn another_rate_and_a_start_forget() {
        let mut same = rates(2, 10);
        for at in [1000, 1001] {
            assert_eq!(same.deliver(None, within(at, at)), None);
        }
        let mut other = same.clone();
        other.set(Some(Rate {
            count: 2,
            window_ms: 11,
        }));
        let mut started = same.clone();
        started.forget();
        same.set(same.rate);
        assert_eq!(same.deliver(None, within(1002, 1002)), Some("RATE"));
        assert_eq!(other.deliver(None, within(1002, 1002)), None);
        assert_eq!(started.deliver(None, within(1002, 1002)), None);
    }

    #[test]
    fn groups_are_kept_as_long_as_their_windows() {
        let rate = Some(Rate {
            count: 1,
            window_ms: 100,
        });
        let mut rates = Rates::default();
        rates.set_of_groups(rate);
        for n in 0..100_000_u64 {
            let group: Rc<[u8]> = n.to_le_bytes().as_slice().into();
            assert_eq!(rates.deliver(Some(&group), within(n, n)), None);
            assert!(rates.of_groups.len() <= GROUPS_MIN);
        }
        let recent: Rc<[u8]> = 99_999_u64.to_le_bytes().as_slice().into();
        let found = rates.deliver(Some(&recent), within(100_090, 100_090));
        assert_eq!(found, Some("GROUPRATE"));
    }
}

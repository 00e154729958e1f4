//! RATE and GROUPRATE: whether a window had more deliveries than it allows, wherever in their milliseconds they were.
//!
//! Deliveries with NOACK are left out, as nothing records their instants. What a TOUCH with COST says is in no file, so
//! a delivery that was touched counts 1.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use redis_dq::queue::settings::Rate;

use super::check::Begun;
use super::job::Job;

/// One delivery.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub token: u64,
    pub at: Begun,
    pub cost: u32,
}

impl Counted {
    pub fn of(job: &Job, token: u64, at: Begun) -> Self {
        let cost = job.cost;
        Counted { token, at, cost }
    }
}

/// The last deliveries, as far back as the window can reach.
#[derive(Clone, Debug, Default)]
struct Recent {
    deliveries: VecDeque<Counted>,
    sum: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Rates {
    rate: Option<Rate>,
    group_rate: Option<Rate>,
    /// Of groups with a rate of their own.
    own: HashMap<Box<[u8]>, Option<Rate>>,
    recent: Recent,
    of_groups: HashMap<Rc<[u8]>, Recent>,
    /// The number of groups at which those with past windows are dropped.
    groups_max: usize,
}

const GROUPS_MIN: usize = 1024;

impl Rates {
    /// Sets the rate. Another rate begins a new window.
    pub fn set(&mut self, rate: Option<Rate>) {
        if self.rate != rate {
            self.rate = rate;
            self.recent = Recent::default();
        }
    }

    pub fn set_of_groups(&mut self, rate: Option<Rate>) {
        if self.group_rate != rate {
            self.group_rate = rate;
            let own = &self.own;
            self.of_groups.retain(|name, _| own.contains_key(&**name));
        }
    }

    /// As [`Rates::set`], of one group; `None`: it has none of its own.
    pub fn set_of_group(&mut self, name: &[u8], rate: Option<Option<Rate>>) {
        let before = match rate {
            Some(rate) => self.own.insert(name.into(), rate),
            None => self.own.remove(name),
        };
        if before != rate {
            self.of_groups.remove(name);
        }
    }

    fn rate_of(&self, group: &[u8]) -> Option<Rate> {
        self.own.get(group).copied().unwrap_or(self.group_rate)
    }

    /// Forgets all deliveries, as a server does when it starts.
    pub fn forget(&mut self) {
        self.recent = Recent::default();
        self.of_groups.clear();
    }

    /// Records a delivery; returns the setting that did not allow it.
    pub fn deliver(&mut self, group: Option<&Rc<[u8]>>, new: Counted) -> Option<&'static str> {
        let is_over = self.rate.is_some_and(|rate| self.recent.record(rate, new));
        let found = group.and_then(|group| Some((self.rate_of(group)?, group)));
        let Some((rate, group)) = found else {
            return is_over.then_some("RATE");
        };
        self.drop_past(new.at);
        let recent = self.of_groups.entry(Rc::clone(group)).or_default();
        let is_over_in_group = recent.record(rate, new);
        match is_over {
            true => Some("RATE"),
            false => is_over_in_group.then_some("GROUPRATE"),
        }
    }

    /// Records a TOUCH: from now on the cost of that delivery is unknown, but at least 1.
    pub fn touch(&mut self, group: Option<&Rc<[u8]>>, token: u64) {
        self.recent.touch(token);
        if let Some(recent) = group.and_then(|group| self.of_groups.get_mut(group)) {
            recent.touch(token);
        }
    }

    fn drop_past(&mut self, at: Begun) {
        if self.of_groups.len() < self.groups_max.max(GROUPS_MIN) {
            return;
        }
        let (own, group_rate) = (&self.own, self.group_rate);
        self.of_groups.retain(|name, recent| {
            let rate = own.get(&**name).copied().unwrap_or(group_rate);
            let window_ms = rate.map_or(0, |rate| rate.window_ms);
            let leaves = |last: &Counted| last.at.latest.saturating_add(window_ms);
            recent
                .deliveries
                .back()
                .is_some_and(|last| leaves(last) >= at.earliest)
        });
        self.groups_max = 2 * self.of_groups.len();
    }
}

impl Recent {
    /// Records a delivery; returns whether it is too much together with those that are certainly in its window.
    fn record(&mut self, rate: Rate, new: Counted) -> bool {
        // The clock was set back: deliveries that seem to lie in the future may have been at any instant.
        let last = self.deliveries.back();
        if last.is_some_and(|last| last.at.earliest > new.at.latest) {
            *self = Recent::default();
        }
        while let Some(oldest) = self.deliveries.front() {
            // It ended before the millisecond after `latest`.
            let apart = new.at.latest.checked_sub(oldest.at.earliest);
            if apart.is_some_and(|ms| ms < rate.window_ms) {
                break;
            }
            self.sum -= u64::from(oldest.cost);
            self.deliveries.pop_front();
        }
        let is_alone = self.deliveries.is_empty();
        self.sum += u64::from(new.cost);
        self.deliveries.push_back(new);
        !is_alone && self.sum > u64::from(rate.count)
    }

    fn touch(&mut self, token: u64) {
        let at = self.deliveries.partition_point(|it| it.token < token);
        if let Some(touched) = self.deliveries.get_mut(at).filter(|it| it.token == token) {
            self.sum -= u64::from(touched.cost - 1);
            touched.cost = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(earliest: u64, latest: u64) -> Begun {
        Begun { earliest, latest }
    }

    fn costs(at: Begun, cost: u32) -> Counted {
        let token = at.earliest;
        Counted { token, at, cost }
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
            assert_eq!(rates.deliver(None, costs(within(1000, 1001), 1)), None);
            let found = rates.deliver(None, costs(second, 1));
            assert_eq!(found, is_over.then_some("RATE"), "{second:?}");
        }
    }

    #[test]
    fn another_rate_and_a_start_forget() {
        let mut same = rates(2, 10);
        for at in [1000, 1001] {
            assert_eq!(same.deliver(None, costs(within(at, at), 1)), None);
        }
        let mut other = same.clone();
        other.set(Some(Rate {
            count: 2,
            window_ms: 11,
        }));
        let mut started = same.clone();
        started.forget();
        same.set(same.rate);
        assert_eq!(
            same.deliver(None, costs(within(1002, 1002), 1)),
            Some("RATE")
        );
        assert_eq!(other.deliver(None, costs(within(1002, 1002), 1)), None);
        assert_eq!(started.deliver(None, costs(within(1002, 1002), 1)), None);
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
            assert_eq!(rates.deliver(Some(&group), costs(within(n, n), 1)), None);
            assert!(rates.of_groups.len() <= GROUPS_MIN);
        }
        let recent: Rc<[u8]> = 99_999_u64.to_le_bytes().as_slice().into();
        let found = rates.deliver(Some(&recent), costs(within(100_090, 100_090), 1));
        assert_eq!(found, Some("GROUPRATE"));
    }

    #[test]
    fn costs_are_summed() {
        let at = |ms| within(ms, ms);
        for (second, third, found) in [
            (3, 3, None),
            (3, 4, Some("RATE")),
            // A delivery alone may cost more than the limit, but none may be beside it.
            (6, 1, Some("RATE")),
        ] {
            let mut rates = rates(10, 10);
            assert_eq!(rates.deliver(None, costs(at(1000), 99)), None);
            assert_eq!(rates.deliver(None, costs(at(1010), 4)), None);
            assert_eq!(rates.deliver(None, costs(at(1011), second)), None);
            let last = rates.clone().deliver(None, costs(at(1019), third));
            assert_eq!(last, found, "{second} and {third}");
            // The cost of a touched delivery is unknown.
            rates.touch(None, 1010);
            assert_eq!(rates.deliver(None, costs(at(1019), third)), None);
        }
    }
}

//! "Costs": what RATE and GROUPRATE count, and when they allow a delivery.

use super::{Fault, Job, Model, Notes};
use crate::op::TouchOp;
use dq::queue::settings::Rate;

/// One delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The instant, in microseconds.
    pub at: u64,
    pub cost: u32,
    /// None if the delivery has no token.
    pub token: Option<u64>,
}

pub(super) fn window_us(rate: Rate) -> u64 {
    rate.window_ms.saturating_mul(1000)
}

/// "At most n of cost in any ms milliseconds; a job that costs more than n alone is delivered where nothing is in the
/// window."
fn fits(rate: Rate, cost: u32, recent: impl Iterator<Item = u32>) -> bool {
    let sum: u64 = recent.map(u64::from).sum();
    sum == 0 || sum + u64::from(cost) <= u64::from(rate.count)
}

impl Model {
    /// Whether something may count other than 1, or has, as far as is known without a search: then a next instant may
    /// be early.
    pub fn has_costs(&self) -> bool {
        let successors = self.jobs.iter().filter_map(|job| job.next.as_deref());
        let mut all = self.jobs.iter().chain(successors);
        self.had_costs || all.any(|job| job.notes != Notes::default())
    }

    /// A delivery of a job.
    pub(super) fn counts(&mut self, index: usize, token: Option<u64>, at: u64) {
        let job = &self.jobs[index];
        let (cost, group) = match self.has(Fault::CostsIgnored) {
            true => (1, job.group.clone()),
            false => (job.notes.said.cost(), job.group.clone()),
        };
        let new = Counted { at, cost, token };
        self.had_costs |= cost != 1 || self.is_told_otherwise(&new);
        if let Some(rate) = self.settings.rate {
            // Deliveries that seem to lie ahead, because the clock stepped back, are counted as made now.
            self.deliveries
                .iter_mut()
                .for_each(|it| it.at = it.at.min(new.at));
            // Removes deliveries that have left the window by whole milliseconds, and one that must have left, or this
            // one would not fit.
            let leaves = |it: &Counted| it.at.saturating_add(window_us(rate)).div_ceil(1000);
            let must_leave = usize::from(self.deliveries.len() >= rate.count as usize);
            let others = self.deliveries.iter().skip(must_leave);
            let past = others.take_while(|it| leaves(it) <= new.at / 1000).count();
            self.deliveries.drain(..must_leave + past);
            self.deliveries.push(new);
        }
        if let (Some(_), Some(name)) = (self.rate_of(&group), group) {
            self.group_deliveries.push((name, new));
        }
    }

    /// Whether tokens no longer show when deliveries were, because the clock stepped back.
    fn is_told_otherwise(&self, new: &Counted) -> bool {
        let drawn = ((new.at / 1000) << 10) | (new.at % 1000);
        let is_ahead = self.deliveries.iter().any(|it| it.at > new.at);
        is_ahead || new.token.is_some_and(|token| token >> 10 != drawn)
    }

    /// "what this delivery counts, at the instant of the delivery; without an entry it changes nothing"
    pub(super) fn recounts(&mut self, token: Option<u64>, touch: &TouchOp) {
        let Some(cost) = touch.cost.filter(|_| !self.has(Fault::TouchCostIgnored)) else {
            return;
        };
        self.had_costs |= cost != 1;
        let in_groups = self.group_deliveries.iter_mut().map(|(_, it)| it);
        let own = self.deliveries.iter_mut().chain(in_groups);
        own.filter(|it| it.token.is_some() && it.token == token)
            .for_each(|it| it.cost = cost);
    }

    /// Whether RATE allows delivering that job, or any at all, with NOACK or without.
    pub(super) fn rate_lets(&self, job: Option<&Job>, noack: bool, now_us: u64) -> bool {
        let cost = job.map_or(1, |job| job.notes.said.cost());
        let is_exempt = noack && self.has(Fault::RateExemptsNoack);
        is_exempt || self.rate_allows(cost, now_us)
    }

    pub(super) fn rate_allows(&self, cost: u32, now_us: u64) -> bool {
        let Some(rate) = self.settings.rate else {
            return true;
        };
        let short = u64::from(self.has(Fault::RateOneUsShort));
        let window_us = window_us(rate) - short;
        let is_recent = |it: &&Counted| now_us.saturating_sub(it.at) < window_us;
        let recent = self.deliveries.iter().filter(is_recent);
        fits(rate, cost, recent.map(|it| it.cost)) || self.has(Fault::RateOff)
    }

    /// The cost of the deliveries in the window of RATE.
    pub fn rate_used(&self, now_us: u64) -> u64 {
        let Some(rate) = self.settings.rate else {
            return 0;
        };
        let all = self.deliveries.iter();
        let recent = all.filter(|it| now_us.saturating_sub(it.at) < window_us(rate));
        recent.map(|it| u64::from(it.cost)).sum()
    }

    /// GROUPRATE works in whole milliseconds: a group waits for the first one during which it may be served throughout.
    pub(super) fn fits_group(&self, job: &Job, now_us: u64) -> bool {
        let rate = self.rate_of(&job.group);
        let Some((rate, name)) = rate.zip(job.group.as_ref()) else {
            return true;
        };
        let leaves = |at: u64| at.saturating_add(window_us(rate)).div_ceil(1000);
        let of_it = self.group_deliveries.iter().filter(|(of, _)| of == name);
        let recent = of_it.filter(|(_, it)| leaves(it.at) > now_us / 1000);
        let costs = recent.map(|(_, it)| it.cost);
        fits(rate, job.notes.said.cost(), costs) || self.has(Fault::GroupRateOff)
    }

    /// "as RATE": what seems to lie ahead, because the clock stepped back, was at the latest now.
    pub fn follow_clock_back(&mut self, now_us: u64) {
        for (_, it) in &mut self.group_deliveries {
            it.at = now_us.min(it.at);
        }
    }

    /// The first millisecond in which RATE allows a delivery that it does not allow now.
    pub(super) fn rate_opens(&self, now_us: u64) -> Option<u64> {
        let window_us = window_us(self.settings.rate?);
        if self.rate_allows(1, now_us) {
            return None;
        }
        let ends = self.deliveries.iter();
        let ends = ends.map(|it| it.at.saturating_add(window_us).div_ceil(1000));
        ends.filter(|ms| self.rate_allows(1, ms.saturating_mul(1000)))
            .min()
    }

    /// Where the test clock stops for a window: DQ.NEXT may stop where nothing happens.
    pub(super) fn group_rates_open(&self, now_us: u64) -> Option<u64> {
        let leaves = |(name, it): &(Vec<u8>, Counted)| {
            let window_us = window_us(self.rate_of(&Some(name.clone()))?);
            Some(it.at.saturating_add(window_us).div_ceil(1000))
        };
        let all = self.group_deliveries.iter().filter_map(leaves);
        all.filter(|at| *at > now_us / 1000).min()
    }
}

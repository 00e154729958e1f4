//! Which job is delivered next, and what a delivery leaves behind: the turns of groups, and the windows of RATE and
//! GROUPRATE.

use super::groups::HeldByGroup;
use super::rate::{Delivered, RateWindow};
use super::Queue;
use crate::queue::clock::Now;
use crate::queue::job::{GroupNumber, Handle};
use crate::queue::settings::Rate;

impl Queue {
    /// The job that is delivered next at this instant, if the queue delivers at all.
    #[inline]
    pub(in crate::queue) fn first_in_turn(&self, now: Now, noack: bool) -> Option<Handle> {
        match &self.parts.groups {
            None => self.jobs.schedule().own().first_ready(now.ms()),
            Some(groups) => {
                groups.first_in_turn((now, noack), &self.jobs, self.parts.group_rates.as_deref())
            }
        }
    }

    /// The earliest instant at which some group, or the jobs without a group, may be served; in the past if that may be
    /// now, or is not known yet.
    #[inline]
    pub(super) fn next_turn_at(&self, noack: bool) -> Option<u64> {
        match &self.parts.groups {
            None => self.jobs.schedule().own().least_due(),
            Some(groups) => groups.next_turn_at(noack, &self.jobs),
        }
    }

    /// Names the client of the delivery that follows.
    #[inline]
    pub(in crate::queue) fn deliver_to(&mut self, client: u64) {
        self.jobs.deliver_to(client);
    }

    /// Whether a ready job may be delivered out of turn.
    pub(in crate::queue) fn may_be_served(&self, handle: Handle, now: Now, noack: bool) -> bool {
        let rates = self.parts.group_rates.as_deref();
        self.parts
            .groups
            .as_ref()
            .is_none_or(|it| it.may_be_served(handle, (now, noack), &self.jobs, rates))
    }

    /// What of its group holds back a ready job, whose group is up to date.
    pub(in crate::queue) fn held_by_group(&self, handle: Handle, now: Now) -> HeldByGroup {
        let rates = self.parts.group_rates.as_deref();
        let groups = self.parts.groups.as_ref();
        groups.map_or(HeldByGroup::default(), |it| {
            it.held(handle, now, &self.jobs, rates)
        })
    }

    /// How many ready jobs of its group, or of those without a group, come before a ready job, counted up to `most`. 0 for a
    /// job of a group under GROUPFIFO.
    pub(in crate::queue) fn ready_before(&self, handle: Handle, now: Now, most: usize) -> usize {
        let groups = self.parts.groups.as_ref();
        let of_group = groups.and_then(|it| it.ready_before(handle, (now, most), &self.jobs));
        let own = || self.jobs.schedule().own();
        of_group.unwrap_or_else(|| own().ready_before(handle, now.ms(), most))
    }

    /// What the deliveries in the window of the job's group count.
    pub(in crate::queue) fn group_rate_used(&self, handle: Handle, now: Now) -> u64 {
        let group = self.jobs.job(handle).group();
        group.map_or(0, |number| self.window_used(number, now))
    }

    /// What the deliveries in the window of a group count; 0 without one.
    pub(in crate::queue) fn window_used(&self, group: GroupNumber, now: Now) -> u64 {
        let both = self.groups().zip(self.parts.group_rates.as_ref());
        both.map_or(0, |(groups, rates)| rates.used(groups.rated(group), now))
    }

    /// If no group lets any of its ready jobs go: the first instant at which time alone lets one go.
    pub(in crate::queue) fn groups_open(&mut self, now: Now) -> Option<u64> {
        let rates = self.parts.group_rates.as_deref();
        let groups = self.parts.groups.as_mut()?;
        groups.opens(now, &self.jobs, rates)
    }

    /// Notes that a job is delivered in turn.
    #[inline]
    pub(in crate::queue) fn note_in_turn(&mut self, handle: Handle) {
        if let Some(groups) = &mut self.parts.groups {
            groups.gives(self.jobs.job(handle).group());
        }
    }

    /// Before a delivery: if the clock was set back, no group waits longer than a window from now on. And while a pass
    /// has not updated all groups, those that the delivery may come from are, as far as the bound allows.
    #[inline]
    pub(in crate::queue) fn update_groups_before(
        &mut self,
        id: Option<&[u8]>,
        noack: bool,
        now: Now,
    ) {
        if self
            .parts
            .group_rates
            .as_ref()
            .is_some_and(|it| it.is_ahead(now))
        {
            self.follow_clock_back(now);
        }
        if let Some(groups) = self.parts.groups.as_mut().filter(|it| it.is_passing()) {
            let named = id.and_then(|id| self.jobs.find(self.jobs.hashed(id)));
            let named = named.and_then(|handle| self.jobs.job(handle).group());
            let rates = self.parts.group_rates.as_deref();
            groups.update_groups_before(named, (now, noack), &self.jobs, rates);
        }
    }

    #[cold]
    fn follow_clock_back(&mut self, now: Now) {
        let (Some(rates), Some(groups)) = (&mut self.parts.group_rates, &mut self.parts.groups)
        else {
            return;
        };
        for name in rates.step_back(now) {
            if let Some(number) = groups.named(&name, &self.jobs) {
                groups.reconsider(number, &self.jobs, Some(rates));
            }
        }
    }

    /// If no job is known that may be delivered: searches the first ready jobs for one.
    #[cold]
    pub(in crate::queue) fn search_ready(&mut self, noack: bool, now: Now) -> bool {
        let rates = self.parts.group_rates.as_deref();
        let groups = self.parts.groups.as_mut();
        groups.is_some_and(|it| it.search_ready((now, noack), &self.jobs, rates))
    }

    /// Whether RATE and the group's GROUPRATE allow a job whose turn it is, with its weight.
    #[inline]
    pub(in crate::queue) fn fits_rates(&self, handle: Handle, now: Now) -> bool {
        !self.jobs.says_weight() || !self.has_rates() || self.fits_weighed(handle, now)
    }

    #[cold]
    fn fits_weighed(&self, handle: Handle, now: Now) -> bool {
        let weight = self.jobs.weight_of(handle);
        self.group_opens_ms(handle, weight, now) <= now.ms() && self.rate_opens_ms(weight, now) == 0
    }

    fn group_opens_ms(&self, handle: Handle, weight: u32, now: Now) -> u64 {
        let rates = self.parts.group_rates.as_deref();
        let groups = self.parts.groups.as_ref();
        groups.map_or(0, |it| it.opens_ms(handle, weight, now, &self.jobs, rates))
    }

    /// Passes over the group whose first job is `handle`, until its window allows this job, or another may be first.
    /// False if the window allows it now.
    pub(in crate::queue) fn pass_over(&mut self, handle: Handle, now: Now) -> bool {
        let rates = self.parts.group_rates.as_deref();
        let groups = self.parts.groups.as_mut();
        groups.is_some_and(|it| it.pass_over(handle, now, &self.jobs, rates))
    }

    /// Notes a delivery: the job's group, or the jobs without a group, take the last turn.
    #[inline]
    pub(super) fn note_served(&mut self, handle: Handle) {
        if let Some(groups) = &mut self.parts.groups {
            groups.delivered(self.jobs.job(handle).group(), &self.jobs);
        }
    }

    /// Whether deliveries are recorded.
    #[inline]
    fn has_rates(&self) -> bool {
        self.parts.cold.rate.is_some() || self.parts.group_rates.is_some()
    }

    /// The window of RATE, and its limit.
    #[inline]
    fn rate(&self) -> Option<(&RateWindow, Rate)> {
        self.parts.cold.rate.as_deref().zip(self.settings.rate)
    }

    /// The first millisecond in which RATE allows a delivery of this weight; 0 if it does now.
    #[inline]
    pub(in crate::queue) fn rate_opens_ms(&self, weight: u32, now: Now) -> u64 {
        self.rate()
            .map_or(0, |(window, rate)| window.opens_ms(rate, weight, now))
    }

    /// What the deliveries in the window of RATE count; 0 without one.
    pub fn rate_used(&self, now: Now) -> u64 {
        self.rate()
            .map_or(0, |(window, rate)| window.used(rate, now))
    }

    /// When RATE may allow a delivery that it does not allow now, or earlier. Jobs that are not due yet are left out.
    pub(super) fn next_rate_instant(&self, now: Now) -> Option<u64> {
        let (window, rate) = self.rate()?;
        window.next_ms(rate, !self.jobs.says_weight(), now)
    }

    /// If the first job in turn weighs more than RATE allows now: when it may be delivered, or another may be first.
    #[cold]
    pub(super) fn first_weighed_opens(&self, now: Now, noack: bool) -> Option<u64> {
        let first = self.first_in_turn(now, noack)?;
        let weight = self.jobs.weight_of(first);
        let opens = self.rate_opens_ms(weight, now);
        if opens == 0 || self.group_opens_ms(first, weight, now) > now.ms() {
            return None;
        }
        let of_group = self.groups().and_then(|groups| {
            let rates = self.parts.group_rates.as_deref();
            groups.next_before(first, (now, noack), &self.jobs, rates)
        });
        let due = self.jobs.schedule().next_due(now.ms());
        due.into_iter().chain(of_group).chain([opens]).min()
    }

    /// Counts a delivery in the windows of RATE and GROUPRATE.
    #[inline(always)]
    pub(super) fn record_delivery(&mut self, handle: Handle, token: u64, now: Now) {
        if self.has_rates() {
            self.record_in_rates(handle, token, now);
        }
    }

    #[inline(never)]
    fn record_in_rates(&mut self, handle: Handle, token: u64, now: Now) {
        let weight = self.jobs.weight_of(handle);
        let new = Delivered { token, weight };
        let window = self.parts.rate();
        if let Some((window, rate)) = window.zip(self.settings.rate) {
            window.record(rate, new, now);
        }
        let number = self.jobs.job(handle).group();
        if let (Some(rates), Some(groups), Some(number)) =
            (&mut self.parts.group_rates, &self.parts.groups, number)
        {
            let since = self.jobs.numbers.token;
            rates.record(groups.rated(number), new, since, now);
        }
    }

    /// Changes what a job's current delivery counts, in the windows of RATE and GROUPRATE.
    pub(in crate::queue) fn reweigh(&mut self, handle: Handle, weight: u32, now: Now) {
        let job = self.jobs.job(handle);
        let (token, number) = (job.life().token, job.group());
        if let Some(window) = self.parts.rate() {
            window.reweigh(token, weight);
        }
        if let (Some(rates), Some(groups), Some(number)) =
            (&mut self.parts.group_rates, &mut self.parts.groups, number)
        {
            if rates.reweigh(groups.rated(number), token, weight, now) {
                groups.reconsider(number, &self.jobs, Some(rates));
            }
        }
    }
}

//! What comes next in a queue. As a delivery: which job it is and what holds it back, and what it leaves behind: the turns of
//! groups, and the windows of RATE and GROUPRATE. And by itself, by time or a limit, though no command names the queue: one
//! table, by which the timer is armed, and by which what is overdue is carried out in its order.

use super::groups::{Groups, HeldByGroup};
use super::jobs::Jobs;
use super::parts::Parts;
use super::rate::group::GroupRates;
use super::rate::{Delivered, RateWindow};
use super::Queue;
use crate::queue::clock::Now;
use crate::queue::effect::FOREVER;
use crate::queue::instant::NEVER;
use crate::queue::job::{GroupNumber, Handle, INSTANT_MAX};
use crate::queue::settings::{Rate, Settings};

/// What decides about deliveries: POP, EXPLAIN and the timer ask here.
#[derive(Clone, Copy)]
pub struct Serving<'q> {
    jobs: &'q Jobs,
    parts: &'q Parts,
    settings: &'q Settings,
    paused_until: u64,
}

/// What changes with deliveries, and is no data: no effect says it.
pub(in crate::queue) struct ServingMut<'q> {
    jobs: &'q Jobs,
    parts: &'q mut Parts,
    settings: &'q Settings,
}

impl Queue {
    /// To ask who is served.
    #[inline(always)]
    pub fn serving(&self) -> Serving<'_> {
        Serving {
            jobs: &self.jobs,
            parts: &self.parts,
            settings: &self.settings,
            paused_until: self.paused_until,
        }
    }

    /// Names the client of the delivery that follows.
    #[inline]
    pub(in crate::queue) fn deliver_to(&mut self, client: u64) {
        self.jobs.deliver_to(client);
    }

    #[inline(always)]
    pub(in crate::queue) fn serving_mut(&mut self) -> ServingMut<'_> {
        ServingMut {
            jobs: &self.jobs,
            parts: &mut self.parts,
            settings: &self.settings,
        }
    }
}

impl<'q> Serving<'q> {
    #[inline(always)]
    fn groups(self) -> Option<&'q Groups> {
        self.parts.groups.as_deref()
    }

    #[inline(always)]
    fn group_rates(self) -> Option<&'q GroupRates> {
        self.parts.group_rates.as_deref()
    }

    /// The window of RATE, and its limit.
    #[inline(always)]
    fn rate(self) -> Option<(&'q RateWindow, Rate)> {
        self.parts.cold.rate.as_deref().zip(self.settings.rate)
    }

    /// The most jobs that can be delivered now, whatever expires first.
    pub(in crate::queue) fn most_deliverable(self, count: u64, noack: bool, now: Now) -> u64 {
        if self.is_shut(now) {
            return 0;
        }
        let by_rate = self
            .settings
            .rate
            .map_or(u64::MAX, |rate| rate.count.into());
        let by_places = match self.settings.max_reserved {
            0 => u64::MAX,
            _ if noack => u64::MAX,
            places => places,
        };
        count.min(by_rate).min(by_places)
    }

    /// The job that is delivered next, or this one if it may be delivered.
    #[inline(always)]
    pub(in crate::queue) fn next(self, id: Option<&[u8]>, noack: bool, now: Now) -> Option<Handle> {
        match id {
            Some(id) => self
                .jobs
                .find(self.jobs.hashed(id))
                .filter(|&job| self.jobs.is_ready(job, now) && self.may_be_served(job, now, noack)),
            None => self.first_in_turn(now, noack),
        }
    }

    /// The job that is delivered next at this instant, if the queue delivers at all.
    #[inline]
    fn first_in_turn(self, now: Now, noack: bool) -> Option<Handle> {
        match self.groups() {
            None => self.jobs.schedule().own().first_ready(now.ms()),
            Some(groups) => groups.first_in_turn((now, noack), self.jobs, self.group_rates()),
        }
    }

    /// The earliest instant at which some group, or the jobs without a group, may be served; in the past if that may be
    /// now, or is not known yet.
    #[inline]
    fn next_turn_at(self, noack: bool) -> Option<u64> {
        match self.groups() {
            None => self.jobs.schedule().own().least_due(),
            Some(groups) => groups.next_turn_at(noack, self.jobs),
        }
    }

    /// Whether a ready job may be delivered out of turn.
    pub(in crate::queue) fn may_be_served(self, handle: Handle, now: Now, noack: bool) -> bool {
        self.groups()
            .is_none_or(|it| it.may_be_served(handle, (now, noack), self.jobs, self.group_rates()))
    }

    /// What of its group holds back a ready job, whose group is up to date.
    pub(in crate::queue) fn held_by_group(self, handle: Handle, now: Now) -> HeldByGroup {
        let held = |it: &Groups| it.held(handle, now, self.jobs, self.group_rates());
        self.groups().map_or(HeldByGroup::default(), held)
    }

    /// How many ready jobs of its group, or of those without a group, come before a ready job, counted up to `most`. 0 for a
    /// job of a group under GROUPFIFO.
    pub(in crate::queue) fn ready_before(self, handle: Handle, now: Now, most: usize) -> usize {
        let of_group = |it: &Groups| it.ready_before(handle, (now, most), self.jobs);
        let own = || self.jobs.schedule().own();
        self.groups()
            .and_then(of_group)
            .unwrap_or_else(|| own().ready_before(handle, now.ms(), most))
    }

    /// What the deliveries in the window of a group count; 0 without one.
    pub(in crate::queue) fn window_used(self, group: Option<GroupNumber>, now: Now) -> u64 {
        let all = self.groups().zip(self.group_rates()).zip(group);
        all.map_or(0, |((groups, rates), it)| rates.used(groups.rated(it), now))
    }

    /// Whether RATE and the group's GROUPRATE allow a job whose turn it is, with its weight.
    #[inline]
    pub(in crate::queue) fn fits_rates(self, handle: Handle, now: Now) -> bool {
        let has_rates = || self.rate().is_some() || self.group_rates().is_some();
        !self.jobs.says_weight() || !has_rates() || self.fits_weighed(handle, now)
    }

    #[cold]
    fn fits_weighed(self, handle: Handle, now: Now) -> bool {
        let weight = self.jobs.weight_of(handle);
        self.group_opens_ms(handle, weight, now) <= now.ms() && self.rate_opens_ms(weight, now) == 0
    }

    fn group_opens_ms(self, handle: Handle, weight: u32, now: Now) -> u64 {
        self.groups().map_or(0, |it| {
            it.opens_ms(handle, weight, now, self.jobs, self.group_rates())
        })
    }

    /// The first millisecond in which RATE allows a delivery of this weight; 0 if it does now.
    #[inline]
    pub(in crate::queue) fn rate_opens_ms(self, weight: u32, now: Now) -> u64 {
        self.rate()
            .map_or(0, |(window, rate)| window.opens_ms(rate, weight, now))
    }

    /// What the deliveries in the window of RATE count; 0 without one.
    pub fn rate_used(self, now: Now) -> u64 {
        self.rate()
            .map_or(0, |(window, rate)| window.used(rate, now))
    }

    /// When RATE may allow a delivery that it does not allow now, or earlier. Jobs that are not due yet are left out.
    pub(super) fn next_rate_instant(self, now: Now) -> Option<u64> {
        let (window, rate) = self.rate()?;
        window.next_ms(rate, !self.jobs.says_weight(), now)
    }

    /// If the first job in turn weighs more than RATE allows now: when it may be delivered, or another may be first.
    #[cold]
    fn first_weighed_opens(self, now: Now, noack: bool) -> Option<u64> {
        let first = self.first_in_turn(now, noack)?;
        let weight = self.jobs.weight_of(first);
        let opens = self.rate_opens_ms(weight, now);
        if opens == 0 || self.group_opens_ms(first, weight, now) > now.ms() {
            return None;
        }
        let of_group = self
            .groups()
            .and_then(|it| it.next_before(first, (now, noack), self.jobs, self.group_rates()));
        let due = self.jobs.schedule().next_due(now.ms());
        due.into_iter().chain(of_group).chain([opens]).min()
    }

    /// The earliest instant at which a delivery may succeed if nothing else happens: when the timer must fire while
    /// clients wait. In the past if a delivery would succeed now.
    pub fn next_delivery(self, now: Now, noack: bool) -> Option<u64> {
        if self.paused_until == FOREVER || (!noack && self.is_full()) {
            return None;
        }
        let due = self.next_turn_at(noack)?;
        let pause = if self.is_paused(now) {
            self.paused_until
        } else {
            0
        };
        let opens = due.max(pause).max(self.rate_opens_ms(1, now));
        if opens > now.ms() || !self.jobs.says_weight() {
            return Some(opens);
        }
        Some(self.first_weighed_opens(now, noack).unwrap_or(opens))
    }

    /// Whether nothing can be delivered now except to a client that pops with NOACK. MAXRESERVED, or the GROUPMAX of
    /// all groups that have a ready job, holds the others back.
    #[inline]
    pub fn serves_only_noack(self, now: Now) -> bool {
        let next = self.next_delivery(now, false);
        next.is_none_or(|instant| instant > now.ms())
    }

    pub(in crate::queue) fn is_paused(self, now: Now) -> bool {
        self.paused_until > now.ms()
    }

    /// Whether MAXRESERVED lets no other job be reserved.
    pub(in crate::queue) fn is_full(self) -> bool {
        let limit = self.settings.max_reserved;
        limit != 0 && self.jobs.reserved().len() as u64 >= limit
    }

    /// Whether the queue delivers nothing, whatever expires.
    pub(in crate::queue) fn is_shut(self, now: Now) -> bool {
        self.is_paused(now) || self.rate_opens_ms(1, now) > 0
    }

    pub(in crate::queue) fn is_held(self, noack: bool, now: Now) -> bool {
        self.is_shut(now) || (!noack && self.is_full())
    }
}

impl ServingMut<'_> {
    /// If no group lets any of its ready jobs go: the first instant at which time alone lets one go.
    pub fn groups_open(self, now: Now) -> Option<u64> {
        let rates = self.parts.group_rates.as_deref();
        self.parts.groups.as_mut()?.opens(now, self.jobs, rates)
    }

    /// Notes that a job is delivered in turn.
    #[inline]
    pub fn note_in_turn(self, handle: Handle) {
        if let Some(groups) = &mut self.parts.groups {
            groups.gives(self.jobs.job(handle).group());
        }
    }

    /// Before a delivery: if the clock was set back, no group waits longer than a window from now on. And while a pass
    /// has not updated all groups, those that the delivery may come from are, as far as the bound allows.
    #[inline]
    pub fn update_groups_before(mut self, id: Option<&[u8]>, noack: bool, now: Now) {
        if (self.parts.group_rates.as_ref()).is_some_and(|it| it.is_ahead(now)) {
            self.follow_clock_back(now);
        }
        let groups = self.parts.groups.as_mut();
        if let Some(groups) = groups.filter(|it| it.is_passing()) {
            let named = id.and_then(|id| self.jobs.find(self.jobs.hashed(id)));
            let named = named.and_then(|handle| self.jobs.job(handle).group());
            let rates = self.parts.group_rates.as_deref();
            groups.update_groups_before(named, (now, noack), self.jobs, rates);
        }
    }

    #[cold]
    fn follow_clock_back(&mut self, now: Now) {
        let parts = &mut *self.parts;
        let (Some(rates), Some(groups)) = (&mut parts.group_rates, &mut parts.groups) else {
            return;
        };
        for name in rates.step_back(now) {
            if let Some(number) = groups.named(&name, self.jobs) {
                groups.reconsider(number, self.jobs, Some(rates));
            }
        }
    }

    /// If no job is known that may be delivered: searches the first ready jobs for one.
    #[cold]
    pub fn search_ready(self, noack: bool, now: Now) -> bool {
        let rates = self.parts.group_rates.as_deref();
        let groups = self.parts.groups.as_mut();
        groups.is_some_and(|it| it.search_ready((now, noack), self.jobs, rates))
    }

    /// Passes over the group whose first job is `handle`, until its window allows this job, or another may be first.
    /// False if the window allows it now.
    pub fn pass_over(self, handle: Handle, now: Now) -> bool {
        let rates = self.parts.group_rates.as_deref();
        let groups = self.parts.groups.as_mut();
        groups.is_some_and(|it| it.pass_over(handle, now, self.jobs, rates))
    }

    /// Notes a delivery: the job's group, or the jobs without a group, take the last turn.
    #[inline]
    pub fn note_served(self, handle: Handle) {
        if let Some(groups) = &mut self.parts.groups {
            groups.delivered(self.jobs.job(handle).group(), self.jobs);
        }
    }

    /// Counts a delivery in the windows of RATE and GROUPRATE.
    #[inline(always)]
    pub fn record_delivery(self, handle: Handle, token: u64, now: Now) {
        if self.parts.cold.rate.is_some() || self.parts.group_rates.is_some() {
            self.record_in_rates(handle, token, now);
        }
    }

    #[inline(never)]
    fn record_in_rates(self, handle: Handle, token: u64, now: Now) {
        let weight = self.jobs.weight_of(handle);
        let new = Delivered { token, weight };
        let window = self.parts.rate().zip(self.settings.rate);
        if let Some((window, rate)) = window {
            window.record(rate, new, now);
        }
        let number = self.jobs.job(handle).group();
        if let (Some(rates), Some(groups), Some(number)) =
            (&mut self.parts.group_rates, &mut self.parts.groups, number)
        {
            let since = self.jobs.numbers.token;
            rates.record(groups.rated(number), new, since, now);
        }
    }

    /// Changes what a job's current delivery counts, in the windows of RATE and GROUPRATE.
    pub fn reweigh(self, handle: Handle, weight: u32, now: Now) {
        let job = self.jobs.job(handle);
        let (token, number) = (job.life().token, job.group());
        if let Some(window) = self.parts.rate() {
            window.reweigh(token, weight);
        }
        if let (Some(rates), Some(groups), Some(number)) =
            (&mut self.parts.group_rates, &mut self.parts.groups, number)
        {
            if rates.reweigh(groups.rated(number), token, weight, now) {
                groups.reconsider(number, self.jobs, Some(rates));
            }
        }
    }
}

/// What comes by itself, in the order in which it is carried out where several come at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) enum Comes {
    /// A done job is to be removed, by its time or a limit: before all else, whenever that is.
    Done,
    /// Dead jobs are beyond DEADLEN: before all else, but after the TTLs that expired before the last death.
    Trim,
    /// A lease expires.
    Lease,
    /// A TTL or a GRACE expires.
    Ttl,
    /// An id leaves the dedupe window.
    Forget,
    /// The pause of a group ends.
    Resume,
    /// Ends are to be carried out for jobs that are after them. See [`Queue::next_in_time`].
    Flow,
}

impl Comes {
    /// In the order of time.
    const TIMED: [Comes; 4] = [Comes::Lease, Comes::Ttl, Comes::Forget, Comes::Resume];
}

impl Queue {
    /// When it comes; in the past if it has come; or [`NEVER`].
    // Each command asks: a plain minimum, where "never" is later than any instant.
    #[inline(always)]
    fn comes_at(&self, what: Comes) -> u64 {
        match what {
            Comes::Done => self.parts.done.if_made().map_or(NEVER, |it| it.wakes),
            Comes::Trim if self.surplus_dead() > 0 => 0,
            Comes::Lease => self.jobs.reserved().first_at(),
            Comes::Ttl => self.jobs.expiring().first_at(),
            Comes::Forget => {
                let next = self.parts.dedupe.if_made().and_then(|it| it.next());
                next.unwrap_or(NEVER)
            }
            Comes::Resume => self.parts.groups().map_or(NEVER, Groups::first_pause_end),
            Comes::Flow if self.parts.has_flow_work() => 0,
            Comes::Trim | Comes::Flow => NEVER,
        }
    }

    /// As [`Queue::next_event`], without ends that are to be carried out.
    // No loop over what comes, which costs 100 instructions more.
    #[inline]
    fn first_in_time(&self) -> u64 {
        let at = |what| self.comes_at(what);
        at(Comes::Done)
            .min(at(Comes::Trim))
            .min(at(Comes::Lease))
            .min(at(Comes::Ttl))
            .min(at(Comes::Forget))
            .min(at(Comes::Resume))
    }

    /// What is overdue and to be carried out first. `None` exactly if [`Queue::next_in_time`] is later than now.
    pub(in crate::queue) fn first_overdue(&self, now: Now) -> Option<Comes> {
        if self.comes_at(Comes::Done) <= now.ms() {
            return Some(Comes::Done);
        }
        if self.comes_at(Comes::Trim) <= now.ms() {
            let last_death = self.jobs.dead().last().map_or(0, |(at, _)| at);
            if self.comes_at(Comes::Ttl) >= last_death.min(now.ms()) {
                return Some(Comes::Trim);
            }
        }
        let first = Comes::TIMED
            .into_iter()
            .min_by_key(|&it| self.comes_at(it))?;
        (self.comes_at(first) <= now.ms()).then_some(first)
    }

    /// When the timer must fire next even if no client waits. In the past if [`Queue::expire_overdue`] has work left.
    #[inline]
    pub fn next_event(&self) -> Option<u64> {
        let next = self.first_in_time().min(self.comes_at(Comes::Flow));
        (next != NEVER).then_some(next)
    }

    /// As [`Queue::next_event`], without ends that are to be carried out.
    pub(in crate::queue) fn next_in_time(&self) -> Option<u64> {
        let next = self.first_in_time();
        (next != NEVER).then_some(next)
    }

    /// The earliest instant after now at which time alone does something: what the table above has, a due time, the end
    /// of a pause or of a rate window.
    pub fn next_instant(&self, now: Now) -> Option<u64> {
        let pause = (self.paused_until != FOREVER).then_some(self.paused_until);
        let rate = self.serving().next_rate_instant(now);
        let of_group = self.parts.group_rates.as_ref();
        let of_group = of_group.and_then(|rates| rates.next_opens_ms(now));
        let instants = [
            self.next_event(),
            self.jobs.next_due(now),
            pause,
            rate,
            of_group,
        ];
        // At the last instant nothing happens.
        let to_come = now.ms() + 1..INSTANT_MAX;
        let instants = instants.into_iter().flatten();
        instants.filter(|at| to_come.contains(at)).min()
    }
}

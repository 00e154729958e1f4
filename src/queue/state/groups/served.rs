//! Whose turn it is.

use super::turns::{tie, AT_MAX, INSTANT};
use super::{Group, Groups, NOWHERE, ROUND_BITS};
use crate::queue::clock::Now;
use crate::queue::instant::NEVER;
use crate::queue::job::{GroupNumber, Handle};
use crate::queue::settings::GroupSettings;
use crate::queue::state::jobs::Jobs;
use crate::queue::state::rate::group::GroupRates;
use crate::queue::state::store::Store;
use crate::storage::broken::must;
use crate::storage::skiplist::TurnKey;

const NOT_THERE: &str = "a group that is not where its turn says";

/// What of its group holds back a ready job.
#[derive(Clone, Copy, Default)]
pub struct HeldByGroup {
    /// When its pause ends, or [`NEVER`].
    pub paused: Option<u64>,
    /// At GROUPMAX: how many of its group are reserved.
    pub max: Option<u32>,
    /// The first millisecond in which the window of GROUPRATE allows it, which it does not now.
    pub until: Option<u64>,
    /// GROUPFIFO.
    pub fifo: bool,
}

impl Groups {
    pub(super) fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// Takes a group out of the lists of turns of its round.
    pub(super) fn withdraw(&mut self, number: GroupNumber) {
        let group = self.get_mut(number);
        if group.stands_nowhere() {
            return;
        }
        let (turn, at, round) = (group.turn, group.at, group.round());
        group.stand_nowhere(round);
        let turns = match &mut self.pass {
            Some(pass) if round != self.round => pass.older(round),
            _ => &mut self.turns,
        };
        let (list, at) = turns.list_of(at);
        let there = list.remove(TurnKey { turn, at }, number, tie);
        must(there, NOT_THERE);
    }

    /// Where a group of the current round belongs in the lists of turns: the instant from which it may be served,
    /// perhaps with [`AT_MAX`]; or [`NOWHERE`].
    pub(super) fn standing(
        &self,
        number: GroupNumber,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> u64 {
        let group = self.get(number);
        if self.is_fifo && group.reserved > 0 {
            return NOWHERE;
        }
        let Some(due) = group.line.gives_at(self.is_fifo, jobs) else {
            return NOWHERE;
        };
        let own = self.own_of(group, number);
        let paused = own.map_or(0, |own| own.paused_until);
        if paused == NEVER {
            return NOWHERE;
        }
        let at = due.max(rates.map_or(0, |rates| rates.opens_ms(self.rated_by(number, own))));
        let at = at.max(self.passed_over_until(number)).max(paused);
        if self.is_full_by(group, own) {
            AT_MAX | at
        } else {
            at
        }
    }

    /// Whether a group is at GROUPMAX, or at its own MAX.
    fn is_full_by(&self, group: &Group, own: Option<GroupSettings>) -> bool {
        let own = own.and_then(|own| own.max_reserved);
        let most = own.unwrap_or(self.max_reserved);
        most != 0 && u64::from(group.reserved) >= most
    }

    /// Puts a group where it belongs in the lists of turns.
    pub fn refresh(&mut self, number: GroupNumber, jobs: &Store, rates: Option<&GroupRates>) {
        self.catch_up(number, jobs);
        self.settle(number, jobs, rates);
    }

    /// As [`Groups::refresh`], of a group of the current round.
    pub(super) fn settle(&mut self, number: GroupNumber, jobs: &Store, rates: Option<&GroupRates>) {
        let (at, round) = (self.standing(number, jobs, rates), self.round);
        let group = self.get(number);
        if group.stands_at(at, round) {
            return;
        }
        let is_in_list = !group.stands_nowhere() && (group.at ^ at) & AT_MAX == 0;
        let stays = is_in_list && at != NOWHERE;
        if !stays && !group.stands_nowhere() {
            self.withdraw(number);
        }
        let group = self.get_mut(number);
        group.at = at | (round as u64) << ROUND_BITS;
        let turn = group.turn;
        let (list, instant) = self.turns.list_of(at);
        let key = TurnKey { turn, at: instant };
        if stays {
            must(list.set_floor(key, number, tie), NOT_THERE);
        } else if at != NOWHERE {
            list.insert(key, number, tie);
        }
    }

    /// Whether a group is known to stand where it belongs.
    fn stands_rightly(
        &self,
        number: GroupNumber,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> bool {
        let at = self.standing(number, jobs, rates);
        self.pass.is_none() || self.get(number).stands_at(at, self.round)
    }
    /// The group whose turn goes on, if it may be served at this instant.
    fn goes_on(
        &self,
        (now, noack): (Now, bool),
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> Option<GroupNumber> {
        let (number, given) = self.giving?;
        if given >= self.weight(number) {
            return None;
        }
        let at = self.get(number).at;
        let is_open = at & AT_MAX == 0 || noack;
        let may_be = is_open && at & INSTANT <= now.ms();
        let is_right = || self.pass.is_none() || self.stands_rightly(number, jobs, rates);
        (may_be && is_right()).then_some(number)
    }

    /// What a copy begins with.
    pub fn end_turn(&mut self) {
        self.giving = None;
    }

    /// Notes that a group gives a job in turn, or those without one.
    #[inline]
    pub fn gives(&mut self, group: Option<GroupNumber>) {
        let weight = group.map_or(1, |number| self.weight(number));
        let given = match self.giving {
            Some((number, given)) if Some(number) == group && given < weight => given,
            _ => 0,
        };
        self.giving = group.map(|number| (number, given + 1));
    }

    /// The job that is delivered next at this instant.
    #[inline(never)]
    pub fn first_in_turn(
        &self,
        (now, noack): (Now, bool),
        jobs: &Jobs,
        rates: Option<&GroupRates>,
    ) -> Option<Handle> {
        if let Some(number) = self.goes_on((now, noack), jobs, rates) {
            let line = &self.get(number).line;
            return line.first_ready(now.ms(), self.is_fifo, jobs);
        }
        let own = jobs.schedule().own().first_ready(now.ms());
        let first = self.turns.first(now, noack);
        let first = first.filter(|&(turn, _)| own.is_none() || turn < self.own_turn);
        let Some((_, number)) = first else {
            return own;
        };
        if self.pass.is_some() && !self.stands_rightly(number, jobs, rates) {
            return own;
        }
        let line = &self.get(number).line;
        line.first_ready(now.ms(), self.is_fifo, jobs)
    }

    /// The earliest instant at which some group, or the jobs without a group, may be served; in the past if that may be
    /// now, or is not known yet.
    pub fn next_turn_at(&self, noack: bool, jobs: &Jobs) -> Option<u64> {
        if self.pass.is_some() && self.holds_any(jobs) {
            return Some(0);
        }
        let own = jobs.schedule().own().least_due();
        let full = self.turns.full.least_due().filter(|_| noack);
        let open = self.turns.open.least_due();
        own.into_iter().chain(open).chain(full).min()
    }

    /// If `first` is the first job in turn: the earliest instant at which a group comes before that of this job.
    pub fn next_before(
        &self,
        first: Handle,
        (now, noack): (Now, bool),
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> Option<u64> {
        if self.pass.is_some() {
            return Some(0);
        }
        if self.goes_on((now, noack), jobs, rates).is_some() {
            return None;
        }
        let group = jobs.job(first).group();
        let turn = group.map_or(self.own_turn, |number| self.get(number).turn);
        let before = self.turns.open.least_due_below(TurnKey { turn, at: 0 });
        let giving = self.giving.map(|(number, _)| self.get(number).at & INSTANT);
        let giving = giving.filter(|&at| at > now.ms());
        before.into_iter().chain(giving).min()
    }

    /// What of its group holds back a ready job.
    pub fn held(
        &self,
        handle: Handle,
        now: Now,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> HeldByGroup {
        let Some(number) = jobs.job(handle).group() else {
            return HeldByGroup::default();
        };
        let group = self.get(number);
        let Group { reserved, line, .. } = group;
        let is_first = || line.head(jobs).is_some_and(|head| head.handle == handle);
        let opens = self.opens_ms(handle, jobs.weight_of(handle), now, jobs, rates);
        let own = self.own(number);
        let paused = own.map_or(0, |own| own.paused_until);
        HeldByGroup {
            paused: Some(paused).filter(|&until| until > now.ms()),
            max: self.is_full_by(group, own).then_some(*reserved),
            until: Some(opens).filter(|&opens| opens > now.ms()),
            fifo: self.is_fifo && (*reserved > 0 || !is_first()),
        }
    }

    /// Whether a ready job may be delivered out of turn.
    pub fn may_be_served(
        &self,
        handle: Handle,
        (now, noack): (Now, bool),
        jobs: &Jobs,
        rates: Option<&GroupRates>,
    ) -> bool {
        let held = self.held(handle, now, jobs, rates);
        let is_full = !noack && held.max.is_some();
        !is_full && held.until.is_none() && !held.fifo && held.paused.is_none()
    }

    /// How many ready jobs of a group come before this one, counted up to `most`; 0 under GROUPFIFO.
    pub fn ready_before(
        &self,
        handle: Handle,
        (now, most): (Now, usize),
        jobs: &Store,
    ) -> Option<usize> {
        let line = &self.get(jobs.job(handle).group()?).line;
        Some(match self.is_fifo {
            true => 0,
            false => line.ready_before(handle, now.ms(), most),
        })
    }

    /// The first instant at which the end of a pause, or a window, lets a ready job go that nothing else of its group holds
    /// back. None may go now.
    pub fn opens(&mut self, now: Now, jobs: &Jobs, rates: Option<&GroupRates>) -> Option<u64> {
        let least = self.turns.open.least_due().filter(|_| self.pass.is_none());
        let first = least.and_then(|at| self.turns.open.iter_due(at).next());
        let ready = || jobs.schedule().grouped_ready(now.ms());
        let known = first.and_then(|(_, number)| self.first_opens(number, now, jobs, rates));
        if known.is_some() && known <= least {
            return known;
        }
        // Some group that has no ready job comes before, or one whose first job weighs more than the least. So all are looked at that may be meant, by what there is least of.
        let lens = [
            match self.pass {
                None => self.turns.open.len(),
                Some(_) => usize::MAX,
            },
            rates.map_or(0, GroupRates::len) + self.paused().len(),
            jobs.schedule().grouped_ready_len(now.ms()),
        ];
        let numbers: Vec<GroupNumber> = match lens.iter().min() {
            least if least == lens.first() => {
                self.turns.open.iter().map(|(_, number)| number).collect()
            }
            least if least == lens.last() => {
                ready().filter_map(|it| jobs.job(it).group()).collect()
            }
            _ => {
                let names = rates.into_iter().flat_map(GroupRates::names);
                let windows = names.filter_map(|it| self.named(it, jobs));
                let paused = self.paused().iter().map(|(_, number)| number);
                windows.chain(paused).collect()
            }
        };
        let opens = numbers.into_iter().filter_map(|number| {
            self.refresh(number, jobs, rates);
            self.first_opens(number, now, jobs, rates)
        });
        opens.min()
    }

    /// When its pause and its window let the first ready job of a group go, if nothing else of the group holds that back.
    fn first_opens(
        &self,
        number: GroupNumber,
        now: Now,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> Option<u64> {
        let line = &self.get(number).line;
        let first = line.first_ready(now.ms(), self.is_fifo, jobs)?;
        let held = self.held(first, now, jobs, rates);
        let opens = held.until.max(held.paused).filter(|&at| at != NEVER);
        opens.filter(|_| held.max.is_none() && !held.fifo)
    }

    /// The first millisecond in which the window of a job's group allows a delivery of this weight; in the past if it
    /// does now.
    pub fn opens_ms(
        &self,
        handle: Handle,
        weight: u32,
        now: Now,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> u64 {
        let opens = rates.zip(jobs.job(handle).group());
        opens.map_or(0, |(rates, number)| {
            rates.opens_ms_for(self.rated(number), weight, now)
        })
    }

    /// Notes a delivery: the job's group, or the jobs without a group, take the last turn.
    #[inline(never)]
    pub fn delivered(&mut self, group: Option<GroupNumber>, jobs: &Store) {
        match group {
            None => self.own_turn = self.next_turn(),
            Some(number) => {
                // The group stands in no list until the end of what is under way.
                self.catch_up(number, jobs);
                self.withdraw(number);
                self.get_mut(number).turn = self.next_turn();
                self.prefetch_following(jobs);
            }
        }
    }
}

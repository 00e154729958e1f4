//! Whose turn it is.

use super::turns::{tie, AT_MAX};
use super::{Groups, NOWHERE, ROUND_BITS};
use crate::queue::clock::Now;
use crate::queue::job::GroupNumber;
use crate::queue::job::Handle;
use crate::queue::state::jobs::Jobs;
use crate::queue::state::rate::group::GroupRates;
use crate::queue::state::store::Store;
use crate::storage::broken::must;
use crate::storage::skiplist::TurnKey;

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
        must(there, "a group that is not where its turn says");
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
        let at = due.max(rates.map_or(0, |rates| rates.opens_ms(&group.name)));
        let at = at.max(self.passed_over_until(number));
        if self.is_full(number) {
            AT_MAX | at
        } else {
            at
        }
    }

    /// Whether a group is at GROUPMAX.
    pub(super) fn is_full(&self, number: GroupNumber) -> bool {
        self.max_reserved != 0 && u64::from(self.get(number).reserved) >= self.max_reserved
    }

    /// Puts a group where it belongs in the lists of turns.
    pub fn refresh(&mut self, number: GroupNumber, jobs: &Store, rates: Option<&GroupRates>) {
        self.catch_up(number, jobs);
        let (at, round) = (self.standing(number, jobs, rates), self.round);
        if self.get(number).stands_at(at, round) {
            return;
        }
        self.withdraw(number);
        let group = self.get_mut(number);
        group.at = at | (round as u64) << ROUND_BITS;
        let turn = group.turn;
        if at != NOWHERE {
            let (list, at) = self.turns.list_of(at);
            list.insert(TurnKey { turn, at }, number, tie);
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
    /// The job that is delivered next at this instant.
    #[inline(never)]
    pub fn first_in_turn(
        &self,
        (now, noack): (Now, bool),
        jobs: &Jobs,
        rates: Option<&GroupRates>,
    ) -> Option<Handle> {
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

    /// Whether a ready job may be delivered out of turn, if its group's window allows it.
    pub fn may_be_served(
        &self,
        handle: Handle,
        (now, noack): (Now, bool),
        jobs: &Jobs,
        rates: Option<&GroupRates>,
    ) -> bool {
        let Some(number) = jobs.job(handle).group() else {
            return true;
        };
        let at = self.standing(number, jobs, rates);
        let is_first = || {
            let head = self.get(number).line.head(jobs);
            head.is_some_and(|head| head.handle == handle)
        };
        let full = self.is_full(number);
        let opens = self.opens_ms(handle, jobs.weight_of(handle), now, jobs, rates);
        at != NOWHERE && (noack || !full) && opens <= now.ms() && (!self.is_fifo || is_first())
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
            rates.opens_ms_for(self.name(number), weight, now)
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
            }
        }
    }
}

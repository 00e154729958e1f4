//! Whose turn it is.

use super::{GroupNumber, Groups, AT_MAX, INSTANT, NOWHERE, ROUND_BITS};
use crate::queue::clock::Now;
use crate::queue::job::Handle;
use crate::queue::state::rate::group::GroupRates;
use crate::queue::state::store::Store;
use crate::queue::state::Queue;
use crate::storage::broken::must;
use crate::storage::skiplist::{Skiplist, TurnKey};

/// Turns are never equal, but in a forged snapshot: then the group's number decides.
fn tie(_: GroupNumber) -> u64 {
    0
}

/// The groups of one round, by their turns.
#[derive(Clone, Default)]
pub struct Turns {
    pub open: Skiplist<TurnKey>,
    pub full: Skiplist<TurnKey>,
}

impl Turns {
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.full.is_empty()
    }

    /// The list and the instant that `at` stands for.
    fn list_of(&mut self, at: u64) -> (&mut Skiplist<TurnKey>, u64) {
        let list = match at & AT_MAX {
            0 => &mut self.open,
            _ => &mut self.full,
        };
        (list, at & INSTANT)
    }

    /// The turn and the number of the group that is served next at this instant.
    pub fn first(&self, now: Now, noack: bool) -> Option<(u64, GroupNumber)> {
        let first = |list: &Skiplist<TurnKey>| {
            let first = list.first_due(now.ms());
            first.map(|(key, number)| (key.turn, number))
        };
        let full = if noack { first(&self.full) } else { None };
        first(&self.open).into_iter().chain(full).min()
    }

    pub fn free_some(&mut self, count: usize) -> bool {
        self.open.free_some(count) || self.full.free_some(count)
    }

    pub fn memory_bytes(&self) -> usize {
        self.open.memory_bytes() + self.full.memory_bytes()
    }
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
    pub(super) fn refresh(
        &mut self,
        number: GroupNumber,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) {
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
}

impl Queue {
    /// The job that is delivered next at this instant, if the queue delivers at all.
    #[inline]
    pub(in crate::queue) fn first_in_turn(&self, now: Now, noack: bool) -> Option<Handle> {
        match &self.groups {
            None => self.jobs.schedule().own().first_ready(now.ms()),
            Some(groups) => self.first_of_groups(groups, now, noack),
        }
    }

    #[inline(never)]
    fn first_of_groups(&self, groups: &Groups, now: Now, noack: bool) -> Option<Handle> {
        let own = self.jobs.schedule().own().first_ready(now.ms());
        let first = groups.turns.first(now, noack);
        let first = first.filter(|&(turn, _)| own.is_none() || turn < groups.own_turn);
        let Some((_, number)) = first else {
            return own;
        };
        let rates = self.group_rates.as_deref();
        if groups.pass.is_some() && !groups.stands_rightly(number, &self.jobs, rates) {
            return own;
        }
        let line = &groups.get(number).line;
        line.first_ready(now.ms(), groups.is_fifo, &self.jobs)
    }

    /// The earliest instant at which some group, or the jobs without a group, may be served; in the past if that may be
    /// now, or is not known yet.
    #[inline]
    pub(in crate::queue) fn next_turn_at(&self, noack: bool) -> Option<u64> {
        let own = self.jobs.schedule().own().least_due();
        let Some(groups) = &self.groups else {
            return own;
        };
        if groups.pass.is_some() && groups.holds_any(&self.jobs.schedule()) {
            return Some(0);
        }
        let turns = &groups.turns;
        let full = if noack { turns.full.least_due() } else { None };
        let open = turns.open.least_due();
        own.into_iter().chain(open).chain(full).min()
    }

    /// Whether a ready job may be delivered out of turn.
    pub(in crate::queue) fn may_be_served(&self, handle: Handle, now: Now, noack: bool) -> bool {
        let Some(groups) = &self.groups else {
            return true;
        };
        let Some(number) = self.jobs.job(handle).group() else {
            return true;
        };
        let at = groups.standing(number, &self.jobs, self.group_rates.as_deref());
        let is_first = || {
            let head = groups.get(number).line.head(&self.jobs);
            head.is_some_and(|head| head.handle == handle)
        };
        let full = groups.is_full(number);
        let opens = match &self.group_rates {
            Some(_) => self.group_opens_ms(handle, self.cost_of(handle), now),
            None => 0,
        };
        at != NOWHERE && (noack || !full) && opens <= now.ms() && (!groups.is_fifo || is_first())
    }

    /// Notes a delivery: the job's group, or the jobs without a group, take the last turn.
    #[inline]
    pub(in crate::queue::state) fn note_served(&mut self, handle: Handle) {
        if self.groups.is_some() {
            self.take_turn(handle);
        }
    }

    #[inline(never)]
    fn take_turn(&mut self, handle: Handle) {
        let Some(groups) = &mut self.groups else {
            return;
        };
        match self.jobs.job(handle).group() {
            None => groups.own_turn = groups.next_turn(),
            Some(number) => {
                // The group stands in no list until the end of what is under way.
                groups.catch_up(number, &self.jobs);
                groups.withdraw(number);
                groups.get_mut(number).turn = groups.next_turn();
            }
        }
    }
}

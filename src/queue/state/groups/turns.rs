//! Whose turn it is.

use super::{GroupNumber, Groups, AT_MAX, NOWHERE};
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

impl Groups {
    pub(super) fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn list_of(&mut self, at: u64) -> (&mut Skiplist<TurnKey>, u64) {
        if at >= AT_MAX {
            (&mut self.full, at - AT_MAX)
        } else {
            (&mut self.open, at)
        }
    }

    /// Takes a group out of the lists of turns.
    pub(super) fn withdraw(&mut self, number: GroupNumber) {
        let group = self.get_mut(number);
        let (turn, at) = (group.turn, std::mem::replace(&mut group.at, NOWHERE));
        if at != NOWHERE {
            let (list, at) = self.list_of(at);
            let there = list.remove(TurnKey { turn, at }, number, tie);
            must(there, "a group that is not where its turn says");
        }
    }

    /// From when on a group may be served, as it stands in the lists of turns.
    pub(super) fn standing(
        &self,
        number: GroupNumber,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> u64 {
        let group = self.get(number);
        let Some(due) = group.line.gives_at(self.order(jobs)) else {
            return NOWHERE;
        };
        if self.is_fifo && group.reserved > 0 {
            return NOWHERE;
        }
        let at = due.max(rates.map_or(0, |rates| rates.opens_ms(&group.name)));
        if self.is_full(number) {
            AT_MAX + at
        } else {
            at
        }
    }

    /// At GROUPMAX.
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
        let at = self.standing(number, jobs, rates);
        if at == self.get(number).at {
            return;
        }
        self.withdraw(number);
        let group = self.get_mut(number);
        group.at = at;
        let turn = group.turn;
        if at != NOWHERE {
            let (list, at) = self.list_of(at);
            list.insert(TurnKey { turn, at }, number, tie);
        }
    }

    /// The group that is to be served at that instant, and its turn.
    fn first(&self, now: Now, noack: bool) -> Option<(u64, GroupNumber)> {
        let first = |list: &Skiplist<TurnKey>| {
            let first = list.first_due(now.ms());
            first.map(|(key, number)| (key.turn, number))
        };
        let full = if noack { first(&self.full) } else { None };
        first(&self.open).into_iter().chain(full).min()
    }
}

impl Queue {
    /// The job that is to be delivered at that instant, if the queue delivers at all.
    #[inline]
    pub(in crate::queue) fn first_in_turn(&self, now: Now, noack: bool) -> Option<Handle> {
        match &self.groups {
            None => self.schedule.own().first_ready(now.ms()),
            Some(groups) => self.first_of_groups(groups, now, noack),
        }
    }

    #[inline(never)]
    fn first_of_groups(&self, groups: &Groups, now: Now, noack: bool) -> Option<Handle> {
        let own = self.schedule.own().first_ready(now.ms());
        let first = groups.first(now, noack);
        let first = first.filter(|&(turn, _)| own.is_none() || turn < groups.own_turn);
        let Some((_, number)) = first else {
            return own;
        };
        let line = &groups.get(number).line;
        line.first_ready(now.ms(), groups.order(&self.jobs))
    }

    /// The earliest instant at which some group, or those without one, may be served; in the past where one may
    /// be served now.
    #[inline]
    pub(in crate::queue) fn next_turn_at(&self, noack: bool) -> Option<u64> {
        let own = self.schedule.own().least_due();
        let Some(groups) = &self.groups else {
            return own;
        };
        let full = if noack { groups.full.least_due() } else { None };
        let open = groups.open.least_due();
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
        let rates = self.group_rates.as_deref();
        let at = groups.standing(number, &self.jobs, rates);
        let order = groups.order(&self.jobs);
        let is_first = || {
            let head = groups.get(number).line.head(order);
            head.is_some_and(|head| head.handle == handle)
        };
        let full = groups.is_full(number);
        let opens = rates.map_or(0, |rates| rates.opens_ms(groups.name(number)));
        at != NOWHERE && (noack || !full) && opens <= now.ms() && (!groups.is_fifo || is_first())
    }

    /// A delivery: the job's group, or those without one, were served last.
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
                // Until the end of what is under way.
                groups.withdraw(number);
                groups.get_mut(number).turn = groups.next_turn();
            }
        }
    }
}

//! Changes that concern all groups at once, carried out in steps: a new setting, or a large purge. To update a million
//! groups in one command would hold up the server for a second.
//!
//! Each such change begins a *round*. Groups carry the round in which they were updated last. Groups of older rounds
//! stand in the lists of turns of these rounds, as they stood. Whatever touches a group brings it into the current
//! round first ([`Groups::catch_up`]), and a *pass* over all numbers does so with the rest, a few at a time.
//!
//! Meanwhile no job is delivered against the new settings, and no purged job. Each delivery brings the groups that
//! stand before its own in turn into the current round, up to a bound. If there are very many, a group that the old
//! setting held back may be served a little late. A delivery that finds no group that may be served goes by the first
//! ready jobs, up to a bound, too.

use super::line::Line;
use super::turns::Turns;
use super::Groups;
use crate::queue::clock::Now;
use crate::queue::job::GroupNumber;
use crate::queue::settings::GroupLimits;
use crate::queue::state::jobs::Jobs;
use crate::queue::state::purged::Purged;
use crate::queue::state::rate::group::GroupRates;
use crate::queue::state::store::Store;
use crate::storage::broken::must;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// How many rounds can be distinguished. If one more would begin, a purge updates its groups at once, and a setting is
/// carried out in the current round.
pub(super) const ROUNDS: usize = 8;
/// How many of these rounds settings may begin; the others are left to purges.
const ROUNDS_OF_SETTINGS: usize = 3;
/// How many groups one command updates. Tests have few, and want the states in between.
const UPDATED_AT_ONCE: usize = if cfg!(test) { 2 } else { 500 };
/// How many groups all commands and clients of one millisecond update together: a POP of many jobs would do so for each
/// job.
const UPDATES_PER_MS: usize = 2 * UPDATED_AT_ONCE;
/// If no job is known that may be delivered: at least this many ready jobs are looked at, however many were before.
const LEAST_READY: usize = if cfg!(test) { 1 } else { 16 };
/// How many numbers without a group are skipped in one step.
const SKIPPED: GroupNumber = 1024;
/// How many groups are updated with each job that is linked into a group.
const UPDATED_WITH_EACH: usize = 4;

/// The purge with which a round began.
#[derive(Clone)]
struct Gone {
    purged: Purged,
    /// For a purge of leases: how many jobs of each group stay reserved, because their leases are overdue; only groups
    /// with such jobs.
    staying: HashMap<GroupNumber, u32>,
}

#[derive(Clone, Default)]
pub struct Pass {
    /// Groups from this number on are still to be updated.
    next: GroupNumber,
    /// How many rounds have begun in this pass.
    begun: usize,
    /// The lists of turns of older rounds.
    older: [Turns; ROUNDS],
    purges: [Option<Gone>; ROUNDS],
    /// Long lines to be freed.
    useless: Vec<Line>,
    /// How many groups and ready jobs deliveries have looked at in the millisecond `updated_ms`.
    looked_at: usize,
    updated_ms: u64,
}

impl Pass {
    /// How many groups a delivery may update now.
    fn updates_left(&mut self, now: Now) -> usize {
        if self.updated_ms != now.ms() {
            (self.updated_ms, self.looked_at) = (now.ms(), 0);
        }
        UPDATES_PER_MS
            .saturating_sub(self.looked_at)
            .min(UPDATED_AT_ONCE)
    }

    /// How many ready jobs a delivery may look at after that.
    fn ready_left(&self) -> usize {
        let left = (UPDATES_PER_MS + UPDATED_AT_ONCE).saturating_sub(self.looked_at);
        left.clamp(LEAST_READY, UPDATED_AT_ONCE)
    }

    pub(super) fn older(&mut self, round: usize) -> &mut Turns {
        &mut self.older[round]
    }

    pub(super) fn all_older(&mut self) -> &mut [Turns] {
        &mut self.older
    }

    /// The lists of turns of older rounds, with their rounds.
    pub(super) fn each_older(&self) -> impl Iterator<Item = (usize, &Turns)> {
        self.older.iter().enumerate()
    }

    /// The purges since a round.
    fn purges_since(&self, round: usize, current: usize) -> impl Iterator<Item = &Gone> {
        let rounds = (1..ROUNDS).map(move |later| (round + later) % ROUNDS);
        let later = rounds.take((current + ROUNDS - round) % ROUNDS);
        later.filter_map(|round| self.purges[round].as_ref())
    }

    /// Frees about `count` entries of lines; false at the end.
    pub(super) fn free_lines(&mut self, count: usize) -> bool {
        let Some(line) = self.useless.last_mut() else {
            return false;
        };
        if !line.free_some(count) {
            self.useless.pop();
        }
        true
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let lines = self.useless.iter().map(Line::memory_bytes);
        let older = self.older.iter().map(Turns::memory_bytes);
        let staying = self.purges.iter().flatten();
        let staying = staying.map(|gone| gone.staying.capacity() * size_of::<(GroupNumber, u32)>());
        let all = lines.sum::<usize>() + older.sum::<usize>() + staying.sum::<usize>();
        size_of::<Self>() + all
    }
}

impl Gone {
    fn staying_of(&self, number: GroupNumber) -> u32 {
        self.staying.get(&number).copied().unwrap_or(0)
    }
}

/// Joins ranges that overlap.
fn disjoint(mut ranges: Vec<RangeInclusive<u64>>) -> Vec<RangeInclusive<u64>> {
    ranges.sort_unstable_by_key(|range| *range.start());
    let mut merged: Vec<RangeInclusive<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start() <= last.end() => {
                *last = *last.start()..=*last.end().max(range.end());
            }
            _ => merged.push(range),
        }
    }
    merged
}

impl Groups {
    /// Begins a round, in which all groups are to be updated; false if no further round can begin.
    fn begin_round(&mut self, gone: Option<Gone>) -> bool {
        let pass = self.pass.get_or_insert_default();
        pass.next = 0;
        let most = match gone {
            None => ROUNDS_OF_SETTINGS,
            Some(_) => ROUNDS - 1,
        };
        if pass.begun >= most {
            return false;
        }
        pass.begun += 1;
        pass.older[self.round] = std::mem::take(&mut self.turns);
        self.round = (self.round + 1) % ROUNDS;
        pass.purges[self.round] = gone;
        true
    }

    /// How many jobs a group holds: blocked, delayed and ready ones; and reserved ones.
    pub(super) fn counts(&self, number: GroupNumber) -> (usize, usize) {
        let group = self.get(number);
        let (mut waiting, mut reserved) = (group.line.len(), group.reserved as usize);
        if let Some(pass) = self.pass.as_ref().filter(|_| group.round() != self.round) {
            let mut dues = Vec::new();
            for gone in pass.purges_since(group.round(), self.round) {
                match &gone.purged {
                    Purged::Dues(some) => dues.push(some.clone()),
                    Purged::Leases(_) => reserved = gone.staying_of(number) as usize,
                    // These purges have updated their groups at once.
                    Purged::DeadBefore(_) | Purged::Blocked | Purged::Overdue { .. } => {}
                }
            }
            let dues = disjoint(dues);
            waiting -= dues.iter().map(|it| group.line.count(it)).sum::<usize>();
        }
        (waiting + self.blocked_in(number), reserved)
    }

    /// Brings a group into the current round. If it is of an older one, it stands in no list of turns until it is
    /// refreshed.
    #[inline]
    pub(super) fn catch_up(&mut self, number: GroupNumber, jobs: &Store) {
        if self.get(number).round() != self.round {
            self.catch_up_from_older(number, jobs);
        }
    }

    #[cold]
    fn catch_up_from_older(&mut self, number: GroupNumber, jobs: &Store) {
        self.withdraw(number);
        let current = self.round;
        let Some(pass) = &mut self.pass else {
            return must(false, "a group of an older round, and no pass");
        };
        let group = super::there(self.all.get_mut(number), super::NO_GROUP);
        let (before, round) = (group.live(), group.round());
        let mut useless = Vec::new();
        for gone in pass.purges_since(round, current) {
            match &gone.purged {
                Purged::Dues(dues) => useless.extend(group.line.purge(dues, jobs)),
                Purged::Leases(_) => group.reserved = gone.staying_of(number),
                // These purges have updated their groups at once.
                Purged::DeadBefore(_) | Purged::Blocked | Purged::Overdue { .. } => {}
            }
        }
        pass.useless.extend(useless);
        group.stand_nowhere(current);
        let holds_none = group.live() == 0 && !self.blocked.contains_key(&number);
        self.held -= usize::from(before > 0 && holds_none);
    }

    /// Updates up to `budget` groups that the pass has not come to; returns the unused budget.
    pub fn update_some(
        &mut self,
        budget: usize,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> usize {
        for left in (1..=budget).rev() {
            let Some(pass) = &mut self.pass else {
                return left;
            };
            if pass.free_lines(budget) {
                continue;
            }
            let end = self.all.end();
            if pass.next >= end {
                let is_over = pass.older.iter().all(Turns::is_empty);
                must(is_over, "a group that no pass has come to");
                self.pass = None;
                return left;
            }
            let numbers = pass.next..end.min(pass.next + SKIPPED);
            pass.next = numbers.end;
            let group = numbers.into_iter().find(|&it| self.all.get(it).is_some());
            if let (Some(number), Some(pass)) = (group, &mut self.pass) {
                pass.next = number + 1;
                self.refresh(number, jobs, rates);
            }
        }
        0
    }

    /// The group that is first in turn of all that might be served at this instant, unless it is known to stand where
    /// it belongs.
    fn first_in_doubt(
        &mut self,
        now: Now,
        noack: bool,
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) -> Option<GroupNumber> {
        let current = self.turns.first(now, noack);
        let pass = self.pass.as_mut()?;
        let older = pass.older.iter().filter_map(|it| it.first(now, true)).min();
        let first = older.into_iter().chain(current).min()?;
        let is_right = Some(first) == current
            && self
                .get(first.1)
                .stands_at(self.standing(first.1, jobs, rates), self.round);
        (!is_right).then_some(first.1)
    }
    /// Whether groups are still to be updated.
    #[inline]
    pub fn is_passing(&self) -> bool {
        self.pass.is_some()
    }

    /// Updates a few groups, with each job that is linked into a group.
    pub(super) fn pay(&mut self, jobs: &Store, rates: Option<&GroupRates>) {
        if self.is_passing() {
            self.update_some(UPDATED_WITH_EACH, jobs, rates);
        }
    }

    /// Carries out new settings of the groups.
    pub fn configure(&mut self, limits: GroupLimits, jobs: &Store, rates: Option<&GroupRates>) {
        self.max_reserved = limits.max_reserved;
        self.is_fifo = limits.is_fifo;
        self.passed_over.clear();
        self.begin_round(None);
        self.update_some(UPDATED_AT_ONCE, jobs, rates);
    }

    /// Leaves it to a pass to update the groups of `count` jobs that are about to be detached. False if they must be
    /// updated now.
    pub fn purge_later(&mut self, purged: &Purged, count: usize, jobs: &Jobs) -> bool {
        let staying = match purged {
            Purged::Leases(_) => groups_of_first_reserved(jobs, jobs.reserved().len() - count),
            Purged::Overdue { .. } => return false,
            // Dead jobs are in no line, and are not counted.
            Purged::DeadBefore(_) => return true,
            Purged::Blocked => {
                self.leave_blocked();
                return true;
            }
            Purged::Dues(_) => HashMap::new(),
        };
        let reserved = staying.values().map(|&count| count as usize).sum();
        let gone = Gone {
            purged: purged.clone(),
            staying,
        };
        let later = self.begin_round(Some(gone));
        if later && matches!(purged, Purged::Leases(_)) {
            self.reserved = reserved;
        }
        later
    }

    /// Brings the groups that a delivery may come from into the current round, as far as the bound allows.
    #[cold]
    pub fn update_groups_before(
        &mut self,
        named: Option<GroupNumber>,
        (now, noack): (Now, bool),
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) {
        for number in named.into_iter().chain(self.giving.map(|giving| giving.0)) {
            self.refresh(number, jobs, rates);
        }
        let looks = self.pass.as_mut().map_or(0, |pass| pass.updates_left(now));
        let mut looked_at = looks - self.update_some(looks, jobs, rates);
        for _ in 0..looks {
            let Some(number) = self.first_in_doubt(now, noack, jobs, rates) else {
                break;
            };
            self.refresh(number, jobs, rates);
            looked_at += 1;
        }
        self.count_updates(looked_at);
    }

    fn count_updates(&mut self, looked_at: usize) {
        if let Some(pass) = &mut self.pass {
            pass.looked_at += looked_at;
        }
    }

    /// If no job is known that may be delivered: brings the groups of the first ready jobs into the current round,
    /// until one of these jobs may be.
    #[cold]
    pub fn search_ready(
        &mut self,
        (now, noack): (Now, bool),
        jobs: &Jobs,
        rates: Option<&GroupRates>,
    ) -> bool {
        let looks = self.pass.as_ref().map_or(0, |pass| pass.ready_left());
        let ready = jobs.schedule().grouped_ready(now.ms()).take(looks);
        let mut looked_at = 0;
        let found = ready.into_iter().any(|handle| {
            looked_at += 1;
            let number = jobs.job(handle).group();
            number
                .into_iter()
                .for_each(|it| self.refresh(it, jobs, rates));
            self.may_be_served(handle, (now, noack), jobs, rates)
        });
        self.count_updates(looked_at);
        found
    }
}

/// How many jobs of each group are among the `count` jobs whose leases end first.
fn groups_of_first_reserved(jobs: &Jobs, count: usize) -> HashMap<GroupNumber, u32> {
    let first = jobs.leases_from(0).take(count);
    let mut groups = HashMap::new();
    for number in first.filter_map(|(_, handle)| jobs.job(handle).group()) {
        *groups.entry(number).or_default() += 1;
    }
    groups
}

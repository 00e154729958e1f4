//! The parts of groups that follow from where jobs stand: lines, counts, and which groups hold jobs.

use super::line::Waiting;
use super::{Groups, TURN_MAX};
use crate::queue::error::QueueError;
use crate::queue::job::GroupNumber;
use crate::queue::job::{Handle, Place};
use crate::queue::state::bounds::{check_group, malformed};
use crate::queue::state::jobs::Jobs;
use crate::queue::state::position::Position;
use crate::queue::state::rate::group::GroupRates;
use crate::queue::state::schedule::OrderKey;
use crate::queue::state::store::{NewJob, Store};
use crate::storage::broken::must;
use std::collections::BTreeSet;

fn is_live(place: Place) -> bool {
    matches!(place, Place::Scheduled | Place::Reserved | Place::Blocked)
}

fn waiting(handle: Handle, at: Position) -> Waiting {
    Waiting {
        handle,
        priority: at.priority,
        due: at.status.due,
    }
}

/// The groups whose turn a snapshot has so far.
#[derive(Default)]
pub struct TurnsSeen {
    own: bool,
    /// A bit for each group.
    groups: Vec<u64>,
}

impl TurnsSeen {
    /// Whether the group was not seen before; notes that it is now.
    fn is_news(&mut self, group: Option<GroupNumber>) -> bool {
        let Some(number) = group else {
            return !std::mem::replace(&mut self.own, true);
        };
        let (at, bit) = (number as usize / 64, 1 << (number % 64));
        if at >= self.groups.len() {
            self.groups.resize(at + 1, 0);
        }
        let before = self.groups[at];
        self.groups[at] |= bit;
        before & bit == 0
    }
}

impl Groups {
    /// Notes where a job stands now, and puts its group where it belongs.
    pub fn placed(
        &mut self,
        number: GroupNumber,
        (handle, at): (Handle, Position),
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) {
        self.linked(number, handle, at, jobs);
        self.settle(number, jobs, rates);
        self.pay(jobs, rates);
    }

    fn linked(&mut self, number: GroupNumber, handle: Handle, at: Position, jobs: &Store) {
        self.catch_up(number, jobs);
        self.passed_over.remove(&number);
        let blocked = self.blocked_in(number);
        let group = self.get_mut(number);
        let before = group.live() + blocked;
        match at.status.place {
            Place::Scheduled => group.line.insert(waiting(handle, at), jobs),
            Place::Reserved => {
                group.reserved += 1;
                self.reserved += 1;
            }
            Place::Blocked => *self.blocked.entry(number).or_default() += 1,
            Place::Dead | Place::Successor => return,
        }
        self.held += usize::from(before == 0);
    }

    /// Notes that a job has left its place. The caller updates the place of the group in the lists of turns.
    pub fn left(&mut self, number: GroupNumber, handle: Handle, at: Position, jobs: &Store) {
        self.prefetch_name(number);
        self.catch_up(number, jobs);
        self.passed_over.remove(&number);
        let group = self.get_mut(number);
        match at.status.place {
            Place::Scheduled => {
                let there = group.line.remove(waiting(handle, at), jobs);
                must(there, "a job that is not in the line of its group");
            }
            Place::Reserved => {
                group.reserved -= 1;
                self.reserved -= 1;
            }
            Place::Blocked => self.unblocked(number),
            Place::Dead | Place::Successor => return,
        }
        let live = self.get(number).live() + self.blocked_in(number);
        self.held -= usize::from(live == 0);
    }

    fn unblocked(&mut self, number: GroupNumber) {
        let count = self.blocked.entry(number).or_default();
        must(*count > 0, "a blocked job that its group did not count");
        *count -= 1;
        if *count == 0 {
            self.blocked.remove(&number);
        }
    }

    /// Forgets all blocked jobs, which are about to be removed.
    pub(super) fn leave_blocked(&mut self) {
        for (number, _) in std::mem::take(&mut self.blocked) {
            self.held -= usize::from(self.get(number).live() == 0);
        }
    }

    fn holds(&self, number: GroupNumber) -> bool {
        self.counts(number) != (0, 0)
    }
    /// A job becomes blocked, delayed, ready or reserved. If its group held no job before, the group takes the turn
    /// behind all others, or the one that a snapshot tells.
    #[inline(never)]
    pub fn begin_turn(
        &mut self,
        group: Option<GroupNumber>,
        place: Place,
        known: Option<u64>,
        jobs: &Jobs,
    ) {
        if !is_live(place) {
            return;
        }
        let holds_others = match group {
            None => self.holds_own(jobs),
            Some(number) => {
                self.catch_up(number, jobs);
                self.get(number).live() + self.blocked_in(number) > 0
            }
        };
        if holds_others {
            return;
        }
        let turn = known.unwrap_or_else(|| self.next_turn());
        self.turn = self.turn.max(turn);
        match group {
            None => (self.own_turn, self.is_own_turn_known) = (turn, known.is_some()),
            Some(number) => self.give_turn(number, turn),
        }
    }

    #[inline]
    fn give_turn(&mut self, number: GroupNumber, turn: u64) {
        self.get_mut(number).turn = turn;
        self.giving.take_if(|giving| giving.0 == number);
    }

    /// A new job of a group, delayed or ready: as [`Groups::begin_turn`] and [`Groups::placed`].
    pub fn came(
        &mut self,
        number: GroupNumber,
        (handle, OrderKey { priority, due }): (Handle, OrderKey),
        jobs: &Store,
        rates: Option<&GroupRates>,
    ) {
        let job = Waiting {
            handle,
            priority,
            due,
        };
        self.catch_up(number, jobs);
        if !self.passed_over.is_empty() {
            self.passed_over.remove(&number);
        }
        let blocked = self.blocked_in(number);
        let group = self.get_mut(number);
        let is_first = group.live() + blocked == 0;
        group.line.insert(job, jobs);
        if is_first {
            self.held += 1;
            let turn = self.next_turn();
            self.give_turn(number, turn);
        }
        self.settle(number, jobs, rates);
        self.pay(jobs, rates);
    }

    /// Jobs without a group that are there already count as served before the first group comes.
    pub fn serve_own(&mut self) {
        self.own_turn = self.next_turn();
    }

    /// Whether any job without a group is blocked, delayed, ready or reserved.
    fn holds_own(&self, jobs: &Jobs) -> bool {
        let all = jobs.schedule().own().len() + jobs.reserved().len() + jobs.blocked_len();
        all > self.reserved + self.blocked_len()
    }

    /// Takes over the turns of the groups of other jobs, of which these are copies.
    pub fn adopt_turns(&mut self, jobs: &Jobs, others: &Groups, other_jobs: &Jobs) {
        (self.turn, self.own_turn) = (others.turn, others.own_turn);
        let numbers: Vec<GroupNumber> = self.numbers().collect();
        for number in numbers {
            if let Some(theirs) = others.named(&self.get(number).name, other_jobs) {
                self.withdraw(number);
                self.get_mut(number).turn = others.get(theirs).turn;
                self.refresh(number, jobs, None);
            }
        }
    }

    /// The turn that a snapshot writes with a job: its group's, with the group's first job only.
    pub fn turn_to_write(&self, handle: Handle, seen: &mut TurnsSeen, jobs: &Jobs) -> Option<u64> {
        if !self.holds_any(jobs) {
            return None;
        }
        let job = jobs.job(handle);
        let group = job.group();
        if !is_live(job.place()) || !seen.is_news(group) {
            return None;
        }
        Some(group.map_or(self.own_turn, |number| self.get(number).turn))
    }

    /// At the end of a snapshot: whether no two turns are the same, and none is of a group that holds no job.
    pub fn check_given_turns(&self, only_rows: bool, jobs: &Jobs) -> Result<(), QueueError> {
        let live = self.numbers().filter(|&number| self.holds(number));
        let mut turns: Vec<u64> = live.map(|number| self.get(number).turn).collect();
        turns.extend(self.is_own_turn_known.then_some(self.own_turn));
        turns.sort_unstable();
        let takes_turns = self.holds_any(jobs) && self.holds_own(jobs);
        if !turns.is_sorted_by(|a, b| a < b) {
            return Err(malformed("two groups that have the same turn"));
        }
        if only_rows && self.is_own_turn_known != takes_turns {
            return Err(malformed("a turn of no group, or a group without one"));
        }
        Ok(())
    }

    /// (turn, name) of all groups that hold jobs, in the order of turns; for jobs without a group, no name.
    pub fn in_turn(&self, jobs: &Jobs) -> Vec<(u64, Option<&[u8]>)> {
        if !self.holds_any(jobs) {
            return Vec::new();
        }
        let all = self.numbers().filter(|&number| self.holds(number));
        let all = all.map(|number| self.get(number));
        let own = self.holds_own(jobs).then_some((self.own_turn, None));
        let mut turns: Vec<_> = all
            .map(|group| (group.turn, Some(&*group.name)))
            .chain(own)
            .collect();
        turns.sort_unstable();
        turns
    }
}

/// Whether jobs that come as rows tell the turn of each group exactly once.
pub fn check_turns<'a>(
    groups: Option<&Groups>,
    coming: impl Iterator<Item = NewJob<'a>>,
    jobs: &Jobs,
) -> Result<(), QueueError> {
    // Whether any job of this group, or without a group, is blocked, delayed, ready or reserved.
    let holds = |group: Option<&[u8]>| match (group, groups) {
        (Some(name), Some(groups)) => groups.held_by(name, jobs).is_some_and(|it| it.1 > 0),
        (Some(_), None) => false,
        (None, Some(groups)) => groups.holds_own(jobs),
        (None, None) => jobs.live_len() > 0,
    };
    let mut seen = BTreeSet::new();
    for job in coming {
        job.group.map_or(Ok(()), check_group)?;
        if !is_live(job.place) {
            if job.turn.is_some() {
                return Err(malformed(
                    "the turn of a group by a job that it does not hold",
                ));
            }
            continue;
        }
        let is_known = seen.contains(&job.group) || holds(job.group);
        let fits = match job.turn {
            Some(turn) => (1..=TURN_MAX).contains(&turn) && !is_known,
            None => is_known || job.group.is_none(),
        };
        if !fits {
            return Err(malformed("a group whose turn stands twice, or not at all"));
        }
        if job.turn.is_some() {
            seen.insert(job.group);
        }
    }
    Ok(())
}

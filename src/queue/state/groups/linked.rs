//! The parts of groups that follow from where jobs stand: lines, counts, and which groups hold jobs.

use super::line::Waiting;
use super::{GroupNumber, Groups, TURN_MAX};
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place};
use crate::queue::state::bounds::{check_group, malformed};
use crate::queue::state::position::Position;
use crate::queue::state::store::{NewJob, Store};
use crate::queue::state::Queue;
use crate::storage::broken::must;
use std::collections::BTreeSet;

fn is_live(place: Place) -> bool {
    matches!(place, Place::Scheduled | Place::Reserved | Place::Blocked)
}

fn waiting(handle: Handle, at: Position) -> Waiting {
    Waiting {
        handle,
        priority: at.priority,
        due: at.course.due,
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
    fn linked(&mut self, number: GroupNumber, handle: Handle, at: Position, jobs: &Store) {
        self.catch_up(number, jobs);
        self.passed_over.remove(&number);
        let blocked = self.blocked_in(number);
        let group = self.get_mut(number);
        let before = group.live() + blocked;
        match at.course.place {
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

    fn unlinked(&mut self, number: GroupNumber, handle: Handle, at: Position, jobs: &Store) {
        self.catch_up(number, jobs);
        self.passed_over.remove(&number);
        let group = self.get_mut(number);
        match at.course.place {
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
    fn leave_blocked(&mut self) {
        for (number, _) in std::mem::take(&mut self.blocked) {
            self.held -= usize::from(self.get(number).live() == 0);
        }
    }

    fn holds(&self, number: GroupNumber) -> bool {
        self.counts(number) != (0, 0)
    }
}

impl Queue {
    /// The group of a new job, with one user more.
    pub(in crate::queue::state) fn acquire_group(&mut self, name: &[u8]) -> GroupNumber {
        let others = self.jobs.live_len() > 0;
        let settings = &self.settings;
        let groups = self.groups.get_or_insert_with(|| {
            let mut groups = Box::new(Groups::new(settings));
            // Jobs that are there already count as served before the first group comes.
            if others {
                groups.own_turn = groups.next_turn();
            }
            groups
        });
        groups.acquire(name, self.jobs.hasher().hash_one(name))
    }

    /// A job becomes blocked, delayed, ready or reserved. If its group held no job before, the group takes the turn
    /// behind all others, or the one that a snapshot tells.
    #[inline]
    pub(in crate::queue::state) fn begin_turn(
        &mut self,
        group: Option<GroupNumber>,
        place: Place,
        known: Option<u64>,
    ) {
        if (self.groups.is_some() || known.is_some()) && is_live(place) {
            self.take_new_turn(group, known);
        }
    }

    #[inline(never)]
    fn take_new_turn(&mut self, group: Option<GroupNumber>, known: Option<u64>) {
        let settings = &self.settings;
        let live =
            self.jobs.schedule().own().len() + self.jobs.reserved().len() + self.jobs.blocked_len();
        let groups = self
            .groups
            .get_or_insert_with(|| Box::new(Groups::new(settings)));
        let holds_others = match group {
            None => live > groups.reserved + groups.blocked_len(),
            Some(number) => {
                groups.catch_up(number, &self.jobs);
                groups.get(number).live() + groups.blocked_in(number) > 0
            }
        };
        if holds_others {
            return;
        }
        let turn = known.unwrap_or_else(|| groups.next_turn());
        groups.turn = groups.turn.max(turn);
        match group {
            None => (groups.own_turn, groups.is_own_turn_known) = (turn, known.is_some()),
            Some(number) => groups.get_mut(number).turn = turn,
        }
    }

    /// Notes where a job with a group stands now.
    #[inline(never)]
    pub(in crate::queue::state) fn link_in_group(
        &mut self,
        number: GroupNumber,
        handle: Handle,
        at: Position,
    ) {
        if let Some(groups) = &mut self.groups {
            groups.linked(number, handle, at, &self.jobs);
            groups.refresh(number, &self.jobs, self.group_rates.as_deref());
            if let Some(flows) = &mut self.flows {
                flows.note_member(number, at.course.place);
            }
            self.pay_for_groups();
        }
    }

    /// Notes that a job with a group has left its place. The caller updates the group's place in the lists of turns.
    #[inline(never)]
    pub(in crate::queue::state) fn unlink_in_group(
        &mut self,
        number: GroupNumber,
        handle: Handle,
        at: Position,
    ) {
        if let Some(groups) = &mut self.groups {
            groups.unlinked(number, handle, at, &self.jobs);
            if let Some(flows) = &mut self.flows {
                flows.note_left(number, groups);
            }
        }
    }

    /// Takes purged jobs and their successors out of their groups, one by one.
    pub(in crate::queue::state) fn leave_groups(&mut self, handles: &[Handle]) {
        for &handle in handles {
            let successor = self.jobs.successor(handle);
            for handle in [handle].into_iter().chain(successor) {
                if let Some(number) = self.jobs.job(handle).group() {
                    self.unlink_in_group(number, handle, self.jobs.position(handle));
                    self.refresh_group(number);
                    self.jobs.leave_group(handle);
                    self.release_group(number);
                }
            }
        }
        self.drop_groups();
    }

    pub(in crate::queue::state) fn use_group(&mut self, number: GroupNumber) {
        if let Some(groups) = &mut self.groups {
            groups.add_user(number);
        }
    }

    pub(in crate::queue::state) fn leave_blocked_groups(&mut self) {
        if let Some(groups) = &mut self.groups {
            groups.leave_blocked();
        }
    }

    pub(in crate::queue::state) fn release_group(&mut self, number: GroupNumber) {
        if let Some(groups) = &mut self.groups {
            groups.release(number, &**self.jobs.hasher());
        }
    }

    pub(in crate::queue::state) fn refresh_named(&mut self, names: &[Box<[u8]>]) {
        for name in names {
            let hash = self.jobs.hasher().hash_one(&**name);
            let number = self.groups.as_ref().and_then(|it| it.find(name, hash));
            number.into_iter().for_each(|it| self.reconsider_group(it));
        }
    }

    pub(super) fn refresh_group(&mut self, number: GroupNumber) {
        if let Some(groups) = &mut self.groups {
            groups.refresh(number, &self.jobs, self.group_rates.as_deref());
        }
    }

    /// Frees the memory of a job that stands on no list any more.
    #[inline]
    pub(in crate::queue::state) fn drop_job(&mut self, handle: Handle) {
        self.leave_flows(handle);
        if self.groups.is_none() {
            return self.jobs.remove(handle);
        }
        let group = self.jobs.job(handle).group();
        if let Some(number) = group {
            self.refresh_group(number);
        }
        self.jobs.remove(handle);
        if let Some(number) = group {
            self.release_group(number);
            self.drop_groups();
        }
    }

    /// Drops the structure if no group is left.
    fn drop_groups(&mut self) {
        self.groups.take_if(|groups| groups.all.len() == 0);
    }

    /// A job as it stands, for another queue.
    pub(in crate::queue::state) fn as_new(&self, handle: Handle) -> NewJob<'_> {
        NewJob {
            group: self.group_of(handle),
            ..self.jobs.as_new(handle)
        }
    }

    /// Takes over the turns of another queue, of which this one is a copy, made job by job.
    pub(in crate::queue::state) fn adopt_turns(&mut self, other: &Queue) {
        let (Some(groups), Some(others)) = (&mut self.groups, &other.groups) else {
            return;
        };
        (groups.turn, groups.own_turn) = (others.turn, others.own_turn);
        let numbers: Vec<GroupNumber> = groups.numbers().collect();
        for number in numbers {
            let name = &groups.get(number).name;
            let theirs = others.find(name, other.jobs.hasher().hash_one(&**name));
            if let Some(theirs) = theirs {
                groups.withdraw(number);
                groups.get_mut(number).turn = others.get(theirs).turn;
                groups.refresh(number, &self.jobs, None);
            }
        }
    }

    /// The turn that a snapshot writes with a job: its group's, with the group's first job only.
    pub(in crate::queue::state) fn turn_to_write(
        &self,
        handle: Handle,
        seen: &mut TurnsSeen,
    ) -> Option<u64> {
        let groups = self.groups.as_ref()?;
        if !groups.holds_any(&self.jobs.schedule()) {
            return None;
        }
        let job = self.jobs.job(handle);
        let group = job.group();
        if !is_live(job.place()) || !seen.is_news(group) {
            return None;
        }
        Some(group.map_or(groups.own_turn, |number| groups.get(number).turn))
    }

    /// Whether jobs that come as rows tell the turn of each group exactly once.
    pub(in crate::queue::state) fn check_turns<'a>(
        &self,
        jobs: impl Iterator<Item = NewJob<'a>>,
    ) -> Result<(), QueueError> {
        let mut seen = BTreeSet::new();
        for job in jobs {
            job.group.map_or(Ok(()), check_group)?;
            if !is_live(job.place) {
                if job.turn.is_some() {
                    return Err(malformed(
                        "the turn of a group by a job that it does not hold",
                    ));
                }
                continue;
            }
            let is_known = seen.contains(&job.group) || self.holds(job.group);
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

    /// Whether any job of this group, or without a group, is blocked, delayed, ready or reserved.
    fn holds(&self, group: Option<&[u8]>) -> bool {
        match group {
            Some(name) => self.group(name).is_some_and(|group| group.holds_any()),
            None => {
                let of_groups = |groups: &Groups| groups.reserved + groups.blocked_len();
                let grouped = self.groups.as_deref().map_or(0, of_groups);
                let all = self.jobs.schedule().own().len()
                    + self.jobs.reserved().len()
                    + self.jobs.blocked_len();
                all > grouped
            }
        }
    }

    /// At the end of a snapshot: whether no two turns are the same, and none is of a group that holds no job.
    pub(in crate::queue::state) fn check_told_turns(
        &self,
        only_rows: bool,
    ) -> Result<(), QueueError> {
        let Some(groups) = &self.groups else {
            return Ok(());
        };
        let live = groups.numbers().filter(|&number| groups.holds(number));
        let mut turns: Vec<u64> = live.map(|number| groups.get(number).turn).collect();
        turns.extend(groups.is_own_turn_known.then_some(groups.own_turn));
        turns.sort_unstable();
        let takes_turns = groups.holds_any(&self.jobs.schedule()) && self.holds(None);
        if !turns.is_sorted_by(|a, b| a < b) {
            return Err(malformed("two groups that have the same turn"));
        }
        if only_rows && groups.is_own_turn_known != takes_turns {
            return Err(malformed("a turn of no group, or a group without one"));
        }
        Ok(())
    }

    /// (turn, name) of all groups that hold jobs, in the order of turns; for jobs without a group, no name.
    pub(in crate::queue::state) fn turns(&self) -> Vec<(u64, Option<&[u8]>)> {
        let groups = self.groups.as_ref();
        let Some(groups) = groups.filter(|groups| groups.holds_any(&self.jobs.schedule())) else {
            return Vec::new();
        };
        let all = groups.numbers().filter(|&number| groups.holds(number));
        let all = all.map(|number| groups.get(number));
        let own = self.holds(None).then_some((groups.own_turn, None));
        let mut turns: Vec<_> = all
            .map(|group| (group.turn, Some(&*group.name)))
            .chain(own)
            .collect();
        turns.sort_unstable();
        turns
    }
}

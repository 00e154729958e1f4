//! Numbers, ends and records: who uses them. Each is removed with its last user.

use super::values::{EndOf, EndValue};
use super::{allocated, NONE, NO_NUMBER, NO_RECORD};
use super::{scattered, Awaited, Flows, Number, Over, Pending, Record, What};
use crate::queue::after::{OnDead, Outcome, Verdict};
use crate::queue::job::{GroupNumber, Handle};
use crate::queue::state::store::Store;
use crate::storage::broken::{must, there};
use std::collections::HashMap;
use std::mem;

/// How many users links and ends would lose, before anything is changed.
#[derive(Default)]
pub struct Released {
    awaited: Lost,
    overs: Lost,
    values: Lost,
}

#[derive(Default)]
struct Lost(HashMap<Number, u32>);

impl Lost {
    /// Counts one more; returns how many there are.
    fn lose(&mut self, number: Number) -> u32 {
        let lost = self.0.entry(number).or_default();
        *lost += 1;
        *lost
    }
}

impl Flows {
    pub fn add_over(&mut self, end: EndOf<'_>) -> Number {
        let over = Over {
            id: end.id.into(),
            outcome: end.outcome,
            at: end.at,
            value: (end.value).map_or(NONE, |value| self.values.acquire(&value)),
            users: 0,
        };
        self.heap_bytes += allocated(over.id.len());
        self.overs.insert(over)
    }

    pub(super) fn use_over(&mut self, number: Number) {
        there(self.overs.get_mut(number), NO_NUMBER).users += 1;
    }

    pub(super) fn drop_over(&mut self, number: Number) {
        let over = there(self.overs.get_mut(number), NO_NUMBER);
        over.users -= 1;
        if over.users == 0 {
            let over = there(self.overs.remove(number), NO_NUMBER);
            self.heap_bytes -= allocated(over.id.len());
            if over.value != NONE {
                self.values.release(over.value);
            }
        }
    }

    pub(super) fn awaited_mut(&mut self, number: Number) -> &mut Awaited {
        there(self.awaited.get_mut(number), NO_NUMBER)
    }

    pub(super) fn add_awaited(&mut self, what: What, on_dead: OnDead) -> Number {
        let awaited = Awaited {
            what,
            on_dead,
            users: 0,
        };
        let number = self.awaited.insert(awaited);
        match what {
            What::Job(job) => self.of_job.insert(scattered(job), number),
            What::Group(group) => {
                let before = self.of_group.insert(group, number);
                must(before.is_none(), "a group that is awaited twice");
            }
            What::Over(over) => self.use_over(over),
        }
        number
    }

    /// Adds a link to a job; returns its number.
    pub fn link_to_job(&mut self, job: Handle, on_dead: OnDead) -> Number {
        let latest = self.awaited.get(self.latest);
        let is_it = |it: &Awaited| it.what == What::Job(job) && it.on_dead == on_dead;
        let known = match latest.is_some_and(is_it) {
            true => Some(self.latest),
            false => self.number_of(job, on_dead),
        };
        let number = known.unwrap_or_else(|| self.add_awaited(What::Job(job), on_dead));
        self.latest = number;
        self.awaited_mut(number).users += 1;
        number
    }

    /// Adds a link to an end; returns its number.
    pub fn link_to_over(&mut self, over: Number, on_dead: OnDead) -> Number {
        let number = self.add_awaited(What::Over(over), on_dead);
        self.awaited_mut(number).users += 1;
        number
    }

    /// Takes one user off. With the last one, returns the group that the number was a user of, if any.
    #[must_use]
    pub(super) fn release(&mut self, number: Number) -> Option<GroupNumber> {
        let awaited = self.awaited_mut(number);
        awaited.users -= 1;
        if awaited.users > 0 {
            return None;
        }
        let awaited = there(self.awaited.remove(number), NO_NUMBER);
        match awaited.what {
            What::Job(job) => {
                // It is unknown already if all blocked jobs were purged.
                self.of_job.remove(scattered(job), number);
                None
            }
            What::Group(group) => {
                if self.of_group.get(&group) == Some(&number) {
                    self.of_group.remove(&group);
                }
                Some(group)
            }
            What::Over(over) => {
                self.drop_over(over);
                None
            }
        }
    }

    /// Bytes of the values that would be freed with a job, after those that `released` counts.
    pub(in crate::queue) fn values_freed(&self, waiter: Handle, released: &mut Released) -> u64 {
        let record = self.record(waiter);
        let links = record.iter().flat_map(|record| record.links.get());
        let mut freed = 0;
        for &number in links {
            let awaited = self.awaited(number);
            let What::Over(over) = awaited.what else {
                continue;
            };
            if released.awaited.lose(number) < awaited.users {
                continue;
            }
            let Over { users, value, .. } = *self.over(over);
            if released.overs.lose(over) < users || value == NONE {
                continue;
            }
            if released.values.lose(value) == self.values.users(value) {
                freed += self.values.get(value).len() as u64;
            }
        }
        freed
    }

    /// Bytes of the values that come with new links to these ends, once those that `released` counts are gone.
    pub fn values_coming<'a>(
        &self,
        ends: impl Iterator<Item = EndOf<'a>>,
        released: &Released,
    ) -> u64 {
        let comes = |value: &EndValue<'_>| {
            let known = self.values.find(value);
            known.is_none_or(|it| released.values.0.get(&it) == Some(&self.values.users(it)))
        };
        let all = ends.filter_map(|end| end.value);
        all.filter(comes).map(|value| value.len()).sum()
    }

    pub fn add_record(&mut self, record: Record) {
        let waiter = record.waiter;
        self.heap_bytes += record.links.heap_bytes();
        let number = self.records.insert(record);
        self.waiters.insert(scattered(waiter), number);
    }

    pub(super) fn take_record(&mut self, waiter: Handle) -> Option<Record> {
        let number = self.record_number(waiter)?;
        self.waiters.remove(scattered(waiter), number);
        let record = there(self.records.remove(number), NO_RECORD);
        self.heap_bytes -= record.links.heap_bytes();
        Some(record)
    }

    pub fn join(&mut self, number: Number, waiter: Handle, jobs: &Store) {
        self.edges
            .insert(number, waiter, |handle| jobs.job(handle).seq());
    }

    /// Removes an edge. Whether the link was still open for this waiter.
    pub fn part(&mut self, number: Number, waiter: Handle, jobs: &Store) -> bool {
        self.edges
            .remove(number, waiter, |handle| jobs.job(handle).seq())
    }

    pub(super) fn is_open(&self, number: Number, waiter: Handle, jobs: &Store) -> bool {
        self.edges
            .contains(number, waiter, |handle| jobs.job(handle).seq())
    }

    /// Takes off a job's numbers, which another one is to have.
    pub fn lift(&mut self, job: Handle) -> [Number; 3] {
        let numbers = self.numbers_of(job);
        for number in numbers.into_iter().filter(|&it| it != NONE) {
            self.of_job.remove(scattered(job), number);
        }
        numbers
    }

    pub fn give(&mut self, numbers: [Number; 3], job: Handle) {
        for number in numbers.into_iter().filter(|&it| it != NONE) {
            self.awaited_mut(number).what = What::Job(job);
            self.of_job.insert(scattered(job), number);
        }
    }

    /// Records the end of a job. Those of its numbers that this concerns become numbers of the end, which enters the
    /// line.
    pub fn end_job(&mut self, job: Handle, end: EndOf<'_>) {
        let outcome = end.outcome.unwrap_or(Outcome::Deleted);
        let mut numbers = self.numbers_of(job);
        for (number, on_dead) in numbers.iter_mut().zip(OnDead::ALL) {
            if on_dead.verdict(outcome) == Verdict::Stays {
                *number = NONE;
            }
        }
        if numbers == [NONE; 3] {
            return;
        }
        for &number in numbers.iter().filter(|&&it| it != NONE) {
            self.of_job.remove(scattered(job), number);
        }
        self.stand_in_line(numbers, end);
    }

    pub fn stand_in_line(&mut self, numbers: [Number; 3], end: EndOf<'_>) {
        let over = self.add_over(end);
        self.use_over(over);
        for number in numbers.into_iter().filter(|&it| it != NONE) {
            let awaited = self.awaited_mut(number);
            awaited.what = What::Over(over);
            awaited.users += 1;
            self.use_over(over);
        }
        self.line.push_back(Pending {
            over,
            numbers,
            rank: u64::MAX,
        });
    }

    /// Moves what is known of a job to its new handle.
    pub fn rename(&mut self, old: Handle, new: Handle, jobs: &Store) {
        let numbers = self.lift(old);
        self.give(numbers, new);
        let Some(mut record) = self.take_record(old) else {
            return;
        };
        record.waiter = new;
        for &number in record.links.get() {
            // Only the new handle has a job; its number in the order of adding is the same.
            let seq = |handle| jobs.job(if handle == old { new } else { handle }).seq();
            if self.edges.remove(number, old, seq) {
                self.edges.insert(number, new, seq);
            }
        }
        self.add_record(record);
    }
    /// Ends the wait of a job, and forgets what it was after. Returns the group that it was a user of, if any.
    #[must_use]
    pub fn drop_record(&mut self, waiter: Handle, jobs: &Store) -> Option<GroupNumber> {
        let record = self.take_record(waiter)?;
        if record.open > 0 {
            for &number in record.links.get() {
                self.part(number, waiter, jobs);
            }
        }
        self.release_all(record.links.get())
    }

    /// As [`Flows::release`], of numbers of which one at most is a group's.
    fn release_all(&mut self, numbers: &[Number]) -> Option<GroupNumber> {
        let mut group = None;
        for &number in numbers {
            let released = self.release(number);
            must(
                group.is_none() || released.is_none(),
                "a job after two groups",
            );
            group = group.or(released);
        }
        group
    }

    /// Ends the wait of a job for what is still open. Its links stay, for these without an outcome. Returns the group
    /// that it was a user of, if any.
    #[must_use]
    pub fn close_links<'a>(
        &mut self,
        waiter: Handle,
        jobs: &'a Store,
        name_of: impl Fn(GroupNumber) -> &'a [u8],
    ) -> Option<GroupNumber> {
        let mut record = self.take_record(waiter)?;
        let mut left = Vec::new();
        for number in record.links.get_mut() {
            if !self.part(*number, waiter, jobs) {
                continue;
            }
            let id = match self.awaited(*number).what {
                What::Job(job) => jobs.job(job).id(),
                What::Group(group) => name_of(group),
                What::Over(_) => continue,
            };
            let over = self.add_over(EndOf::unknown(id));
            left.push(*number);
            *number = self.link_to_over(over, record.on_dead);
        }
        record.open = 0;
        self.add_record(record);
        self.release_all(&left)
    }

    /// Forgets a job that is about to be removed. Returns the group that it was a user of, if any.
    #[cold]
    #[must_use]
    pub fn gone(&mut self, job: Handle, jobs: &Store) -> Option<GroupNumber> {
        let group = self.drop_record(job, jobs);
        if self.is_awaited(job) {
            // With forged effects alone.
            let end = EndOf {
                outcome: Some(Outcome::Deleted),
                ..EndOf::unknown(jobs.job(job).id())
            };
            self.end_job(job, end);
        }
        group
    }

    /// Acquires the number of a group; also says whether the group has one user more by that.
    pub fn link_to_group(&mut self, group: GroupNumber) -> (Number, bool) {
        let known = self.of_group.get(&group).copied();
        let number = known.unwrap_or_else(|| self.add_awaited(What::Group(group), OnDead::Wait));
        self.awaited_mut(number).users += 1;
        (number, known.is_none())
    }

    /// Removes the first end from the line.
    pub fn leave_line(&mut self) {
        let Some(first) = self.line.pop_front() else {
            return;
        };
        self.drop_over(first.over);
        let numbers = first.numbers.into_iter().filter(|&it| it != NONE);
        let numbers: Vec<Number> = numbers.collect();
        must(self.release_all(&numbers).is_none(), "a group in the line");
    }

    /// Ends all waits. Returns what is left of them, to be freed.
    pub fn end_all(&mut self) -> Flows {
        let left = Flows {
            members: mem::take(&mut self.members),
            edges: mem::take(&mut self.edges),
            of_job: mem::take(&mut self.of_job),
            of_group: mem::take(&mut self.of_group),
            ..Flows::default()
        };
        self.latest = NONE;
        self.emptied.clear();
        self.unsure = None;
        while !self.line.is_empty() {
            self.leave_line();
        }
        left
    }
}

//! Numbers, ends and records: who uses them. Each is removed with its last user.

use super::values::{EndOf, Told};
use super::{allocated, NONE, NO_NUMBER, NO_RECORD};
use super::{scattered, Awaited, Flows, Number, Over, Pending, Record, What};
use crate::queue::after::{OnDead, Outcome, Verdict};
use crate::queue::job::GroupNumber;
use crate::queue::job::Handle;
use crate::queue::state::store::Store;
use crate::queue::state::Queue;
use crate::storage::broken::{must, there};
use std::collections::HashMap;

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
    pub(super) fn add_over(&mut self, end: EndOf<'_>) -> Number {
        let over = Over {
            id: end.id.into(),
            outcome: end.outcome,
            at: end.at,
            value: (end.value).map_or(NONE, |told| self.values.acquire(&told)),
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
    pub(super) fn link_to_job(&mut self, job: Handle, on_dead: OnDead) -> Number {
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
    pub(super) fn link_to_over(&mut self, over: Number, on_dead: OnDead) -> Number {
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
    pub(super) fn values_coming<'a>(
        &self,
        ends: impl Iterator<Item = EndOf<'a>>,
        released: &Released,
    ) -> u64 {
        let comes = |told: &Told<'_>| {
            let known = self.values.find(told);
            known.is_none_or(|it| released.values.0.get(&it) == Some(&self.values.users(it)))
        };
        let all = ends.filter_map(|end| end.value);
        all.filter(comes).map(|told| told.len()).sum()
    }

    pub(super) fn add_record(&mut self, record: Record) {
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

    pub(super) fn join(&mut self, number: Number, waiter: Handle, jobs: &Store) {
        self.edges
            .insert(number, waiter, |handle| jobs.job(handle).seq());
    }

    /// Removes an edge. Whether the link was still open for this waiter.
    pub(super) fn part(&mut self, number: Number, waiter: Handle, jobs: &Store) -> bool {
        self.edges
            .remove(number, waiter, |handle| jobs.job(handle).seq())
    }

    pub(super) fn is_open(&self, number: Number, waiter: Handle, jobs: &Store) -> bool {
        self.edges
            .contains(number, waiter, |handle| jobs.job(handle).seq())
    }

    /// Takes off a job's numbers, which another one is to have.
    fn lift(&mut self, job: Handle) -> [Number; 3] {
        let numbers = self.numbers_of(job);
        for number in numbers.into_iter().filter(|&it| it != NONE) {
            self.of_job.remove(scattered(job), number);
        }
        numbers
    }

    fn give(&mut self, numbers: [Number; 3], job: Handle) {
        for number in numbers.into_iter().filter(|&it| it != NONE) {
            self.awaited_mut(number).what = What::Job(job);
            self.of_job.insert(scattered(job), number);
        }
    }

    /// Records the end of a job. Those of its numbers that this concerns become numbers of the end, which enters the
    /// line.
    pub(super) fn end_job(&mut self, job: Handle, end: EndOf<'_>) {
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

    pub(super) fn stand_in_line(&mut self, numbers: [Number; 3], end: EndOf<'_>) {
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
    fn rename(&mut self, old: Handle, new: Handle, jobs: &Store) {
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
}

impl Queue {
    pub(super) fn flows_mut(&mut self) -> &mut Flows {
        self.flows.get_or_insert_default()
    }

    /// Drops the flows if they hold nothing.
    pub(in crate::queue::state) fn drop_flows(&mut self) {
        self.flows.take_if(|flows| flows.is_bare(&self.jobs));
    }

    pub(super) fn release_number(&mut self, number: Number) {
        let group = self.flows.as_mut().and_then(|flows| flows.release(number));
        if let Some(group) = group {
            self.release_group(group);
        }
    }

    /// Takes off the numbers by which others are after a job that is about to be replaced.
    #[inline]
    pub(in crate::queue::state) fn lift_awaited(&mut self, job: Handle) -> Option<[Number; 3]> {
        self.flows.as_mut().map(|flows| flows.lift(job))
    }

    /// Gives the numbers of a replaced job to the job in its place.
    #[inline]
    pub(in crate::queue::state) fn give_awaited(
        &mut self,
        numbers: Option<[Number; 3]>,
        job: Handle,
    ) {
        if let (Some(flows), Some(numbers)) = (&mut self.flows, numbers) {
            flows.give(numbers, job);
        }
    }

    /// Forgets what a job was after that is about to be removed.
    #[inline]
    pub(in crate::queue::state) fn leave_flows(&mut self, job: Handle) {
        if self.flows.is_some() {
            self.leave_flows_there(job);
        }
    }

    #[cold]
    fn leave_flows_there(&mut self, job: Handle) {
        self.drop_record(job);
        if let Some(flows) = &mut self.flows {
            if flows.is_awaited(job) {
                // With forged effects alone.
                let end = EndOf {
                    outcome: Some(Outcome::Deleted),
                    ..EndOf::unknown(self.jobs.job(job).id())
                };
                flows.end_job(job, end);
            }
        }
        self.drop_flows();
    }

    /// Ends the wait of a job, and forgets what it was after.
    pub(in crate::queue::state) fn drop_record(&mut self, waiter: Handle) {
        let jobs = &self.jobs;
        let record = self.flows.as_mut().and_then(|flows| {
            let record = flows.take_record(waiter)?;
            if record.open > 0 {
                for &number in record.links.get() {
                    flows.part(number, waiter, jobs);
                }
            }
            Some(record)
        });
        let links = record.iter().flat_map(|record| record.links.get());
        links.for_each(|&number| self.release_number(number));
    }

    /// Ends the wait of a job for what is still open. Its links stay, for these without an outcome.
    pub(super) fn close_links(&mut self, waiter: Handle) {
        let Some(flows) = &mut self.flows else {
            return;
        };
        let Some(mut record) = flows.take_record(waiter) else {
            return;
        };
        let (jobs, groups) = (&self.jobs, self.groups.as_deref());
        let mut left = Vec::new();
        for number in record.links.get_mut() {
            if !flows.part(*number, waiter, jobs) {
                continue;
            }
            let id = match flows.awaited(*number).what {
                What::Job(job) => jobs.job(job).id(),
                What::Group(group) => groups.map_or(&[][..], |groups| groups.name(group)),
                What::Over(_) => continue,
            };
            let over = flows.add_over(EndOf::unknown(id));
            left.push(*number);
            *number = flows.link_to_over(over, record.on_dead);
        }
        record.open = 0;
        flows.add_record(record);
        left.into_iter().for_each(|it| self.release_number(it));
    }

    pub(in crate::queue::state) fn rename_in_flows(&mut self, old: Handle, new: Handle) {
        if let Some(flows) = &mut self.flows {
            flows.rename(old, new, &self.jobs);
        }
    }
}

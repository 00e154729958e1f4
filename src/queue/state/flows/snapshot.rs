//! Flows in a snapshot, behind the rows of all jobs: ends first, those of the line in its order; then for each job
//! what it is after.

use super::values::EndOf;
use super::{Flows, Number, Over, Pending, Record, What, NONE};
use crate::queue::after::{JobResult, Link, Moment, OnDead, Outcome, Waits};
use crate::queue::effect::Effect;
use crate::queue::job::{GroupNumber, Handle};
use crate::queue::state::bounds::CONTRADICTION;
use crate::queue::state::jobs::Jobs;
use crate::queue::state::store::Store;
use crate::storage::broken::there;
use std::collections::HashMap;

impl Flows {
    /// All ends that are still needed, and the number of each in the snapshot. Those of the line come first, in its
    /// order. Of the others one stands for all that tell the same value: their instants do not matter any more.
    fn ends_in_order(&self, jobs: &[Handle], store: &Store) -> (Vec<Number>, HashMap<Number, u64>) {
        let is_kept = |pending: &&Pending| self.first_of(pending, store).is_some();
        let line = self.line.iter().filter(is_kept).map(|pending| pending.over);
        let records = jobs.iter().filter_map(|&job| self.record(job));
        let linked = records.flat_map(|record| record.links.get());
        let linked = linked.filter_map(|&number| match self.awaited(number).what {
            What::Over(over) => Some(over),
            What::Job(_) | What::Group(_) => None,
        });
        let (mut ends, mut numbers, mut alike) = (Vec::new(), HashMap::new(), HashMap::new());
        let mut enter = |over| {
            ends.push(over);
            ends.len() as u64 - 1
        };
        let kind = |over| {
            let Over { value, outcome, .. } = *self.over(over);
            (value != NONE).then_some((value, outcome))
        };
        for over in line {
            let number = enter(over);
            numbers.insert(over, number);
            kind(over).map(|kind| *alike.entry(kind).or_insert(number));
        }
        for over in linked {
            numbers.entry(over).or_insert_with(|| match kind(over) {
                Some(kind) => *alike.entry(kind).or_insert_with(|| enter(over)),
                None => enter(over),
            });
        }
        (ends, numbers)
    }

    /// Hands out what a snapshot says of self.
    pub fn snapshot<'a>(
        &self,
        jobs: &'a Jobs,
        name_of: impl Fn(GroupNumber) -> &'a [u8],
        push: &mut dyn FnMut(&Effect<'_>),
    ) {
        // Nothing is written of jobs that were purged.
        let waiters = jobs.in_order().filter(|&job| self.record(job).is_some());
        let waiters: Vec<Handle> = waiters.collect();
        let (ends, numbers) = self.ends_in_order(&waiters, jobs);
        for over in ends {
            let over = self.over(over);
            push(&Effect::End {
                id: &over.id,
                outcome: over.outcome,
                at: over.at,
                value: self.value_of(over),
            });
        }
        for job in waiters {
            let record = there(self.record(job), super::NO_RECORD);
            let number_of = |over: Number| numbers.get(&over).copied().unwrap_or(0);
            let links = self.links_of(record, number_of, jobs, &name_of);
            push(&Effect::Links {
                id: jobs.job(job).id(),
                on_dead: record.on_dead,
                is_timed: record.is_timed(),
                of_group: record.is_of_group(),
                latest: record.latest(),
                links,
            });
        }
    }

    fn links_of<'a>(
        &self,
        record: &Record,
        number_of: impl Fn(Number) -> u64,
        jobs: &'a Jobs,
        name_of: impl Fn(GroupNumber) -> &'a [u8],
    ) -> Vec<Link<'a>> {
        let link = |&number: &Number| match self.awaited(number).what {
            What::Job(job) => Link::Held(jobs.job(job).id()),
            What::Group(group) => Link::Group(name_of(group)),
            What::Over(over) if record.open > 0 && self.is_open(number, record.waiter, jobs) => {
                Link::Pending(number_of(over))
            }
            What::Over(over) => Link::Over(number_of(over)),
        };
        record.links.get().iter().map(link).collect()
    }

    /// Hands out what a digest says of flows: of each job only what it is after, and how that ended.
    pub fn digest<'a>(
        &self,
        jobs: &'a Jobs,
        name_of: impl Fn(GroupNumber) -> &'a [u8],
        push: &mut dyn FnMut(&Effect<'_>),
    ) {
        let mut ends = Vec::new();
        self.snapshot(jobs, name_of, &mut |effect| {
            let Effect::Links { ref links, .. } = *effect else {
                if let Effect::End {
                    id,
                    outcome,
                    at,
                    value,
                } = *effect
                {
                    ends.push((id.to_vec(), outcome, at, value.map(<[u8]>::to_vec)));
                }
                return;
            };
            push(effect);
            for link in links {
                let (number, is_pending) = match *link {
                    Link::Over(number) => (number, false),
                    Link::Pending(number) => (number, true),
                    Link::Held(_) | Link::Group(_) => continue,
                };
                let (id, outcome, at, value) = &ends[number as usize];
                push(&Effect::End {
                    id,
                    outcome: *outcome,
                    at: if is_pending { *at } else { Moment::default() },
                    value: value.as_deref(),
                });
            }
        });
    }

    /// Restores an end: see [`Restoring`](super::Restoring).
    pub fn restore_end(&mut self, end: EndOf<'_>) {
        let over = self.add_over(end);
        self.use_over(over);
        let restoring = self.restoring.get_or_insert_default();
        restoring.ends.push((over, [NONE; 3]));
        restoring.resolved.push([NONE; 3]);
    }

    /// Restores what a job is after, with numbers that have this as their user already.
    pub fn restore_record(
        &mut self,
        waiter: Handle,
        (on_dead, flags, latest): (OnDead, u8, Moment),
        links: impl Iterator<Item = (Number, bool)>,
        jobs: &Store,
    ) {
        let (mut numbers, mut open) = (Vec::new(), 0);
        for (number, is_open) in links {
            if is_open {
                self.join(number, waiter, jobs);
                open += 1;
            }
            numbers.push(number);
        }
        let mut record = Record {
            links: numbers.into(),
            latest: 0,
            waiter,
            open,
            on_dead,
            flags,
        };
        record.note_end(latest);
        self.add_record(record);
        self.check_later();
    }

    /// How the end with this number in the snapshot ended; the outer `None` if there is none.
    pub fn restoring_outcome(&self, number: u64) -> Option<Option<Outcome>> {
        let restoring = self.restoring.as_ref()?;
        let (over, _) = *restoring.ends.get(usize::try_from(number).ok()?)?;
        Some(self.over(over).outcome)
    }

    pub fn link_to_kept(&mut self, end: usize, on_dead: OnDead, is_pending: bool) -> Number {
        let at = on_dead as usize;
        let restoring = there(self.restoring.as_mut(), CONTRADICTION);
        let (over, in_line) = restoring.ends[end];
        let known = match is_pending {
            true => in_line[at],
            false => restoring.resolved[end][at],
        };
        if known != NONE {
            self.awaited_mut(known).users += 1;
            return known;
        }
        let number = self.link_to_over(over, on_dead);
        let restoring = there(self.restoring.as_mut(), CONTRADICTION);
        if !is_pending {
            restoring.resolved[end][at] = number;
            return number;
        }
        restoring.ends[end].1[at] = number;
        let numbers = restoring.ends[end].1;
        self.awaited_mut(number).users += 1;
        self.stand_at(end as u64, over, numbers);
        number
    }

    /// Puts an end into the line, in the order in which the ends came.
    fn stand_at(&mut self, rank: u64, over: Number, numbers: [Number; 3]) {
        let at = self.line.partition_point(|pending| pending.rank < rank);
        match self.line.get_mut(at).filter(|it| it.rank == rank) {
            Some(pending) => pending.numbers = numbers,
            None => {
                self.use_over(over);
                let pending = Pending {
                    over,
                    numbers,
                    rank,
                };
                self.line.insert(at, pending);
            }
        }
    }

    /// Called when all of a snapshot has come.
    pub fn end_restoring(&mut self) {
        let Some(restoring) = self.restoring.take() else {
            return;
        };
        for (over, _) in restoring.ends {
            self.drop_over(over);
        }
        // Ends that come from now on stand behind them.
        self.line.iter_mut().for_each(|it| it.rank = 0);
    }
    /// What a job is after, or was.
    pub fn waits_of<'a>(
        &'a self,
        job: Handle,
        jobs: &'a Jobs,
        name_of: impl Fn(GroupNumber) -> &'a [u8] + 'a,
    ) -> Option<Waits<'a>> {
        let record = self.record(job)?;
        let mut waits = Waits {
            after: Vec::new(),
            group: None,
            on_dead: record.on_dead,
            results: Vec::new(),
        };
        let open = record.links.get().iter().filter(|_| jobs.is_blocked(job));
        for &number in open.filter(|&&number| self.is_open(number, job, jobs)) {
            let id = self.id_of(number, jobs, &name_of);
            match record.is_of_group() {
                true => waits.group = Some(id),
                false => waits.after.push(id),
            }
        }
        waits.results = self.results_of(job, jobs, name_of).collect();
        Some(waits)
    }

    fn id_of<'a>(
        &'a self,
        number: Number,
        jobs: &'a Jobs,
        name_of: impl Fn(GroupNumber) -> &'a [u8],
    ) -> &'a [u8] {
        match self.awaited(number).what {
            What::Job(job) => jobs.job(job).id(),
            What::Group(group) => name_of(group),
            What::Over(over) => &self.over(over).id,
        }
    }

    /// How the jobs that this one was after ended, in the order of its AFTER.
    pub fn results_of<'a>(
        &'a self,
        job: Handle,
        jobs: &'a Jobs,
        name_of: impl Fn(GroupNumber) -> &'a [u8] + 'a,
    ) -> impl Iterator<Item = JobResult<'a>> {
        let record = self.record(job).filter(|record| !record.is_of_group());
        let links = record.map_or(&[][..], |record| record.links.get());
        links.iter().map(move |&number| {
            let over = match self.awaited(number).what {
                What::Over(over) => Some(self.over(over)),
                What::Job(_) | What::Group(_) => None,
            };
            JobResult {
                id: self.id_of(number, jobs, &name_of),
                outcome: over.and_then(|over| over.outcome),
                value: over.and_then(|over| self.value_of(over)),
            }
        })
    }
}

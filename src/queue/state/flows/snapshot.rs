//! Flows in a snapshot, behind the rows of all jobs: ends first, those of the line in its order; then for each job
//! what it is after.

use super::values::{EndOf, Told};
use super::{Flows, Number, Over, Pending, Record, What, NONE, OF_GROUP, TIMED};
use crate::queue::after::{Ended, Link, Moment, OnDead, Outcome, Verdict, Waits, AFTER_MAX};
use crate::queue::effect::Effect;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place};
use crate::queue::state::bounds::{check_id, check_instant, malformed, CONTRADICTION};
use crate::queue::state::store::Store;
use crate::queue::state::Queue;
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
}

impl Queue {
    /// Hands out what a snapshot says of flows.
    pub(in crate::queue::state) fn snapshot_flows(&self, push: &mut dyn FnMut(&Effect<'_>)) {
        let Some(flows) = &self.flows else {
            return;
        };
        // Nothing is written of jobs that were purged.
        let jobs: Vec<Handle> = self
            .jobs
            .in_order()
            .filter(|&job| flows.record(job).is_some())
            .collect();
        let (ends, numbers) = flows.ends_in_order(&jobs, &self.jobs);
        for over in ends {
            let over = flows.over(over);
            push(&Effect::End {
                id: &over.id,
                outcome: over.outcome,
                at: over.at,
                value: flows.value_of(over),
            });
        }
        for job in jobs {
            let record = there(flows.record(job), super::NO_RECORD);
            let number_of = |over: Number| numbers.get(&over).copied().unwrap_or(0);
            let links = self.links_of_record(record, number_of);
            push(&Effect::Links {
                id: self.jobs.job(job).id(),
                on_dead: record.on_dead,
                is_timed: record.is_timed(),
                of_group: record.is_of_group(),
                latest: record.latest(),
                links,
            });
        }
    }

    fn links_of_record(&self, record: &Record, number_of: impl Fn(Number) -> u64) -> Vec<Link<'_>> {
        let (Some(flows), jobs) = (&self.flows, &self.jobs) else {
            return Vec::new();
        };
        let link = |&number: &Number| match flows.awaited(number).what {
            What::Job(job) => Link::Held(jobs.job(job).id()),
            What::Group(group) => {
                let groups = self.groups.as_deref();
                Link::Group(groups.map_or(&[][..], |groups| groups.name(group)))
            }
            What::Over(over) if record.open > 0 && flows.is_open(number, record.waiter, jobs) => {
                Link::Pending(number_of(over))
            }
            What::Over(over) => Link::Over(number_of(over)),
        };
        record.links.get().iter().map(link).collect()
    }

    /// Hands out what a digest says of flows: of each job only what it is after, and how that ended.
    pub(in crate::queue::state) fn digest_flows(&self, push: &mut dyn FnMut(&Effect<'_>)) {
        let mut ends = Vec::new();
        self.snapshot_flows(&mut |effect| {
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

    pub(in crate::queue::state) fn restore_end(
        &mut self,
        id: &[u8],
        outcome: Option<Outcome>,
        at: Moment,
        value: Option<&[u8]>,
    ) -> Result<(), QueueError> {
        check_id(id)?;
        check_instant(at.ms)?;
        let value = value.map(|value| Told::of(id, value, &**self.jobs.hasher()));
        let flows = self.flows_mut();
        let over = flows.add_over(EndOf {
            id,
            outcome,
            at,
            value,
        });
        flows.use_over(over);
        let restoring = flows.restoring.get_or_insert_default();
        restoring.ends.push((over, [NONE; 3]));
        restoring.resolved.push([NONE; 3]);
        Ok(())
    }

    pub(in crate::queue::state) fn restore_links(
        &mut self,
        id: &[u8],
        on_dead: OnDead,
        (is_timed, of_group, latest): (bool, bool, Moment),
        links: &[Link<'_>],
    ) -> Result<(), QueueError> {
        check_instant(latest.ms)?;
        let waiter = self.expect(id)?;
        let open = self.check_links(waiter, on_dead, links)?;
        let fits = match links {
            [Link::Group(_)] => of_group,
            [Link::Pending(_)] => true,
            _ => !of_group,
        };
        if !fits {
            return Err(malformed(CONTRADICTION));
        }
        let mut numbers = Vec::with_capacity(links.len());
        for link in links {
            let number = self.restore_link(link, on_dead);
            let is_open = !matches!(link, Link::Over(_));
            let flows = self.flows.get_or_insert_default();
            if is_open {
                flows.join(number, waiter, &self.jobs);
            }
            numbers.push(number);
        }
        let mut record = Record {
            links: numbers.into(),
            latest: 0,
            waiter,
            open: open as u16,
            on_dead,
            flags: if is_timed { TIMED } else { 0 } | if of_group { OF_GROUP } else { 0 },
        };
        record.note_end(latest);
        self.flows_mut().add_record(record);
        self.check_flows_later();
        Ok(())
    }

    /// Whether a job may have these links; returns how many of them are open.
    fn check_links(
        &self,
        waiter: Handle,
        on_dead: OnDead,
        links: &[Link<'_>],
    ) -> Result<usize, QueueError> {
        let contradiction = || malformed(CONTRADICTION);
        let flows = self.flows.as_ref();
        let known = flows.and_then(|flows| flows.record(waiter)).is_some();
        let job = self.jobs.job(waiter);
        if known || !(1..=AFTER_MAX).contains(&links.len()) || job.recurring().is_some() {
            return Err(contradiction());
        }
        let (mut open, mut held) = (0, Vec::new());
        for link in links {
            let is_right = match *link {
                Link::Held(id) => {
                    let handle = self.expect(id)?;
                    held.push(handle);
                    handle != waiter && self.may_be_after(handle, on_dead)
                }
                Link::Group(name) => {
                    links.len() == 1
                        && on_dead == OnDead::Wait
                        && self.may_be_after_group(waiter, name)
                }
                Link::Pending(number) => self
                    .restoring_end(number)
                    .and_then(|end| there(flows, CONTRADICTION).over(end).outcome)
                    .is_some_and(|outcome| on_dead.verdict(outcome) != Verdict::Stays),
                Link::Over(number) => self.restoring_end(number).is_some(),
            };
            if !is_right {
                return Err(contradiction());
            }
            open += usize::from(!matches!(link, Link::Over(_)));
        }
        held.sort_unstable();
        let is_blocked = job.place() == Place::Blocked;
        if held.windows(2).any(|two| two[0] == two[1]) || is_blocked != (open > 0) {
            return Err(contradiction());
        }
        Ok(open)
    }

    /// Whether a job can be waited for: not if its end counts already, nor if it recurs.
    fn may_be_after(&self, handle: Handle, on_dead: OnDead) -> bool {
        let job = self.jobs.job(handle);
        let is_over = job.place() == Place::Dead && on_dead != OnDead::Wait;
        !is_over && job.recurring().is_none()
    }

    fn may_be_after_group(&self, waiter: Handle, name: &[u8]) -> bool {
        let groups = self.groups.as_ref();
        let group = groups.and_then(|it| it.held_by(name, &self.jobs));
        group.is_some() && self.group_of(waiter) != Some(name)
    }

    /// The end that has this number in the snapshot.
    fn restoring_end(&self, number: u64) -> Option<Number> {
        let restoring = self.flows.as_ref()?.restoring.as_ref()?;
        Some(restoring.ends.get(usize::try_from(number).ok()?)?.0)
    }

    /// The number of a link that was checked, with one user more.
    fn restore_link(&mut self, link: &Link<'_>, on_dead: OnDead) -> Number {
        match *link {
            Link::Held(id) => {
                let handle = there(self.jobs.find(self.jobs.hashed(id)), CONTRADICTION);
                self.flows_mut().link_to_job(handle, on_dead)
            }
            Link::Group(name) => {
                let groups = there(self.groups.as_ref(), CONTRADICTION);
                let group = there(groups.held_by(name, &self.jobs), CONTRADICTION).0;
                let known = self.flows_mut().of_group.get(&group).copied();
                let number = known.unwrap_or_else(|| {
                    self.use_group(group);
                    self.flows_mut()
                        .add_awaited(What::Group(group), OnDead::Wait)
                });
                let flows = self.flows_mut();
                flows.awaited_mut(number).users += 1;
                flows.emptied.insert(group, Moment::default());
                number
            }
            Link::Over(end) => self.flows_mut().link_to_kept(end as usize, on_dead, false),
            Link::Pending(end) => self.flows_mut().link_to_kept(end as usize, on_dead, true),
        }
    }
}

impl Flows {
    fn link_to_kept(&mut self, end: usize, on_dead: OnDead, is_pending: bool) -> Number {
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
    fn end_restoring(&mut self) {
        let Some(restoring) = self.restoring.take() else {
            return;
        };
        for (over, _) in restoring.ends {
            self.drop_over(over);
        }
        // Ends that come from now on stand behind them.
        self.line.iter_mut().for_each(|it| it.rank = 0);
    }
}

impl Queue {
    /// The effects that follow are of no snapshot.
    #[inline]
    pub(in crate::queue::state) fn end_restoring_flows(&mut self) {
        if let Some(flows) = &mut self.flows {
            flows.end_restoring();
        }
    }

    /// At the end of a snapshot: whether every blocked job waits for something that can happen.
    pub(in crate::queue::state) fn check_told_flows(&mut self) -> Result<(), QueueError> {
        match self.take_stuck()[..] {
            [] => Ok(()),
            _ => Err(malformed(CONTRADICTION)),
        }
    }

    /// Copies the flows of another queue, whose jobs have other handles.
    pub(in crate::queue::state) fn adopt_flows(&mut self, other: &Queue) {
        let copied = |effect: &Effect<'_>| self.apply(effect);
        let mut result = Ok(());
        let mut copied = copied;
        other.snapshot_flows(&mut |effect| {
            if result.is_ok() {
                result = copied(effect);
            }
        });
        crate::storage::broken::must(result.is_ok(), CONTRADICTION);
        self.end_restoring_flows();
        let is_unchecked = other.flows.as_ref().is_some_and(|it| it.is_unchecked);
        if let Some(flows) = &mut self.flows {
            flows.is_unchecked = is_unchecked;
        }
    }

    /// What a job is after, or was.
    pub(in crate::queue) fn waits_of(&self, job: Handle) -> Option<Waits<'_>> {
        let flows = self.flows.as_ref()?;
        let record = flows.record(job)?;
        let is_blocked = self.jobs.job(job).place() == Place::Blocked;
        let mut waits = Waits {
            after: Vec::new(),
            group: None,
            on_dead: record.on_dead,
            results: self.results_of(job).collect(),
        };
        for &number in record.links.get() {
            if !is_blocked || !flows.is_open(number, job, &self.jobs) {
                continue;
            }
            let id = self.id_of_link(number);
            match record.is_of_group() {
                true => waits.group = Some(id),
                false => waits.after.push(id),
            }
        }
        Some(waits)
    }

    fn id_of_link(&self, number: Number) -> &[u8] {
        let flows = there(self.flows.as_ref(), super::NO_RECORD);
        match flows.awaited(number).what {
            What::Job(job) => self.jobs.job(job).id(),
            What::Group(group) => match &self.groups {
                Some(groups) => groups.name(group),
                None => &[],
            },
            What::Over(over) => &flows.over(over).id,
        }
    }

    /// How the jobs that this one was after ended, in the order of its AFTER.
    pub(in crate::queue) fn results_of(&self, job: Handle) -> impl Iterator<Item = Ended<'_>> {
        let flows = self.flows.as_ref();
        let record = flows.and_then(|flows| flows.record(job));
        let record = record.filter(|record| !record.is_of_group());
        let links = record.map_or(&[][..], |record| record.links.get());
        links.iter().map(move |&number| {
            let over = flows.and_then(|flows| match flows.awaited(number).what {
                What::Over(over) => Some(flows.over(over)),
                What::Job(_) | What::Group(_) => None,
            });
            Ended {
                id: self.id_of_link(number),
                outcome: over.and_then(|over| over.outcome),
                value: over.and_then(|over| flows?.value_of(over)),
            }
        })
    }
}

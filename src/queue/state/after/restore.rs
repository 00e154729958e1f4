//! Putting back what a snapshot says of flows. It may be forged.

use super::super::bounds::{check_group, check_id, check_instant, malformed, CONTRADICTION};
use super::super::flows::{EndOf, EndValue, Number, OF_GROUP, TIMED};
use super::super::jobs::Jobs;
use super::super::parts::Parts;
use super::super::store::Job;
use super::super::Queue;
use crate::queue::after::{Link, Moment, OnDead, Outcome, Verdict, AFTER_MAX};
use crate::queue::effect::Effect;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place};
use crate::queue::settings::GroupLimits;
use crate::storage::broken::{must, there};

impl Parts {
    pub(in crate::queue::state) fn restore_end(
        &mut self,
        jobs: &Jobs,
        id: &[u8],
        outcome: Option<Outcome>,
        at: Moment,
        value: Option<&[u8]>,
    ) -> Result<(), QueueError> {
        check_id(id)?;
        check_instant(at.ms)?;
        let value = value.map(|value| EndValue::of(id, value, &**jobs.hasher()));
        self.flows.get_or_insert_default().restore_end(EndOf {
            id,
            outcome,
            at,
            value,
        });
        Ok(())
    }

    pub(in crate::queue::state) fn restore_links(
        &mut self,
        jobs: &Jobs,
        id: &[u8],
        (on_dead, is_timed, of_group, latest): (OnDead, bool, bool, Moment),
        (links, limits): (&[Link<'_>], &GroupLimits),
    ) -> Result<(), QueueError> {
        check_instant(latest.ms)?;
        let waiter = jobs.expect(id)?;
        self.check_links(jobs, waiter, on_dead, links)?;
        let fits = match links {
            [Link::Group(_)] => of_group,
            [Link::Pending(_)] => true,
            _ => !of_group,
        };
        if !fits {
            return Err(malformed(CONTRADICTION));
        }
        let restored = links.iter().map(|link| {
            let is_open = !matches!(link, Link::Over(_));
            (self.restore_link(jobs, (link, limits), on_dead), is_open)
        });
        let restored: Vec<_> = restored.collect();
        let flags = if is_timed { TIMED } else { 0 } | if of_group { OF_GROUP } else { 0 };
        self.flows.get_or_insert_default().restore_record(
            waiter,
            (on_dead, flags, latest),
            restored.into_iter(),
            jobs,
        );
        Ok(())
    }

    /// Whether a job may have these links.
    fn check_links(
        &self,
        jobs: &Jobs,
        waiter: Handle,
        on_dead: OnDead,
        links: &[Link<'_>],
    ) -> Result<(), QueueError> {
        let contradiction = || malformed(CONTRADICTION);
        let flows = self.flows.as_deref();
        let known = flows.and_then(|flows| flows.record(waiter)).is_some();
        let job = jobs.job(waiter);
        if known || !(1..=AFTER_MAX).contains(&links.len()) || job.recurring().is_some() {
            return Err(contradiction());
        }
        let outcome_of = |number| flows.and_then(|flows| flows.restoring_outcome(number));
        let (mut is_open, mut held) = (false, Vec::new());
        for link in links {
            let is_right = match *link {
                Link::Held(id) => {
                    let handle = jobs.expect(id)?;
                    held.push(handle);
                    handle != waiter && may_be_after(jobs.job(handle), on_dead)
                }
                // It may have become empty a moment ago.
                Link::Group(name) => {
                    check_group(name)?;
                    let groups = self.groups.as_deref();
                    let group = groups.and_then(|it| it.named(name, jobs));
                    let is_own = group.is_some() && group == job.group();
                    links.len() == 1 && on_dead == OnDead::Wait && !is_own
                }
                Link::Pending(number) => outcome_of(number)
                    .flatten()
                    .is_some_and(|outcome| on_dead.verdict(outcome) != Verdict::Stays),
                Link::Over(number) => outcome_of(number).is_some(),
            };
            if !is_right {
                return Err(contradiction());
            }
            is_open |= !matches!(link, Link::Over(_));
        }
        held.sort_unstable();
        let is_twice = held.windows(2).any(|two| two[0] == two[1]);
        if is_twice || (job.place() == Place::Blocked) != is_open {
            return Err(contradiction());
        }
        Ok(())
    }

    /// The number of a link that was checked, with one user more.
    fn restore_link(
        &mut self,
        jobs: &Jobs,
        (link, limits): (&Link<'_>, &GroupLimits),
        on_dead: OnDead,
    ) -> Number {
        let flows = self.flows.get_or_insert_default();
        match *link {
            Link::Held(id) => {
                let handle = there(jobs.find(jobs.hashed(id)), CONTRADICTION);
                flows.link_to_job(handle, on_dead)
            }
            Link::Group(name) => self.restore_link_to_group(jobs, name, limits),
            Link::Over(end) => flows.link_to_kept(end as usize, on_dead, false),
            Link::Pending(end) => flows.link_to_kept(end as usize, on_dead, true),
        }
    }

    fn restore_link_to_group(&mut self, jobs: &Jobs, name: &[u8], limits: &GroupLimits) -> Number {
        let group = self.acquire_group(name, None, limits, jobs);
        let flows = self.flows.get_or_insert_default();
        let (number, is_new) = flows.link_to_group(group);
        flows.emptied.insert(group, Moment::default());
        if !is_new {
            self.release_group(jobs, group);
        }
        number
    }

    /// Blocked jobs that wait for nothing that can happen.
    pub(in crate::queue::state) fn take_stuck(&mut self, jobs: &Jobs) -> Vec<Handle> {
        let flows = self.flows.as_mut();
        let stuck = flows.map(|flows| flows.take_stuck(jobs));
        self.drop_flows(jobs);
        stuck.unwrap_or_default()
    }
}

impl Queue {
    /// Unblocks jobs that would stay blocked for ever; true if there were any. Effects that come one after the other,
    /// perhaps forged, can only be checked for this at their end.
    pub fn free_stuck(&mut self) -> bool {
        if !self.parts.flows().is_some_and(|it| it.is_unchecked) {
            return false;
        }
        let stuck = self.parts.take_stuck(&self.jobs);
        for &job in &stuck {
            let due = self.jobs.job(job).due();
            self.parts.set_free(&mut self.jobs, job, due);
        }
        self.parts.drop_flows(&self.jobs);
        !stuck.is_empty()
    }

    /// Copies the flows of another queue, whose jobs have other handles.
    pub(in crate::queue::state) fn adopt_flows(&mut self, other: &Queue) {
        let Some(flows) = other.parts.flows() else {
            return;
        };
        let mut result = Ok(());
        flows.snapshot(
            &other.jobs,
            |it| other.parts.name_of(it),
            &mut |effect: &Effect<'_>| {
                if result.is_ok() {
                    result = self.apply(effect);
                }
            },
        );
        must(result.is_ok(), CONTRADICTION);
        if let Some(own) = &mut self.parts.flows {
            own.end_restoring();
            own.is_unchecked = flows.is_unchecked;
        }
    }
}

/// Whether a job can be waited for: not if its end counts already, nor if it recurs.
fn may_be_after(job: Job<'_>, on_dead: OnDead) -> bool {
    let is_over = job.place() == Place::Dead && on_dead != OnDead::Wait;
    !is_over && job.recurring().is_none()
}

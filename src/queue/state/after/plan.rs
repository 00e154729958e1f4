//! Looking up what a job is to be after, and whether it would wait for itself.

use super::super::done::Done;
use super::super::flows::{Flows, What};
use super::super::groups::Groups;
use super::super::jobs::Jobs;
use super::super::parts::Parts;
use crate::queue::after::{For, OnDead, AFTER_MAX, BEFORE_MAX};
use crate::queue::error::QueueError;
use crate::queue::job::{GroupNumber, Handle, Place};
use crate::storage::few::Few;
use std::collections::HashSet;

/// What an id of AFTER names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::queue) enum Before {
    Held(Handle),
    /// A job that is done, and kept.
    Done(u32),
}

/// What AFTER means at this instant.
pub(in crate::queue) enum Plan {
    /// The jobs that it names, including done ones, and dead ones that count as ended.
    Jobs {
        jobs: Few<Before>,
        on_dead: OnDead,
        /// How many of them have not ended.
        open: usize,
        /// The first dead job of which the waiting job dies at once.
        dies_of: Option<Handle>,
    },
    /// The group that it names, if that holds a job.
    Group(Option<GroupNumber>),
}

impl Plan {
    /// Whether the job dies at once.
    pub(in crate::queue) fn dies(&self) -> bool {
        matches!(
            self,
            Plan::Jobs {
                dies_of: Some(_),
                ..
            }
        )
    }

    /// Whether the job is to wait.
    pub(in crate::queue) fn waits(&self) -> bool {
        match self {
            Plan::Jobs { open, dies_of, .. } => *open > 0 && dies_of.is_none(),
            Plan::Group(group) => group.is_some(),
        }
    }
}

/// The job that is to wait: what has its id now, and the group that it will have.
pub(in crate::queue) struct Waiter<'a> {
    pub id: &'a [u8],
    pub there: Option<Handle>,
    pub group: Option<&'a [u8]>,
}

impl Parts {
    /// Looks up what AFTER names; an error if the job cannot wait for it.
    pub(in crate::queue) fn plan_after(
        &self,
        jobs: &Jobs,
        waiter: &Waiter<'_>,
        until: &For<'_>,
    ) -> Result<Plan, QueueError> {
        Names {
            jobs,
            done: self.done.if_made(),
            groups: self.groups(),
            flows: self.flows(),
        }
        .plan(waiter, until)
    }
}

/// All that an AFTER may name.
struct Names<'q> {
    jobs: &'q Jobs,
    done: Option<&'q Done>,
    groups: Option<&'q Groups>,
    flows: Option<&'q Flows>,
}

impl Names<'_> {
    fn plan(&self, waiter: &Waiter<'_>, until: &For<'_>) -> Result<Plan, QueueError> {
        let plan = match until {
            For::Jobs(ids, on_dead) => self.plan_jobs(waiter, ids, *on_dead)?,
            For::Group(name) => {
                if waiter.group == Some(*name) {
                    return Err(QueueError::AfterItself);
                }
                Plan::Group(self.group_with_jobs(name, waiter.there))
            }
        };
        if plan.waits() {
            self.check_circle(waiter, &plan)?;
        }
        Ok(plan)
    }

    fn plan_jobs(
        &self,
        waiter: &Waiter<'_>,
        ids: &Few<&serde_bytes::Bytes>,
        on_dead: OnDead,
    ) -> Result<Plan, QueueError> {
        if !(1..=AFTER_MAX).contains(&ids.get().len()) {
            return Err(QueueError::OutOfRange);
        }
        if ids.get().iter().any(|id| ***id == *waiter.id) {
            return Err(QueueError::AfterItself);
        }
        let (mut open, mut dies_of) = (0, None);
        let mut before = |id: &[u8]| {
            let found = self.latest_awaited(id);
            let Some(handle) = found.or_else(|| self.jobs.find(self.jobs.hashed(id))) else {
                let done = self.done.and_then(|it| it.find(self.jobs.hashed(id)));
                return Ok(Before::Done(done.ok_or(QueueError::AfterUnknown)?));
            };
            let job = self.jobs.job(handle);
            if job.recurring().is_some() {
                return Err(QueueError::AfterRule);
            }
            match (job.place(), on_dead) {
                (Place::Dead, OnDead::Run) => {}
                (Place::Dead, OnDead::Die) => dies_of = dies_of.or(Some(handle)),
                _ => open += 1,
            }
            Ok(Before::Held(handle))
        };
        let jobs = match ids {
            Few::One(one) => Few::One(before(one)?),
            Few::Many(many) => {
                let all = many.iter().map(|id| before(id));
                let jobs = all.collect::<Result<Vec<_>, _>>()?;
                let mut distinct = jobs.clone();
                distinct.sort_unstable();
                if distinct.windows(2).any(|two| two[0] == two[1]) {
                    return Err(QueueError::AfterTwice);
                }
                Few::from(jobs)
            }
        };
        Ok(Plan::Jobs {
            jobs,
            on_dead,
            open,
            dies_of,
        })
    }

    /// The job that was awaited last, if it has this id. None while there are purged jobs: these have lost their ids.
    #[inline]
    fn latest_awaited(&self, id: &[u8]) -> Option<Handle> {
        let flows = self.flows.filter(|_| !self.jobs.has_purged())?;
        let What::Job(job) = flows.awaited.get(flows.latest)?.what else {
            return None;
        };
        let is_it = self.jobs.job(job).id() == id;
        debug_assert!(!is_it || self.jobs.find(self.jobs.hashed(id)) == Some(job));
        is_it.then_some(job)
    }

    /// The group of this name, unless it holds no other job than the one that is about to be replaced.
    fn group_with_jobs(&self, name: &[u8], but: Option<Handle>) -> Option<GroupNumber> {
        let groups = self.groups?;
        let (number, held) = groups.held_by(name, self.jobs)?;
        let is_of_it = |handle: &Handle| {
            let job = self.jobs.job(*handle);
            let lives = matches!(
                job.place(),
                Place::Scheduled | Place::Reserved | Place::Blocked
            );
            lives && job.group() == Some(number)
        };
        let going = usize::from(but.filter(is_of_it).is_some());
        (held > going).then_some(number)
    }

    /// An error if what the job is to wait for waits for the job. A job that no other waits for closes no circle.
    fn check_circle(&self, waiter: &Waiter<'_>, plan: &Plan) -> Result<(), QueueError> {
        let Some(flows) = self.flows else {
            return Ok(());
        };
        let named = waiter.group.zip(self.groups);
        let group = named.and_then(|(name, groups)| groups.held_by(name, self.jobs));
        let group = group.map(|(number, _)| number);
        let is_awaited = waiter.there.is_some_and(|job| flows.is_awaited(job))
            || group.is_some_and(|group| flows.of_group.contains_key(&group));
        if !is_awaited {
            return Ok(());
        }
        let mut search = Search {
            jobs: self.jobs,
            flows,
            target: waiter.there,
            group,
            seen: HashSet::new(),
            seen_groups: HashSet::new(),
            left: Vec::new(),
        };
        match plan {
            Plan::Jobs { jobs, .. } => jobs.get().iter().try_for_each(|job| match *job {
                Before::Held(job) => search.see(job),
                Before::Done(_) => Ok(()),
            })?,
            Plan::Group(group) => group
                .iter()
                .try_for_each(|&group| search.see_group(group))?,
        }
        search.go_on()
    }
}

struct Search<'a> {
    jobs: &'a Jobs,
    flows: &'a Flows,
    /// The job that has the id of the job that is to wait.
    target: Option<Handle>,
    /// The group of that job.
    group: Option<GroupNumber>,
    seen: HashSet<Handle>,
    seen_groups: HashSet<GroupNumber>,
    left: Vec<Handle>,
}

impl Search<'_> {
    fn go_on(&mut self) -> Result<(), QueueError> {
        while let Some(job) = self.left.pop() {
            let Some(record) = self.flows.record(job) else {
                continue;
            };
            for &number in record.links.get() {
                match self.flows.awaited(number).what {
                    What::Job(before) => self.see(before)?,
                    What::Group(group) => self.see_group(group)?,
                    What::Over(_) => {}
                }
            }
        }
        Ok(())
    }

    fn see(&mut self, job: Handle) -> Result<(), QueueError> {
        if Some(job) == self.target {
            return Err(QueueError::AfterItself);
        }
        if self.jobs.is_blocked(job) && self.seen.insert(job) {
            if self.seen.len() > BEFORE_MAX {
                return Err(QueueError::AfterTooMuch);
            }
            self.left.push(job);
        }
        Ok(())
    }

    fn see_group(&mut self, group: GroupNumber) -> Result<(), QueueError> {
        if Some(group) == self.group {
            return Err(QueueError::AfterItself);
        }
        if !self.seen_groups.insert(group) {
            return Ok(());
        }
        let flows = self.flows;
        for job in flows.members_of(group) {
            // The job that is replaced leaves the group.
            if Some(job) != self.target {
                self.see(job)?;
            }
        }
        Ok(())
    }
}

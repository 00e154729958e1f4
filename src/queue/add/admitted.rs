//! Whether DQ.ADD's condition and the queue's limits admit a job, and as what.

use super::{is_full, Add, Condition};
use crate::queue::clock::Now;
use crate::queue::effects::Effects;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place};
use crate::queue::recurring::rule::Next;
use crate::queue::settings::Settings;
use crate::queue::state::after::{Plan, Waiter};
use crate::queue::state::groups::Sought;
use crate::queue::state::jobs::Jobs;
use crate::queue::state::parts::Parts;
use crate::queue::state::store::Id;
use crate::queue::Queue;

/// How a job that the condition admits is added. Handles are of the existing job with its id.
pub(super) enum Admitted {
    New,
    Replaces(Handle),
    /// It becomes the successor of a reserved job.
    Behind(Handle),
    /// Its rule has the pattern of the existing one, whose current occurrence stays.
    Renews(Handle),
    /// It is after others, perhaps in the place of an existing job.
    After(Option<Handle>, Plan),
}

impl Admitted {
    /// The job that is gone then.
    #[inline]
    fn replaced(&self) -> Option<Handle> {
        match *self {
            Admitted::Replaces(old) | Admitted::Renews(old) => Some(old),
            Admitted::After(old, _) => old,
            Admitted::New | Admitted::Behind(_) => None,
        }
    }

    /// An error if the job would exceed MAXLEN, or that of its group, or the number of jobs that a queue can hold.
    #[inline]
    pub(super) fn check_counts(
        &self,
        group: Option<Sought<'_>>,
        (jobs, parts): (&Jobs, &Parts),
        settings: &Settings,
    ) -> Result<(), QueueError> {
        let replaced = self.replaced();
        let is_one_more = replaced.is_none() && !matches!(self, Admitted::Behind(_));
        let is_dead = |old| jobs.job(old).place() == Place::Dead;
        let limit = settings.max_len;
        if limit != 0
            && (is_one_more || replaced.is_some_and(is_dead))
            && jobs.live_len() as u64 >= limit
        {
            return Err(QueueError::Full);
        }
        if is_full(parts.groups(), group) {
            let number = group.and_then(|it| it.number);
            let is_of_it = |old| !is_dead(old) && jobs.job(old).group() == number;
            if is_one_more || replaced.is_some_and(|old| !is_of_it(old)) {
                return Err(QueueError::GroupFull);
            }
        }
        if replaced.is_none() && !jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        Ok(())
    }

    /// By how many bytes the queue grows with a job of `len`, which may take the place of others.
    pub(super) fn growth(
        &self,
        len: u64,
        group: Option<&[u8]>,
        (jobs, parts): (&Jobs, &Parts),
    ) -> i64 {
        let replaced = self.replaced();
        let old = match *self {
            Admitted::Behind(before) => Some(before),
            _ => replaced,
        };
        let successor = old.and_then(|old| jobs.successor(old));
        let freed = replaced.or(successor);
        let mut freed = freed.map_or(0, |handle| jobs.content_of(handle));
        if let Admitted::Renews(old) = *self {
            // A renewed job keeps its steps.
            freed -= jobs.notes(old).counted();
        }
        let going: Vec<Handle> = replaced.into_iter().chain(successor).collect();
        let names = parts.group_growth(jobs, group, &going);
        let plan = match self {
            Admitted::After(_, plan) => Some(plan),
            _ => None,
        };
        let results = parts.results_growth(jobs, replaced, plan);
        (len as i64 - freed as i64).saturating_add(names + results)
    }
}

impl Parts {
    /// What the job is to wait for. A recurring job cannot replace a job that others are after.
    #[inline]
    fn plan_of(
        &self,
        jobs: &Jobs,
        add: &Add<'_>,
        old: Option<Handle>,
    ) -> Result<Option<Plan>, QueueError> {
        match &add.after {
            Some(until) => {
                let waiter = Waiter {
                    id: add.id.unwrap_or_default(),
                    there: old,
                    group: add.group,
                };
                Ok(Some(self.plan_after(jobs, &waiter, until)?))
            }
            None if add.recur.is_some()
                && old.is_some_and(|old| self.flows().is_some_and(|it| it.is_awaited(old))) =>
            {
                Err(QueueError::AfterRule)
            }
            None => Ok(None),
        }
    }

    /// Whether the condition refuses a job, given where the existing job with its id is. Not asked about a successor.
    #[inline]
    pub(in crate::queue) fn refuses(
        &self,
        jobs: &Jobs,
        condition: Condition,
        id: Option<&[u8]>,
        (place, finds_done): (Option<Place>, bool),
        now: Now,
    ) -> bool {
        match condition {
            Condition::New | Condition::Next => {
                place.is_some_and(|place| place != Place::Dead)
                    || id
                        .and_then(|id| self.remembered_until(jobs, id))
                        .is_some_and(|until| until > now.ms())
            }
            Condition::Existing => place.is_none() && !finds_done,
            Condition::Replace => false,
        }
    }
}

impl Queue {
    /// How a job is added whose id no job has; `None` if the condition refuses it.
    #[inline(always)]
    pub(super) fn admit_new(
        &mut self,
        add: &Add<'_>,
        (id, first): (Option<Id<'_>>, Option<Next>),
        now: Now,
        out: &mut Effects,
    ) -> Result<Option<Admitted>, QueueError> {
        // A done job with the id does not stop NX, and XX finds it.
        let finds_done = id.is_some_and(|id| self.find_done_unexpired(id, now, out).is_some());
        if self
            .parts()
            .refuses(self.jobs(), add.condition, add.id, (None, finds_done), now)
        {
            return Ok(None);
        }
        if first.is_some_and(|first| !add.allows(&first)) {
            return Err(QueueError::UntilIsPast);
        }
        let plan = self.parts().plan_of(self.jobs(), add, None)?;
        Ok(Some(
            plan.map_or(Admitted::New, |plan| Admitted::After(None, plan)),
        ))
    }

    /// As [`Queue::admit_new`], where `old` has the id.
    pub(super) fn admit_over(
        &mut self,
        old: Handle,
        add: &Add<'_>,
        first: Option<Next>,
        now: Now,
    ) -> Result<Option<Admitted>, QueueError> {
        let place = self.jobs().job(old).place();
        let is_renewed = add.renews(old, self.jobs());
        let recurs = self.jobs().recurs(old);
        let follows = add.condition == Condition::Next && place == Place::Reserved && !recurs;
        if !follows
            && self.parts().refuses(
                self.jobs(),
                add.condition,
                add.id,
                (Some(place), false),
                now,
            )
        {
            return Ok(None);
        }
        if first.is_some_and(|first| !is_renewed && !add.allows(&first)) {
            return Err(QueueError::UntilIsPast);
        }
        Ok(Some(
            match self.parts().plan_of(self.jobs(), add, Some(old))? {
                _ if follows => Admitted::Behind(old),
                Some(plan) => Admitted::After(Some(old), plan),
                None if is_renewed => Admitted::Renews(old),
                None => Admitted::Replaces(old),
            },
        ))
    }
}

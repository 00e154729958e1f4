//! Recording what was decided about flows, and carrying it out.

use super::super::flows::{EndOf, EndValue, Fallout, Flows, Stepped, What};
use super::super::jobs::Jobs;
use super::super::parts::Parts;
use super::super::Queue;
use super::{Arriving, Plan};
use crate::queue::after::{AfterThat, JobResult, Moment, OnDead, Outcome, Verdict, Waits};
use crate::queue::clock::Now;
use crate::queue::effect::{Came, Change, Effect, How, Purge};
use crate::queue::effects::Effects;
use crate::queue::event::Event;
use crate::queue::job::{GroupNumber, Handle, REASON_MAX};

impl Queue {
    /// Records a job that is after others.
    pub(in crate::queue) fn commit_added_after(
        &mut self,
        coming: Arriving<'_>,
        old: Option<Handle>,
        (plan, after): (Plan, &AfterThat<'_>),
        now: Now,
        out: &mut Effects,
    ) {
        out.push_made(|| {
            Effect::Came(Came {
                id: coming.id.bytes,
                payload: coming.payload,
                terms: coming.terms.borrowed(),
                group: coming.group,
                how: How::After {
                    due: coming.due,
                    expires: coming.expires,
                    after: after.as_after(),
                },
            })
        });
        self.count_added(old, out);
        out.raise(Event::Add);
        let mut stepped = Stepped::default();
        self.put_after(old, coming, plan, after, &mut stepped);
        self.count_steps(&stepped, now, out);
        out.complete();
    }

    /// Records that a job that was given back is after others.
    pub(in crate::queue) fn commit_waits(
        &mut self,
        handle: Handle,
        (plan, after): (Plan, &AfterThat<'_>),
        now: Now,
        out: &mut Effects,
    ) {
        out.push_made(|| Effect::Waits {
            id: self.jobs.job(handle).id(),
            after: after.as_after(),
        });
        let mut stepped = Stepped::default();
        self.parts
            .wait_again(&mut self.jobs, handle, plan, after, &mut stepped);
        self.count_steps(&stepped, now, out);
        out.complete();
    }

    /// Records how a job that is about to end ends, if that concerns jobs after it.
    pub(in crate::queue) fn commit_over(
        &mut self,
        handle: Handle,
        outcome: Outcome,
        at: Moment,
        value: Option<&[u8]>,
        out: &mut Effects,
    ) {
        let Some(flows) = &self.parts.flows else {
            return;
        };
        let means = |on_dead: &OnDead| on_dead.verdict(outcome) != Verdict::Stays;
        let raised = OnDead::ALL
            .into_iter()
            .filter(means)
            .any(|on_dead| flows.number_of(handle, on_dead).is_some());
        if !raised {
            return;
        }
        let id = self.jobs.job(handle).id().to_vec();
        let id = &id[..];
        out.hold_back();
        self.commit(
            &Effect::Over {
                id,
                outcome: Some(outcome),
                at,
                value,
            },
            out,
        );
    }

    /// Records the KICK of a blocked job.
    pub(in crate::queue) fn commit_unblocked(
        &mut self,
        handle: Handle,
        now: Now,
        out: &mut Effects,
    ) {
        let id = &*self.jobs.job(handle).id().to_vec();
        let change = Change::Unblocked { due: now.ms() };
        self.commit(&Effect::Job { id, change }, out);
        out.raise(Event::Ready);
    }

    /// Checks at most `budget` groups that may be empty, and records those that are; returns how many were checked.
    pub(in crate::queue) fn commit_emptied(
        &mut self,
        budget: usize,
        now: Now,
        out: &mut Effects,
    ) -> usize {
        for checked in 0..budget {
            let flows = self.parts.flows.as_mut();
            let Some((number, at)) = flows.and_then(|it| it.next_emptied()) else {
                return checked;
            };
            // A group that no job waits for any more may be gone.
            if !self.parts.flows().is_some_and(|it| it.awaits_group(number)) {
                continue;
            }
            let groups = self.parts.groups().filter(|groups| groups.is_empty(number));
            let Some(name) = groups.map(|groups| groups.name(number).to_vec()) else {
                continue;
            };
            let at = match at == Moment::default() {
                true => Moment::from(now),
                false => at,
            };
            let (id, outcome, value) = (&*name, None, None);
            self.commit(
                &Effect::Over {
                    id,
                    outcome,
                    at,
                    value,
                },
                out,
            );
        }
        budget
    }

    /// Unblocks jobs that a file or a master has brought and that would stay blocked for ever; returns the work that
    /// this took.
    pub(in crate::queue) fn commit_stuck(&mut self, now: Now, out: &mut Effects) -> usize {
        if !self.parts.flows().is_some_and(|it| it.is_unchecked) {
            return 0;
        }
        let stuck = self.parts.take_stuck(&self.jobs);
        for &job in &stuck {
            self.commit_unblocked(job, now, out);
        }
        1 + stuck.len()
    }

    /// Carries out ends for about so much work; returns the work that it took.
    pub(in crate::queue) fn commit_steps(
        &mut self,
        work: usize,
        now: Now,
        out: &mut Effects,
    ) -> usize {
        let stepped = self
            .parts
            .step_flows(&mut self.jobs, u64::from(u16::MAX), work);
        if stepped.count > 0 {
            let is_ready = stepped.first_due.is_some_and(|due| due <= now.ms());
            out.push(&Effect::Stepped {
                count: stepped.count,
                ready: is_ready,
                dead: stepped.died > 0,
                added: stepped.succeeded > 0,
            });
            self.count_steps(&stepped, now, out);
            out.complete();
        }
        if stepped.died > 0 {
            self.trim_dead(now, stepped.died as usize, out);
        }
        stepped.work.max(1)
    }

    fn count_steps(&mut self, stepped: &Stepped, now: Now, out: &mut Effects) {
        self.count(out, |totals| {
            totals.died += stepped.died;
            totals.added += stepped.succeeded;
            totals.deleted += stepped.succeeded;
            totals.expired += stepped.expired;
        });
        if stepped.first_due.is_some_and(|due| due <= now.ms()) {
            out.raise(Event::Ready);
        }
        if stepped.died > 0 {
            out.raise(Event::Dead);
        }
        if stepped.succeeded > 0 {
            out.raise(Event::SuccessorAdd);
        }
        if stepped.expired > 0 {
            out.raise(Event::Expired);
        }
    }

    /// Records the ends of jobs that a purge or a trim is about to take: in the order of adding, or for a trim of
    /// dying.
    pub(in crate::queue) fn commit_over_of(&mut self, purge: Purge, now: Now, out: &mut Effects) {
        let Some(flows) = &self.parts.flows else {
            return;
        };
        let job_of = |number| match flows.awaited(number).what {
            What::Job(job) => Some(job),
            What::Group(_) | What::Over(_) => None,
        };
        let mut going: Vec<Handle> = match purge {
            // A trim takes few jobs, perhaps while very many are awaited.
            Purge::Trim { count } if count < flows.of_job.len() as u64 => {
                let first = self.jobs.dead().iter().take(count as usize);
                let first = first.map(|(_, handle)| handle);
                first.filter(|&handle| flows.is_awaited(handle)).collect()
            }
            _ => {
                let goes = self.jobs.goes_with(purge);
                let all = flows.of_job.handles().filter_map(job_of);
                all.filter(|&job| goes(job)).collect()
            }
        };
        let order = |job: Handle| match purge {
            Purge::Trim { .. } => self.jobs.job(job).life().death,
            _ => self.jobs.job(job).seq(),
        };
        going.sort_unstable_by_key(|&job| (order(job), job));
        going.dedup();
        let at = Moment::from(now);
        self.note_moment(at);
        for job in going {
            self.commit_over(job, Outcome::Deleted, at, None, out);
        }
    }
}

impl Parts {
    /// Carries out ends for up to `most` waiting jobs, or until that took `work`.
    pub(in crate::queue::state) fn step_flows(
        &mut self,
        jobs: &mut Jobs,
        most: u64,
        work: usize,
    ) -> Stepped {
        let mut stepped = Stepped::default();
        while stepped.count < most && stepped.work < work {
            let flows = self.flows.as_mut();
            let step = flows.and_then(|flows| flows.step(jobs, &mut stepped));
            match step {
                None => break,
                Some((_, Fallout::Waits)) => {}
                Some((waiter, Fallout::Dies { at, reason })) => {
                    self.die_of(jobs, waiter, at, &reason, &mut stepped);
                }
                Some((waiter, Fallout::Unblocked { due, forgets })) => {
                    if forgets {
                        self.drop_record(jobs, waiter);
                    }
                    self.unblock(jobs, waiter, due);
                    stepped.note_due(due);
                }
            }
        }
        self.drop_flows(jobs);
        stepped
    }

    /// Has a blocked job die, and records its end for those after it.
    pub(super) fn die_of(
        &mut self,
        jobs: &mut Jobs,
        waiter: Handle,
        at: Moment,
        reason: &[u8],
        stepped: &mut Stepped,
    ) {
        stepped.died += 1;
        let record = self.flows().and_then(|flows| flows.record(waiter));
        let is_timed = record.is_some_and(|record| record.is_timed());
        let due = match is_timed {
            true => jobs.job(waiter).due(),
            false => at.ms,
        };
        let reason = &reason[..reason.len().min(REASON_MAX)];
        self.close_links(jobs, waiter);
        if let Some(departures) = self.departures() {
            let how = (Outcome::Dead, Some(reason));
            departures.ended(waiter, how, (Some(at.ms), false), jobs);
        }
        if let Some(flows) = &mut self.flows {
            let id = jobs.job(waiter).id();
            let end = EndOf {
                id,
                outcome: Some(Outcome::Dead),
                at,
                value: Some(EndValue::of(id, reason, &**jobs.hasher())),
            };
            flows.end_job(waiter, end);
        }
        let successor = jobs.successor(waiter).map(|next| jobs.job(next));
        let successor = successor.map(|next| (next.due(), next.life().expires));
        match successor {
            Some((due, expires)) if expires == 0 || expires > at.ms => {
                stepped.note_due(due);
                stepped.succeeded += 1;
                self.succeed(jobs, waiter, 0);
            }
            expired => {
                if expired.is_some() {
                    stepped.expired += 1;
                    self.remove_successor(jobs, waiter);
                }
                self.kill(jobs, waiter, at, due, reason);
            }
        }
    }

    pub(in crate::queue::state) fn name_of(&self, group: GroupNumber) -> &[u8] {
        self.groups().map_or(&[], |groups| groups.name(group))
    }

    /// What a job is after, or was.
    pub fn waits_of<'a>(&'a self, jobs: &'a Jobs, job: Handle) -> Option<Waits<'a>> {
        let flows = self.flows()?;
        flows.waits_of(job, jobs, |it| self.name_of(it))
    }

    /// How the jobs that this one was after ended, in the order of its AFTER.
    pub fn results_of<'a>(
        &'a self,
        jobs: &'a Jobs,
        job: Handle,
    ) -> impl Iterator<Item = JobResult<'a>> {
        let results =
            move |flows: &'a Flows| flows.results_of(job, jobs, move |it| self.name_of(it));
        self.flows().into_iter().flat_map(results)
    }
}

impl From<Now> for Moment {
    fn from(now: Now) -> Self {
        Moment {
            ms: now.ms(),
            is_within: !now.us().is_multiple_of(1000),
        }
    }
}

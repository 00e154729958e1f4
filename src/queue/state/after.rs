//! Jobs that are after others: what the other parts of a queue have to do with flows. Here effects are carried out: jobs
//! are added that are after others, and others end.

mod commit;
mod plan;
mod restore;

use super::bounds::{check_instant, malformed};
use super::done::Done;
use super::flows::{reason_of, EndOf, EndValue, Flows, Links, Record, Released, Stepped, What};
use super::flows::{NONE, OF_GROUP, TIMED};
use super::jobs::Jobs;
use super::moves::Known;
use super::parts::Parts;
use super::store::{Id, NewJob, Status, Store};
use super::Queue;
use crate::queue::after::{After, AfterThat, For, Moment, OnDead, Outcome};
use crate::queue::effect::Came;
use crate::queue::error::QueueError;
use crate::queue::job::{Failure, Handle, Place, Terms};
use crate::storage::broken::must;
use crate::storage::few::Few;
use plan::Before;
pub(in crate::queue) use plan::{Plan, Waiter};

/// Steps in one effect, at most.
const STEPS_MAX: u64 = 100_000;

fn unfit(_: QueueError) -> QueueError {
    malformed("a job after what it cannot wait for")
}

/// A new job of which it is not decided yet whether it is blocked.
pub(in crate::queue) struct Arriving<'a> {
    pub group: Option<&'a [u8]>,
    pub id: Id<'a>,
    pub payload: &'a [u8],
    /// An instant, or a delay.
    pub due: u64,
    pub expires: u64,
    pub terms: &'a Terms<'a>,
}

impl Queue {
    pub(super) fn apply_after(
        &mut self,
        came: &Came<'_>,
        (due, expires): (u64, u64),
        after: &After<'_>,
    ) -> Result<(), QueueError> {
        [due, expires, after.at.ms]
            .into_iter()
            .try_for_each(check_instant)?;
        let (id, group) = (came.id, came.group);
        let hashed = self.jobs.hashed(id);
        let old = self.jobs.find(hashed);
        if !self.jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        let waiter = Waiter {
            id,
            there: old,
            group,
        };
        let plan = self
            .parts
            .plan_after(&self.jobs, &waiter, &after.until)
            .map_err(unfit)?;
        let coming = Arriving {
            group,
            id: hashed,
            payload: came.payload,
            due,
            expires,
            terms: &came.terms,
        };
        self.put_after(old, coming, plan, &after.that(), &mut Stepped::default());
        Ok(())
    }

    /// Adds a job, which waits unless all that it is after has ended.
    pub(super) fn put_after(
        &mut self,
        old: Option<Handle>,
        coming: Arriving<'_>,
        plan: Plan,
        after: &AfterThat<'_>,
        stepped: &mut Stepped,
    ) {
        let waits = plan.waits();
        let due = match after.is_timed || waits {
            true => coming.due,
            false => after.at.after(coming.due),
        };
        let mut job = NewJob {
            place: match waits {
                true => Place::Blocked,
                false => Place::Scheduled,
            },
            group: coming.group,
            ..NewJob::scheduled(
                coming.id.bytes,
                coming.payload,
                (due, coming.expires),
                coming.terms,
            )
        };
        let plan = self.parts.pin(&self.jobs, plan);
        let handle = self.put(old, &mut job, coming.id, Known::default());
        self.parts
            .link_all(&mut self.jobs, handle, plan, after, stepped);
    }

    /// Says when the jobs that a rule is about to end ended.
    #[inline]
    pub(in crate::queue) fn note_moment(&mut self, at: Moment) {
        if let Some(flows) = &mut self.parts.flows {
            flows.moment = at;
        }
    }
}

impl Parts {
    pub(super) fn apply_over(
        &mut self,
        jobs: &Jobs,
        id: &[u8],
        outcome: Option<Outcome>,
        at: Moment,
        value: Option<&[u8]>,
    ) -> Result<(), QueueError> {
        if outcome.is_none() {
            return self.apply_emptied(jobs, id, at);
        }
        let handle = jobs.expect(id)?;
        check_instant(at.ms)?;
        let end = EndOf {
            id,
            outcome,
            at,
            value: value.map(|value| EndValue::of(id, value, &**jobs.hasher())),
        };
        if let Some(flows) = &mut self.flows {
            flows.end_job(handle, end);
        }
        Ok(())
    }

    /// Acquires the numbers of what the job is to be after, before any other job is added or removed.
    fn pin(&mut self, jobs: &Jobs, plan: Plan) -> Pinned {
        let flows = self.flows.get_or_insert_default();
        match plan {
            Plan::Group(None) => Pinned::Nothing,
            Plan::Group(Some(group)) => {
                let (number, is_new) = flows.link_to_group(group);
                if let Some(groups) = self.groups.as_mut().filter(|_| is_new) {
                    groups.add_user(group);
                }
                Pinned::Links {
                    numbers: Few::One(number),
                    on_dead: OnDead::Wait,
                    open: 1,
                    dies_of: None,
                }
            }
            Plan::Jobs {
                jobs: before,
                on_dead,
                open,
                dies_of,
            } => {
                let dies_of = dies_of.map(|job| reason_of(jobs.job(job).id(), "dead"));
                let done = &self.done;
                let numbers = before.map(|&job| {
                    // To its end, if it is done, or dead and that counts; to an end without an outcome, if the waiting
                    // job dies at once.
                    let end = match (end_of(jobs, done, job, on_dead), job) {
                        (Some(end), _) => end,
                        (None, Before::Held(job)) if dies_of.is_none() => {
                            return flows.link_to_job(job, on_dead);
                        }
                        (None, Before::Held(job)) => EndOf::unknown(jobs.job(job).id()),
                        (None, Before::Done(job)) => EndOf::unknown(done.get(job).id),
                    };
                    let over = flows.add_over(end);
                    flows.link_to_over(over, on_dead)
                });
                Pinned::Links {
                    numbers,
                    on_dead,
                    open,
                    dies_of,
                }
            }
        }
    }

    fn apply_emptied(&mut self, jobs: &Jobs, name: &[u8], at: Moment) -> Result<(), QueueError> {
        check_instant(at.ms)?;
        let found = self.groups.as_ref().and_then(|groups| {
            let (number, held) = groups.held_by(name, jobs)?;
            (held == 0).then_some(number)
        });
        let number = found.ok_or(malformed("a group that is not empty"))?;
        let awaited = self.flows.as_mut().and_then(|flows| {
            flows.emptied.remove(&number);
            flows.of_group.remove(&number).zip(Some(flows))
        });
        let Some((awaited, flows)) = awaited else {
            return Err(malformed("a group that nobody waits for"));
        };
        let end = EndOf {
            id: name,
            outcome: Some(Outcome::Done),
            at,
            value: None,
        };
        flows.stand_in_line([awaited, NONE, NONE], end);
        self.release_group(jobs, number);
        Ok(())
    }

    /// Ends the wait of a job, and forgets what it was after.
    pub(super) fn drop_record(&mut self, jobs: &Jobs, waiter: Handle) {
        let flows = self.flows.as_mut();
        let group = flows.and_then(|flows| flows.drop_record(waiter, jobs));
        group
            .into_iter()
            .for_each(|it| self.release_group(jobs, it));
    }

    /// Ends the wait of a job for what is still open. Its links stay, for these without an outcome.
    fn close_links(&mut self, jobs: &Jobs, waiter: Handle) {
        let groups = self.groups.as_deref();
        let name_of = |group| groups.map_or(&[][..], |groups| groups.name(group));
        let flows = self.flows.as_mut();
        let group = flows.and_then(|flows| flows.close_links(waiter, jobs, name_of));
        group
            .into_iter()
            .for_each(|it| self.release_group(jobs, it));
    }

    /// Forgets what a job was after that is about to be removed.
    #[inline(never)]
    pub(super) fn leave_flows(&mut self, jobs: &Jobs, job: Handle) {
        if let Some(flows) = &mut self.flows {
            let group = flows.gone(job, jobs);
            group
                .into_iter()
                .for_each(|it| self.release_group(jobs, it));
            self.drop_flows(jobs);
        }
    }

    /// Drops the flows if they hold nothing.
    pub(super) fn drop_flows(&mut self, jobs: &Jobs) {
        self.flows.take_if(|flows| flows.is_bare(jobs));
    }

    pub(super) fn apply_waits(
        &mut self,
        jobs: &mut Jobs,
        id: &[u8],
        after: &After<'_>,
    ) -> Result<(), QueueError> {
        check_instant(after.at.ms)?;
        let handle = jobs.expect(id)?;
        let job = jobs.job(handle);
        if job.place() != Place::Scheduled || job.recurring().is_some() {
            return Err(malformed("a job that cannot wait"));
        }
        let waiter = Waiter {
            id,
            there: Some(handle),
            group: self.group_of(jobs, handle),
        };
        let plan = self
            .plan_after(jobs, &waiter, &after.until)
            .map_err(unfit)?;
        self.wait_again(jobs, handle, plan, &after.that(), &mut Stepped::default());
        Ok(())
    }

    pub(super) fn apply_stepped(&mut self, jobs: &mut Jobs, count: u64) -> Result<(), QueueError> {
        if count > STEPS_MAX {
            return Err(malformed("more steps than are ever taken at once"));
        }
        self.step_flows(jobs, count, usize::MAX);
        Ok(())
    }

    /// Has a job wait that was given back. What it was after before is forgotten.
    pub(super) fn wait_again(
        &mut self,
        jobs: &mut Jobs,
        handle: Handle,
        plan: Plan,
        after: &AfterThat<'_>,
        stepped: &mut Stepped,
    ) {
        let waits = plan.waits();
        let plan = self.pin(jobs, plan);
        self.drop_record(jobs, handle);
        if waits {
            self.move_to(jobs, handle, |status| status.place = Place::Blocked);
        }
        self.link_all(jobs, handle, plan, after, stepped);
    }

    /// By how many bytes of results the queue grows with a job of this plan in the place of `old`.
    pub(in crate::queue) fn results_growth(
        &self,
        jobs: &Jobs,
        old: Option<Handle>,
        plan: Option<&Plan>,
    ) -> i64 {
        if self.flows.is_none() && plan.is_none() {
            return 0;
        }
        let (none, mut released) = (Flows::default(), Released::default());
        let flows = self.flows.as_deref().unwrap_or(&none);
        let freed = old.map_or(0, |old| flows.values_freed(old, &mut released));
        let Some(Plan::Jobs {
            jobs: before,
            on_dead,
            ..
        }) = plan
        else {
            return -(freed as i64);
        };
        let end = |&job| end_of(jobs, &self.done, job, *on_dead);
        let ends = before.get().iter().filter_map(end);
        flows.values_coming(ends, &released) as i64 - freed as i64
    }

    fn link_all(
        &mut self,
        jobs: &mut Jobs,
        handle: Handle,
        plan: Pinned,
        after: &AfterThat<'_>,
        stepped: &mut Stepped,
    ) {
        let Pinned::Links {
            numbers,
            on_dead,
            open,
            dies_of,
        } = plan
        else {
            return;
        };
        let flows = self.flows.get_or_insert_default();
        let waits = dies_of.is_none() && open > 0;
        if waits {
            for &number in numbers.get() {
                if !matches!(flows.awaited(number).what, What::Over(_)) {
                    flows.join(number, handle, jobs);
                }
            }
        }
        let mut record = Record {
            links: numbers,
            latest: 0,
            waiter: handle,
            open: if waits { open as u16 } else { 0 },
            on_dead,
            flags: if after.is_timed { TIMED } else { 0 }
                | if matches!(after.until, For::Group(_)) {
                    OF_GROUP
                } else {
                    0
                },
        };
        record.note_end(after.at);
        flows.add_record(record);
        if let Some(reason) = dies_of {
            self.die_of(jobs, handle, after.at, &reason, stepped);
        }
    }

    /// Unblocks a job by KICK, whatever it waits for.
    pub(super) fn set_free(&mut self, jobs: &mut Jobs, handle: Handle, due: u64) {
        let record = self.flows().and_then(|flows| flows.record(handle));
        match record.is_some_and(|record| record.is_of_group()) {
            true => self.drop_record(jobs, handle),
            false => self.close_links(jobs, handle),
        }
        self.unblock(jobs, handle, due);
    }

    /// Moves a blocked job to the schedule.
    fn unblock(&mut self, jobs: &mut Jobs, handle: Handle, due: u64) {
        must(jobs.is_blocked(handle), "a job that is not blocked");
        self.move_to(jobs, handle, |status| {
            (status.place, status.due) = (Place::Scheduled, due);
        });
    }

    /// Has a scheduled or blocked job die of another one's end.
    fn kill(&mut self, jobs: &mut Jobs, handle: Handle, moment: Moment, due: u64, reason: &[u8]) {
        if let Some(flows) = &mut self.flows {
            flows.moment = moment;
        }
        self.count_death(jobs);
        let death = jobs.numbers.deaths;
        self.move_to(jobs, handle, |status| {
            (status.place, status.due) = (Place::Dead, due);
            (status.life.at, status.life.death) = (moment.ms, death);
            (status.life.token, status.life.lease_ms) = (0, 0);
        });
        let failure = Failure {
            at: moment.ms,
            reason: Some(reason),
        };
        jobs.set_failure(handle, failure);
    }

    /// Puts a job elsewhere, as it stands after `change`.
    fn move_to(&mut self, jobs: &mut Jobs, handle: Handle, change: impl FnOnce(&mut Status)) {
        let mut at = jobs.position(handle);
        self.unlink(jobs, handle, &at);
        change(&mut at.status);
        jobs.set_status(handle, at.status);
        self.link(jobs, handle, &at);
    }
}

/// How a job ended that another one is to be after: done, or dead where that counts.
fn end_of<'q>(jobs: &'q Store, done: &'q Done, job: Before, on_dead: OnDead) -> Option<EndOf<'q>> {
    let (id, outcome, value) = match job {
        Before::Done(job) => {
            let job = done.get(job);
            (job.id, Outcome::Done, job.result)
        }
        Before::Held(job) => {
            let job = jobs.job(job);
            if on_dead == OnDead::Wait || job.place() != Place::Dead {
                return None;
            }
            let reason = job.failure().and_then(|it| it.reason);
            (job.id(), Outcome::Dead, reason)
        }
    };
    Some(EndOf {
        outcome: Some(outcome),
        value: value.map(|value| EndValue::of(id, value, &**jobs.hasher())),
        ..EndOf::unknown(id)
    })
}

/// A plan whose numbers are acquired.
enum Pinned {
    Nothing,
    Links {
        numbers: Links,
        on_dead: OnDead,
        open: usize,
        /// The reason of the waiting job's death.
        dies_of: Option<Vec<u8>>,
    },
}

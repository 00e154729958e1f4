//! The moments of a job, and in which order the parts of a queue learn of each:
//!
//! ```text
//!   came        done (its id is free), groups, jobs, groups (a turn)
//!   placed      jobs (lists), flows (blocked ones), groups, flows (a member)
//!   left        jobs (lists), groups, flows (a member; the group may be empty)
//!   delivered   groups (the turn goes on), notes of the occurrence
//!   ended       departures, groups, dedupe window; then it has left, and is gone
//!   gone        flows, groups, jobs
//! ```
//!
//! Parts that a queue does not use are asked for nothing: a job without a group, of a queue without flows, is a matter of
//! jobs alone.

use super::bounds::{malformed, CONTRADICTION};
use super::fits::check_stored;
use super::groups::Sought;
use super::jobs::Jobs;
use super::parts::Parts;
use super::position::Position;
use super::purged::FREED_WITH_EACH;
use super::schedule::OrderKey;
use super::store::{Id, NewJob, Status};
use super::Queue;
use crate::queue::effect::{Came, Change, DeathCause, EndCause, RemovalCause};
use crate::queue::error::QueueError;
use crate::queue::job::{Failure, GroupNumber, Handle, Place, SEQ_MAX};
use crate::queue::settings::GroupLimits;
use crate::storage::broken::{must, there};
use crate::storage::skiplist::InsertHint;

/// What is known already of where a job belongs that is about to be added.
#[derive(Clone, Copy, Default)]
pub(in crate::queue) struct Known<'a> {
    /// In the schedule.
    pub hint: Option<&'a InsertHint<u64>>,
    /// In the index of groups.
    pub group: Option<Sought<'a>>,
}

/// Stored jobs with one order key that are not in the schedule yet.
#[derive(Default)]
pub(super) struct Unlinked {
    at: OrderKey,
    handles: Vec<Handle>,
}

impl Unlinked {
    /// Puts them into the schedule.
    pub(super) fn link(&mut self, jobs: &mut Jobs) {
        let handles = std::mem::take(&mut self.handles);
        if !handles.is_empty() {
            jobs.link_together(self.at, &handles);
        }
    }
}

impl Queue {
    /// Adds a job as the last in the order of adding, in the place of an old one with its id.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        old: Option<Handle>,
        job: &mut NewJob<'_>,
        id: Id<'_>,
        mut known: Known<'_>,
    ) -> Handle {
        let flows = self.parts.flows.as_mut().zip(old);
        let awaited = flows.map(|(flows, old)| flows.lift(old));
        if let Some(old) = old {
            self.parts.make_way(&mut self.jobs, old);
            known.group = None;
        }
        job.seq = self.parts.next_seq(&mut self.jobs);
        let handle = self.insert(job, id, known);
        if let Some((flows, awaited)) = self.parts.flows.as_mut().zip(awaited) {
            flows.give(awaited, handle);
        }
        handle
    }

    /// As [`Queue::put`], for one of several jobs that are added together. A job that would only enter the schedule is
    /// just stored: [`Unlinked::link`] must link it before anything else happens to the queue.
    pub(super) fn put_with(
        &mut self,
        old: Option<Handle>,
        job: &mut NewJob<'_>,
        id: Id<'_>,
        unlinked: &mut Unlinked,
    ) -> Handle {
        if old.is_some() || self.jobs.numbers.seq >= SEQ_MAX {
            unlinked.link(&mut self.jobs);
            return self.put(old, job, id, Known::default());
        }
        job.seq = self.parts.next_seq(&mut self.jobs);
        let (handle, at, _) = self.store(job, id, None);
        // Groups ask the schedule whether it holds other jobs.
        if at.may_end() || self.parts.groups.is_some() || self.jobs.has_purged() {
            self.parts.link(&mut self.jobs, handle, &at);
        } else {
            unlinked.at = at.order_key();
            unlinked.handles.push(handle);
        }
        handle
    }

    #[inline]
    pub(super) fn insert(&mut self, job: &NewJob<'_>, id: Id<'_>, known: Known<'_>) -> Handle {
        let (handle, at, group) = self.store(job, id, known.group);
        if at.may_end() {
            self.jobs.link_end(handle, at.ends_at());
        }
        self.parts
            .link_place(&mut self.jobs, handle, &at, group, known.hint);
        handle
    }

    /// Stores a job, without a place on any list yet, and says where it belongs.
    #[inline]
    fn store(
        &mut self,
        job: &NewJob<'_>,
        id: Id<'_>,
        sought: Option<Sought<'_>>,
    ) -> (Handle, Position, Option<GroupNumber>) {
        debug_assert!(id == self.jobs.hashed(job.id));
        let at = Position {
            status: Status {
                place: job.place,
                due: job.due,
                life: job.life,
            },
            priority: job.terms.priority,
            grace_ms: job.grace_ms(),
            recurs: job.recurring.is_some(),
            max_attempts: job.terms.max_attempts,
        };
        // Purged jobs that are freed may have been the last of their group.
        let sought = sought.filter(|_| !self.jobs.has_purged());
        if self.jobs.has_purged() {
            self.parts.free_namesake(&mut self.jobs, id);
        }
        if self.parts.done.is_made() {
            let limits = self.settings.done_limits;
            self.parts.drop_done(&self.jobs, id, limits);
        }
        let limits = &self.settings.group_limits;
        let acquired = |name| self.parts.acquire_group(name, sought, limits, &self.jobs);
        let group = job.group.map(acquired);
        let handle = self.jobs.insert(job, id, group);
        let turn = (job.place, job.turn);
        self.parts.begin_turn(group, turn, limits, &self.jobs);
        (handle, at, group)
    }

    /// Changes a job that stands at `before`.
    #[inline]
    pub(super) fn change(&mut self, handle: Handle, before: Position, change: Change<'_>) {
        if let Some(departures) = self.parts.departures() {
            departures.changed(handle, change, &self.jobs);
        }
        if let Change::Removed { remember, cause } = change {
            if cause == RemovalCause::Popped {
                self.serving_mut().note_served(handle);
            }
            self.parts.remember_job(&self.jobs, handle, remember);
            return self.parts.remove_from(&mut self.jobs, handle, &before);
        }
        match change {
            Change::Succeeded { remember, end, .. } => {
                if end == EndCause::Popped {
                    self.serving_mut().note_served(handle);
                }
                return self.parts.succeed(&mut self.jobs, handle, remember);
            }
            Change::SuccessorExpired => return self.parts.remove_successor(&mut self.jobs, handle),
            Change::Unblocked { due } => return self.parts.set_free(&mut self.jobs, handle, due),
            Change::Died { .. } => self.parts.count_death(&mut self.jobs),
            Change::Reserved { .. } => self.serving_mut().note_served(handle),
            _ => {}
        }
        let after = before.changed(change, self.jobs.numbers.deaths);
        let group = self.parts.unlink_place(&mut self.jobs, handle, &before);
        if before.may_end() {
            self.jobs.move_end(handle, before, after);
        }
        self.jobs.numbers.token = self.jobs.numbers.token.max(after.status.life.token);
        if after.priority != before.priority {
            self.jobs.set_priority(handle, after.priority);
        }
        self.jobs.set_status(handle, after.status);
        if self.jobs.has_notes() {
            self.jobs.change_notes(handle, change);
        }
        if matches!(change, Change::Reserved { .. }) && self.jobs.recurring_len() > 0 {
            self.jobs.note_delivered(handle);
        }
        if let Change::Kicked { .. } = change {
            let groups = self.parts.groups.iter_mut();
            groups.for_each(|it| it.begin_turn(group, Place::Scheduled, None, &self.jobs));
        }
        self.parts
            .link_place(&mut self.jobs, handle, &after, group, None);
        let failed = change.failure();
        let failure = match change {
            Change::TimedOut => Some(Failure::of_lease(before.status.life.at)),
            Change::Died {
                at,
                cause: DeathCause::TimedOut,
            } => Some(Failure::of_lease(at)),
            _ => failed,
        };
        if let Some(failure) = failure {
            self.jobs.set_failure(handle, failure);
        }
        if let Some(failed) = failed {
            let departure = self.last_departure().into_iter();
            departure.for_each(|it| it.set_value(failed.reason));
        }
    }

    /// A successor that came.
    pub(super) fn apply_behind(
        &mut self,
        came: &Came<'_>,
        instants: (u64, u64),
    ) -> Result<(), QueueError> {
        let handle = self.jobs.expect(came.id)?;
        let job = NewJob {
            place: Place::Successor,
            ..NewJob::of(came, instants)
        };
        check_stored(&job)?;
        let before = self.jobs.job(handle);
        let is_live = matches!(before.place(), Place::Scheduled | Place::Reserved);
        if !is_live || before.recurring().is_some() {
            return Err(malformed(CONTRADICTION));
        }
        if !self.jobs.has_room() {
            return Err(QueueError::TooManyJobs);
        }
        self.follow(handle, job);
        Ok(())
    }

    /// Adds a successor, the last in the order of adding, to the job that has its id.
    pub(super) fn follow(&mut self, handle: Handle, mut job: NewJob<'_>) {
        self.parts.remove_successor(&mut self.jobs, handle);
        job.place = Place::Successor;
        job.seq = self.parts.next_seq(&mut self.jobs);
        let successor = self.insert(&job, self.jobs.hashed(job.id), Known::default());
        self.jobs.set_successor(handle, successor);
    }
}

impl Parts {
    /// Stores a new job of the group of this name, and puts it where it belongs: where all jobs are plain.
    pub(super) fn put_grouped(
        &mut self,
        jobs: &mut Jobs,
        job: &NewJob<'_>,
        (group, limits): (&[u8], &GroupLimits),
        id: Id<'_>,
        known: Known<'_>,
    ) {
        let number = self.acquire_group(group, known.group, limits, jobs);
        let (handle, at) = jobs.put::<true>(job, id, Some(number), known.hint);
        if let Some(groups) = &mut self.groups {
            groups.came(number, (handle, at), jobs, self.group_rates.as_deref());
        }
    }

    /// Tells flows and groups where a job stands now that is blocked or has a group.
    #[inline(never)]
    fn placed(&mut self, jobs: &Jobs, handle: Handle, at: &Position, group: Option<GroupNumber>) {
        let place = at.status.place;
        if place == Place::Blocked {
            let flows = self.flows.get_or_insert_default();
            flows.blocked(handle, group, jobs);
        }
        if let Some((groups, number)) = self.groups.as_mut().zip(group) {
            let rates = self.group_rates.as_deref();
            groups.placed(number, (handle, *at), jobs, rates);
        }
        if let Some((flows, number)) = self.flows.as_mut().zip(group) {
            flows.note_member(number, place);
        }
    }

    /// Tells groups and flows that a job with a group has left its place. Once it has a new one, or is gone, its group
    /// is put where it belongs in the lists of turns.
    #[inline(never)]
    pub(super) fn left(&mut self, jobs: &Jobs, handle: Handle, at: Position, number: GroupNumber) {
        let Some(groups) = &mut self.groups else {
            return;
        };
        groups.left(number, handle, at, jobs);
        if let Some(flows) = &mut self.flows {
            if at.status.place == Place::Blocked {
                flows.unblocked(handle, number, jobs);
            }
            if flows.awaits_group(number) && groups.is_empty(number) {
                flows.note_empty(number);
            }
        }
    }

    #[inline]
    fn group_number(&self, jobs: &Jobs, handle: Handle) -> Option<GroupNumber> {
        self.groups.as_ref()?.number_of(handle, jobs)
    }

    /// The next number in the order of adding.
    #[inline]
    pub(super) fn next_seq(&mut self, jobs: &mut Jobs) -> u64 {
        if jobs.numbers.seq >= SEQ_MAX {
            self.number_anew(jobs);
        }
        jobs.numbers.seq += 1;
        jobs.numbers.seq
    }

    pub(super) fn count_death(&mut self, jobs: &mut Jobs) {
        if jobs.numbers.deaths >= SEQ_MAX {
            self.number_anew(jobs);
        }
        jobs.numbers.deaths += 1;
    }

    /// Gives all jobs small numbers in the same orders, so that there is room to count on. Jobs that share a number
    /// share one afterwards, so no list changes its order.
    #[cold]
    pub(super) fn number_anew(&mut self, jobs: &mut Jobs) {
        self.update_groups(jobs, usize::MAX);
        if self.flows.is_some() {
            self.free_purged(jobs, usize::MAX);
        }
        let mut seqs: Vec<u64> = jobs.handles().map(|it| jobs.seq(it)).collect();
        let deaths = jobs.handles().map(|it| jobs.job(it).life().death);
        let mut deaths: Vec<u64> = deaths.collect();
        seqs.extend(self.done.iter().map(|it| self.done.get(it).seq));
        for numbers in [&mut seqs, &mut deaths] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        let rank = |of: &[u64], number: u64| of.partition_point(|&other| other < number) as u64 + 1;
        let seq = |seq| rank(&seqs, seq);
        jobs.number_anew(seq, |death| rank(&deaths, death));
        if let Some(done) = self.done.made() {
            done.number_anew(seq, jobs.hasher());
        }
        if let Some(groups) = &mut self.groups {
            groups.number_anew(jobs);
        }
        (jobs.numbers.seq, jobs.numbers.deaths) = (seqs.len() as u64, deaths.len() as u64);
    }

    #[inline(never)]
    fn make_way(&mut self, jobs: &mut Jobs, old: Handle) {
        if let Some(departures) = self.departures() {
            departures.lost(old, jobs);
        }
        self.remove(jobs, old);
    }

    /// Its id stays in the dedupe window until this instant; not if that is 0.
    #[inline(always)]
    pub(super) fn remember_job(&mut self, jobs: &Jobs, handle: Handle, until: u64) {
        if until != 0 {
            let id = jobs.job(handle).id();
            let remembered = self.remember(jobs, id, until);
            must(remembered.is_ok(), "no room to remember an id");
        }
    }

    /// Removes a job and its successor.
    pub(super) fn remove(&mut self, jobs: &mut Jobs, handle: Handle) {
        let at = jobs.position(handle);
        self.remove_from(jobs, handle, &at);
    }

    /// As [`Parts::remove`], of a job at this position.
    #[inline(always)]
    fn remove_from(&mut self, jobs: &mut Jobs, handle: Handle, at: &Position) {
        if jobs.successors_len() > 0 {
            self.remove_successor(jobs, handle);
        }
        self.unlink(jobs, handle, at);
        jobs.forget_purged(handle);
        self.drop_job(jobs, handle);
    }

    /// Puts a job where its position says: on the lists of jobs, and in its group.
    #[inline]
    pub(super) fn link(&mut self, jobs: &mut Jobs, handle: Handle, at: &Position) {
        if at.may_end() {
            jobs.link_end(handle, at.ends_at());
        }
        let group = self.group_number(jobs, handle);
        self.link_place(jobs, handle, at, group, None);
    }

    /// As [`Parts::link`], but for the lists of TTLs.
    #[inline]
    fn link_place(
        &mut self,
        jobs: &mut Jobs,
        handle: Handle,
        at: &Position,
        group: Option<GroupNumber>,
        hint: Option<&InsertHint<u64>>,
    ) {
        jobs.link_place(handle, at, group.is_some(), hint);
        if group.is_some() || at.status.place == Place::Blocked {
            self.placed(jobs, handle, at, group);
        }
        if jobs.has_purged() {
            self.free_purged(jobs, FREED_WITH_EACH);
        }
    }

    /// Takes a job away from where its position says.
    #[inline]
    pub(super) fn unlink(&mut self, jobs: &mut Jobs, handle: Handle, at: &Position) {
        if at.may_end() {
            jobs.unlink_end(handle, at.ends_at());
        }
        self.unlink_place(jobs, handle, at);
    }

    /// As [`Parts::unlink`], but for the lists of TTLs; returns the job's group.
    #[inline(always)]
    fn unlink_place(
        &mut self,
        jobs: &mut Jobs,
        handle: Handle,
        at: &Position,
    ) -> Option<GroupNumber> {
        let group = self.group_number(jobs, handle);
        jobs.unlink_place(handle, at, group.is_some());
        if let Some(number) = group {
            self.left(jobs, handle, *at, number);
        }
        group
    }

    /// Frees the memory of a job that stands on no list any more.
    #[inline]
    pub(super) fn drop_job(&mut self, jobs: &mut Jobs, handle: Handle) {
        if self.flows.is_some() {
            self.leave_flows(jobs, handle);
        }
        let group = self.group_number(jobs, handle);
        if let Some(number) = group {
            self.refresh_group(jobs, number);
        }
        jobs.remove(handle);
        if let Some(number) = group {
            self.release_group(jobs, number);
        }
    }

    pub(super) fn remove_successor(&mut self, jobs: &mut Jobs, handle: Handle) {
        if let Some(successor) = jobs.take_successor(handle) {
            self.remove(jobs, successor);
        }
    }

    /// Removes a job, whose successor takes its place.
    pub(super) fn succeed(&mut self, jobs: &mut Jobs, handle: Handle, remember: u64) {
        self.remember_job(jobs, handle, remember);
        let successor = there(jobs.take_successor(handle), "nobody to succeed a job");
        let awaited = self.flows.as_mut().map(|flows| flows.lift(handle));
        self.remove(jobs, handle);
        let mut at = jobs.position(successor);
        self.unlink(jobs, successor, &at);
        at.status.place = Place::Scheduled;
        jobs.set_status(successor, at.status);
        jobs.index_successor(successor);
        if let Some((flows, awaited)) = self.flows.as_mut().zip(awaited) {
            flows.give(awaited, successor);
        }
        if let Some(groups) = &mut self.groups {
            let group = jobs.job(successor).group();
            groups.begin_turn(group, Place::Scheduled, None, jobs);
        }
        self.link(jobs, successor, &at);
    }
}

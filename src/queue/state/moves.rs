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

use super::groups::Sought;
use super::jobs::Jobs;
use super::parts::Parts;
use super::position::Position;
use super::purged::FREED_WITH_EACH;
use super::schedule::OrderKey;
use super::store::{Id, NewJob, Status};
use super::Queue;
use crate::queue::effect::{Change, DeathCause, EndCause, RemovalCause};
use crate::queue::job::{Failure, GroupNumber, Handle, Place, SEQ_MAX};
use crate::queue::settings::GroupLimits;
use crate::storage::broken::must;
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
            self.make_way(old);
            known.group = None;
        }
        job.seq = self.next_seq();
        let handle = self.insert(job, id, known);
        if let Some((flows, awaited)) = self.parts.flows.as_mut().zip(awaited) {
            flows.give(awaited, handle);
        }
        handle
    }

    /// As [`Queue::put`], for one of several jobs that are added together. A job that would only enter the schedule is
    /// just stored: [`Queue::link_together`] must link it before anything else happens to the queue.
    pub(super) fn put_with(
        &mut self,
        old: Option<Handle>,
        job: &mut NewJob<'_>,
        id: Id<'_>,
        unlinked: &mut Unlinked,
    ) -> Handle {
        if old.is_some() || self.jobs.numbers.seq >= SEQ_MAX {
            self.link_together(unlinked);
            return self.put(old, job, id, Known::default());
        }
        job.seq = self.next_seq();
        let (handle, at, _) = self.store(job, id, None);
        // Groups ask the schedule whether it holds other jobs.
        if at.may_end() || self.parts.groups.is_some() || self.jobs.has_purged() {
            self.link(handle, &at);
        } else {
            unlinked.at = at.order_key();
            unlinked.handles.push(handle);
        }
        handle
    }

    /// Puts the stored jobs into the schedule.
    pub(super) fn link_together(&mut self, unlinked: &mut Unlinked) {
        let handles = std::mem::take(&mut unlinked.handles);
        if !handles.is_empty() {
            self.jobs.link_together(unlinked.at, &handles);
        }
    }

    /// The next number in the order of adding.
    #[inline]
    pub(super) fn next_seq(&mut self) -> u64 {
        if self.jobs.numbers.seq >= SEQ_MAX {
            self.number_anew();
        }
        self.jobs.numbers.seq += 1;
        self.jobs.numbers.seq
    }

    #[inline(never)]
    fn make_way(&mut self, old: Handle) {
        if let Some(departures) = self.parts.departures() {
            departures.lost(old, &self.jobs);
        }
        self.remove(old);
    }

    #[inline]
    pub(super) fn insert(&mut self, job: &NewJob<'_>, id: Id<'_>, known: Known<'_>) -> Handle {
        let (handle, at, group) = self.store(job, id, known.group);
        if at.may_end() {
            self.jobs.link_end(handle, at.ends_at());
        }
        self.link_place(handle, &at, group, known.hint);
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
        self.free_namesake(id);
        if self.has_done() {
            self.drop_done(id);
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
            self.remember_job(handle, remember);
            return self.remove_from(handle, &before);
        }
        match change {
            Change::Succeeded { remember, end, .. } => {
                if end == EndCause::Popped {
                    self.serving_mut().note_served(handle);
                }
                return self.succeed(handle, remember);
            }
            Change::SuccessorExpired => return self.remove_successor(handle),
            Change::Unblocked { due } => return self.set_free(handle, due),
            Change::Died { .. } => self.count_death(),
            Change::Reserved { .. } => self.serving_mut().note_served(handle),
            _ => {}
        }
        let after = before.changed(change, self.jobs.numbers.deaths);
        let group = self.unlink_place(handle, &before);
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
            let limits = &self.settings.group_limits;
            let turn = (Place::Scheduled, None);
            self.parts.begin_turn(group, turn, limits, &self.jobs);
        }
        self.link_place(handle, &after, group, None);
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
            self.note_value(failed.reason);
        }
    }

    /// Its id stays in the dedupe window until this instant; not if that is 0.
    pub(super) fn remember_job(&mut self, handle: Handle, until: u64) {
        if until != 0 {
            let id = self.jobs.job(handle).id();
            let remembered = self.parts.remember(&self.jobs, id, until);
            must(remembered.is_ok(), "no room to remember an id");
        }
    }

    /// Removes a job and its successor.
    pub(super) fn remove(&mut self, handle: Handle) {
        self.remove_from(handle, &self.jobs.position(handle));
    }

    /// As [`Queue::remove`], of a job at this position.
    fn remove_from(&mut self, handle: Handle, at: &Position) {
        if self.jobs.successors_len() > 0 {
            self.remove_successor(handle);
        }
        self.unlink(handle, at);
        self.jobs.forget_purged(handle);
        self.drop_job(handle);
    }

    /// Puts a job where its position says: on the lists of jobs, and in its group.
    #[inline]
    pub(super) fn link(&mut self, handle: Handle, at: &Position) {
        if at.may_end() {
            self.jobs.link_end(handle, at.ends_at());
        }
        let group = self.parts.group_number(&self.jobs, handle);
        self.link_place(handle, at, group, None);
    }

    /// As [`Queue::link`], but for the lists of TTLs.
    #[inline]
    fn link_place(
        &mut self,
        handle: Handle,
        at: &Position,
        group: Option<GroupNumber>,
        hint: Option<&InsertHint<u64>>,
    ) {
        self.jobs.link_place(handle, at, group.is_some(), hint);
        if group.is_some() || at.status.place == Place::Blocked {
            self.parts.placed(&self.jobs, handle, at, group);
        }
        if self.jobs.has_purged() {
            self.free_purged(FREED_WITH_EACH);
        }
    }

    /// Takes a job away from where its position says.
    #[inline]
    pub(super) fn unlink(&mut self, handle: Handle, at: &Position) {
        if at.may_end() {
            self.jobs.unlink_end(handle, at.ends_at());
        }
        self.unlink_place(handle, at);
    }

    /// As [`Queue::unlink`], but for the lists of TTLs; returns the job's group.
    #[inline]
    fn unlink_place(&mut self, handle: Handle, at: &Position) -> Option<GroupNumber> {
        let group = self.parts.group_number(&self.jobs, handle);
        self.jobs.unlink_place(handle, at, group.is_some());
        if let Some(number) = group {
            self.parts.left(&self.jobs, handle, *at, number);
        }
        group
    }

    /// Frees the memory of a job that stands on no list any more.
    #[inline]
    pub(super) fn drop_job(&mut self, handle: Handle) {
        if self.parts.flows.is_some() {
            self.parts.leave_flows(&self.jobs, handle);
        }
        let group = self.parts.group_number(&self.jobs, handle);
        if let Some(number) = group {
            self.parts.refresh_group(&self.jobs, number);
        }
        self.jobs.remove(handle);
        if let Some(number) = group {
            self.parts.release_group(&self.jobs, number);
        }
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
}

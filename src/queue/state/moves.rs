//! Adding, moving and removing a job: on each list of the queue that its position names, and nowhere else.

use super::groups::GroupNumber;
use super::position::{EndsAt, Position};
use super::purged::FREED_WITH_EACH;
use super::schedule::Standing;
use super::store::{Course, Id, NewJob};
use super::Queue;
use crate::queue::effect::{Change, Death, End, Removal};
use crate::queue::job::{Failure, Handle, Place, SEQ_MAX};
use crate::storage::broken::must;
use crate::storage::skiplist::InsertHint;

/// Stored jobs of one standing that are not in the schedule yet.
#[derive(Default)]
pub(super) struct Unlinked {
    at: Standing,
    handles: Vec<Handle>,
}

impl Queue {
    /// Adds a job as the last in the order of adding, in the place of an old one with its id. `way` is its place in the
    /// schedule, if that is known already.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        old: Option<Handle>,
        job: &mut NewJob<'_>,
        id: Id<'_>,
        way: Option<&InsertHint<u64>>,
    ) -> Handle {
        let awaited = old.and_then(|old| self.lift_awaited(old));
        if let Some(old) = old {
            self.make_way(old);
        }
        job.seq = self.next_seq();
        let handle = self.insert(job, id, way);
        if awaited.is_some() {
            self.give_awaited(awaited, handle);
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
        if old.is_some() || self.seq >= SEQ_MAX {
            self.link_together(unlinked);
            return self.put(old, job, id, None);
        }
        job.seq = self.next_seq();
        let (handle, at) = self.store(job, id);
        // Groups ask the schedule whether it holds other jobs.
        if at.may_end() || self.groups.is_some() || self.has_purged() {
            self.link(handle, at, None);
        } else {
            unlinked.at = at.standing();
            unlinked.handles.push(handle);
        }
        handle
    }

    /// Puts the stored jobs into the schedule.
    pub(super) fn link_together(&mut self, unlinked: &mut Unlinked) {
        let jobs = &self.jobs;
        let seq = |handle| jobs.job(handle).seq();
        let handles = std::mem::take(&mut unlinked.handles);
        if !handles.is_empty() {
            (self.schedule).insert_together(unlinked.at, &handles, seq);
        }
    }

    #[inline]
    fn next_seq(&mut self) -> u64 {
        if self.seq >= SEQ_MAX {
            self.number_anew();
        }
        self.seq += 1;
        self.seq
    }

    #[inline(never)]
    fn make_way(&mut self, old: Handle) {
        if self.is_listened_to() {
            self.note_loss(old);
        }
        self.remove(old);
    }

    #[inline]
    pub(super) fn insert(
        &mut self,
        job: &NewJob<'_>,
        id: Id<'_>,
        way: Option<&InsertHint<u64>>,
    ) -> Handle {
        let (handle, at) = self.store(job, id);
        self.link(handle, at, way);
        handle
    }

    /// Stores a job, without a place on any list yet, and says where it belongs.
    #[inline]
    fn store(&mut self, job: &NewJob<'_>, id: Id<'_>) -> (Handle, Position) {
        debug_assert!(id == self.jobs.hashed(job.id));
        let at = Position {
            course: Course {
                place: job.place,
                due: job.due,
                life: job.life,
            },
            priority: job.terms.priority,
            grace_ms: job.grace_ms(),
            recurs: job.recurring.is_some(),
            max_attempts: job.terms.max_attempts,
        };
        self.free_namesake(id);
        if self.has_done() {
            self.drop_done(id);
        }
        let group = job.group.map(|name| self.acquire_group(name));
        let handle = self.jobs.insert(job, id, group);
        self.begin_turn(group, job.place, job.turn);
        (handle, at)
    }

    pub(in crate::queue) fn position(&self, handle: Handle) -> Position {
        let job = self.jobs.job(handle);
        let (terms, recurring) = (job.terms(), job.recurring());
        Position {
            course: job.course(),
            priority: terms.priority,
            grace_ms: recurring.map_or(0, |recurring| recurring.grace_ms()),
            recurs: recurring.is_some(),
            max_attempts: terms.max_attempts,
        }
    }

    #[inline]
    pub(super) fn change(&mut self, handle: Handle, change: Change<'_>) {
        if self.is_listened_to() {
            self.note_change(handle, change);
        }
        if let Change::Removed { remember, cause } = change {
            if cause == Removal::Popped {
                self.note_served(handle);
            }
            self.remember_job(handle, remember);
            return self.remove(handle);
        }
        match change {
            Change::Succeeded { remember, end, .. } => {
                if end == End::Popped {
                    self.note_served(handle);
                }
                return self.succeed(handle, remember);
            }
            Change::SuccessorExpired => return self.remove_successor(handle),
            Change::Unblocked { due } => return self.set_free(handle, due),
            Change::Died { .. } => self.count_death(),
            Change::Reserved { .. } => self.note_served(handle),
            _ => {}
        }
        let before = self.position(handle);
        let after = before.changed(change, self.deaths);
        self.unlink_place(handle, before);
        if before.may_end() {
            self.move_end(handle, before, after);
        }
        self.token = self.token.max(after.course.life.token);
        if after.priority != before.priority {
            self.jobs.set_priority(handle, after.priority);
        }
        self.jobs.set_course(handle, after.course);
        if self.jobs.has_notes() {
            self.jobs.change_notes(handle, change);
        }
        if let Change::Reserved { .. } = change {
            self.note_delivered(handle);
        }
        if let Change::Kicked { .. } = change {
            let group = self.jobs.job(handle).group();
            self.begin_turn(group, Place::Scheduled, None);
        }
        self.link_place(handle, after, None);
        let told = change.failure();
        let failure = match change {
            Change::TimedOut => Some(Failure::of_lease(before.course.life.at)),
            Change::Died {
                at,
                cause: Death::TimedOut,
            } => Some(Failure::of_lease(at)),
            _ => told,
        };
        if let Some(failure) = failure {
            self.jobs.set_failure(handle, failure);
        }
        if let Some(told) = told {
            self.note_value(told.reason);
        }
    }

    /// Removes a job and its successor.
    pub(super) fn remove(&mut self, handle: Handle) {
        if self.jobs.successors_len() > 0 {
            self.remove_successor(handle);
        }
        self.unlink(handle, self.position(handle));
        self.forget_purged(handle);
        self.drop_job(handle);
    }

    /// Puts a job into the lists that its position names.
    #[inline]
    pub(super) fn link(&mut self, handle: Handle, at: Position, way: Option<&InsertHint<u64>>) {
        if at.may_end() {
            self.link_end(handle, at.ends_at());
        }
        self.link_place(handle, at, way);
    }

    #[inline(never)]
    fn move_end(&mut self, handle: Handle, before: Position, after: Position) {
        let (ended, ends) = (before.ends_at(), after.ends_at());
        if ended != ends {
            self.unlink_end(handle, ended);
            self.link_end(handle, ends);
        }
    }

    #[inline(never)]
    fn link_end(&mut self, handle: Handle, at: Option<EndsAt>) {
        let Some(EndsAt {
            ending,
            at,
            late_due,
        }) = at
        else {
            return;
        };
        let jobs = &self.jobs;
        let seq = |handle| jobs.job(handle).seq();
        self.expiring.insert(ending as usize, at, handle, seq);
        if let Some(due) = late_due {
            self.cold.make().late.insert(due, handle, seq);
        }
    }

    #[inline(never)]
    pub(super) fn unlink_end(&mut self, handle: Handle, at: Option<EndsAt>) {
        let Some(EndsAt {
            ending,
            at,
            late_due,
        }) = at
        else {
            return;
        };
        let jobs = &self.jobs;
        let seq = |handle| jobs.job(handle).seq();
        let there = self.expiring.remove(ending as usize, at, handle, seq)
            && late_due.is_none_or(|due| self.cold.make().late.remove(due, handle, seq));
        must(there, "a TTL that is on no list");
    }

    /// Puts a job into its lists, except those of TTLs.
    #[inline]
    fn link_place(&mut self, handle: Handle, at: Position, way: Option<&InsertHint<u64>>) {
        if let Some(cold) = self.cold.made() {
            let all = cold.purged_jobs.iter_mut();
            all.for_each(|purged_jobs| purged_jobs.linked(handle));
        }
        let group = self.group_number(handle);
        let jobs = &self.jobs;
        let seq = |handle| jobs.job(handle).seq();
        let Course { place, life, .. } = at.course;
        match place {
            Place::Scheduled => {
                let is_grouped = group.is_some();
                self.schedule
                    .insert(at.standing(), handle, is_grouped, way, seq);
            }
            Place::Reserved => {
                let fate = at.fate() as usize;
                self.reserved.insert(fate, life.at, handle, seq);
            }
            Place::Dead => self
                .dead
                .make()
                .insert(life.at, handle, |h| jobs.job(h).life().death),
            Place::Successor => {}
            Place::Blocked => {
                let flows = self.flows.get_or_insert_default();
                flows.link(handle, group, jobs);
            }
        }
        if self.jobs.is_followed(handle) {
            self.cold.make().followed.insert(handle, at.course);
        }
        if let Some(number) = group {
            self.link_in_group(number, handle, at);
        }
        if self.has_purged() {
            self.free_purged(FREED_WITH_EACH);
        }
    }

    /// Takes a job out of the lists that its position names.
    #[inline]
    pub(super) fn unlink(&mut self, handle: Handle, at: Position) {
        if at.may_end() {
            self.unlink_end(handle, at.ends_at());
        }
        self.unlink_place(handle, at);
    }

    /// Takes a job out of its lists, except those of TTLs.
    #[inline]
    fn unlink_place(&mut self, handle: Handle, at: Position) {
        let group = self.group_number(handle);
        let jobs = &self.jobs;
        let seq = |handle| jobs.job(handle).seq();
        let Course { place, life, .. } = at.course;
        let there = match place {
            Place::Scheduled => {
                let is_grouped = group.is_some();
                self.schedule.remove(at.standing(), handle, is_grouped, seq)
            }
            Place::Reserved => {
                let fate = at.fate() as usize;
                self.reserved.remove(fate, life.at, handle, seq)
            }
            Place::Dead => self
                .dead
                .make()
                .remove(life.at, handle, |h| jobs.job(h).life().death),
            Place::Successor => true,
            Place::Blocked => {
                let flows = self.flows.as_mut();
                flows.is_some_and(|flows| flows.unlink(handle, group, jobs))
            }
        };
        must(there, "a job that is not where its fields say");
        if self.jobs.is_followed(handle) {
            self.cold.make().followed.remove(handle, at.course);
        }
        if let Some(number) = group {
            self.unlink_in_group(number, handle, at);
        }
    }

    #[inline]
    fn group_number(&self, handle: Handle) -> Option<GroupNumber> {
        self.groups.as_ref()?;
        self.jobs.job(handle).group()
    }
}

//! A job's coming, moving and going: on each list of the queue that its position names, and nowhere else.

use super::groups::GroupNumber;
use super::position::Position;
use super::purged::FREED_WITH_EACH;
use super::store::{Course, Id, NewJob};
use super::Queue;
use crate::queue::effect::{Change, Death, End, Removal};
use crate::queue::job::{Failure, Handle, Place, SEQ_MAX};
use crate::storage::broken::must;
use crate::storage::skiplist::InsertHint;

impl Queue {
    /// Puts a job, the last in the order of adding, in the place of an old one of its id. The way to its
    /// place may be known.
    pub(super) fn put(
        &mut self,
        old: Option<Handle>,
        mut job: NewJob<'_>,
        id: Id<'_>,
        way: Option<&InsertHint<u64>>,
    ) {
        if let Some(old) = old {
            self.remove(old);
        }
        if self.seq >= SEQ_MAX {
            self.number_anew();
        }
        self.seq += 1;
        job.seq = self.seq;
        self.insert(&job, id, way);
    }

    #[inline]
    pub(super) fn insert(
        &mut self,
        job: &NewJob<'_>,
        id: Id<'_>,
        way: Option<&InsertHint<u64>>,
    ) -> Handle {
        debug_assert!(id == self.jobs.hashed(job.id));
        let at = Position {
            course: Course {
                place: job.place,
                due: job.due,
                life: job.life,
            },
            priority: job.terms.priority,
            grace_ms: job.grace_ms(),
        };
        self.free_namesake(id);
        let group = job.group.map(|name| self.acquire_group(name));
        let handle = self.jobs.insert(job, id, group);
        self.begin_turn(group, job.place, job.turn);
        self.link(handle, at, way);
        handle
    }

    pub(super) fn position(&self, handle: Handle) -> Position {
        let job = self.jobs.job(handle);
        Position {
            course: job.course(),
            priority: job.terms().priority,
            grace_ms: job.grace_ms(),
        }
    }

    #[inline]
    pub(super) fn change(&mut self, handle: Handle, change: Change) {
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
            Change::Died { .. } => self.count_death(),
            Change::Reserved { .. } => self.note_served(handle),
            _ => {}
        }
        let before = self.position(handle);
        self.unlink(handle, before);
        let after = before.changed(change, self.deaths);
        self.token = self.token.max(after.course.life.token);
        if after.priority != before.priority {
            self.jobs.set_priority(handle, after.priority);
        }
        self.jobs.set_course(handle, after.course);
        if let Change::Reserved { .. } = change {
            self.note_delivered(handle);
        }
        if let Change::Kicked { .. } = change {
            let group = self.jobs.job(handle).group();
            self.begin_turn(group, Place::Scheduled, None);
        }
        self.link(handle, after, None);
        match change {
            Change::TimedOut => {
                let failure = Failure::of_lease(before.course.life.at);
                self.jobs.set_failure(handle, failure);
            }
            Change::Died {
                at,
                cause: Death::TimedOut,
            } => self.jobs.set_failure(handle, Failure::of_lease(at)),
            _ => {}
        }
    }

    /// With its successor.
    pub(super) fn remove(&mut self, handle: Handle) {
        self.remove_successor(handle);
        self.unlink(handle, self.position(handle));
        self.forget_purged(handle);
        self.drop_job(handle);
    }

    /// Puts a job into the lists that its position names.
    #[inline]
    pub(super) fn link(&mut self, handle: Handle, at: Position, way: Option<&InsertHint<u64>>) {
        if let Some(seldom) = self.seldom.made() {
            let all = seldom.purged_jobs.iter_mut();
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
            Place::Reserved => self.reserved.make().insert(life.at, handle, seq),
            Place::Dead => self
                .dead
                .make()
                .insert(life.at, handle, |h| jobs.job(h).life().death),
            Place::Successor => {}
        }
        if at.end() != 0 && place != Place::Reserved {
            self.expiring.make().insert(at.end(), handle, seq);
        }
        if self.jobs.is_followed(handle) {
            self.seldom.make().followed.insert(handle, at.course);
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
        let group = self.group_number(handle);
        let jobs = &self.jobs;
        let seq = |handle| jobs.job(handle).seq();
        let Course { place, life, .. } = at.course;
        let there = match place {
            Place::Scheduled => {
                let is_grouped = group.is_some();
                self.schedule.remove(at.standing(), handle, is_grouped, seq)
            }
            Place::Reserved => self.reserved.make().remove(life.at, handle, seq),
            Place::Dead => self
                .dead
                .make()
                .remove(life.at, handle, |h| jobs.job(h).life().death),
            Place::Successor => true,
        };
        must(there, "a job that is not where its fields say");
        if at.end() != 0 && place != Place::Reserved {
            let there = self.expiring.make().remove(at.end(), handle, seq);
            must(there, "a TTL that is on no list");
        }
        if self.jobs.is_followed(handle) {
            self.seldom.make().followed.remove(handle, at.course);
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

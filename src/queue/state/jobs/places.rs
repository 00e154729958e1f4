//! A job on each list that its position names, and on no other.

use super::Jobs;
use crate::queue::effect::Change;
use crate::queue::job::{GroupNumber, Handle, Place};
use crate::queue::state::position::{EndsAt, Fate, Position};
use crate::queue::state::schedule::OrderKey;
use crate::queue::state::store::{Id, NewJob, Status};
use crate::storage::broken::must;
use crate::storage::skiplist::InsertHint;

/// A lease about to change its place in the order of deadlines.
pub struct Moving {
    from: u64,
    to: u64,
    fate: Fate,
    seq: u64,
    handle: Handle,
}

impl Jobs {
    #[inline(never)]
    pub fn move_end(&mut self, handle: Handle, before: Position, after: Position) {
        let (ended, ends) = (before.ends_at(), after.ends_at());
        if ended != ends {
            self.unlink_end(handle, ended);
            self.link_end(handle, ends);
        }
    }

    #[inline(never)]
    pub fn link_end(&mut self, handle: Handle, at: Option<EndsAt>) {
        let Some(EndsAt {
            expiry,
            at,
            late_due,
        }) = at
        else {
            return;
        };
        let store = &self.store;
        let seq = |handle| store.job(handle).seq();
        self.expiring.insert(expiry as usize, at, handle, seq);
        if let Some(due) = late_due {
            self.cold.make().late.insert(due, handle, seq);
        }
    }

    #[inline(never)]
    pub fn unlink_end(&mut self, handle: Handle, at: Option<EndsAt>) {
        let Some(EndsAt {
            expiry,
            at,
            late_due,
        }) = at
        else {
            return;
        };
        let store = &self.store;
        let seq = |handle| store.job(handle).seq();
        let there = self.expiring.remove(expiry as usize, at, handle, seq)
            && late_due.is_none_or(|due| self.cold.make().late.remove(due, handle, seq));
        must(there, "a TTL that is on no list");
    }

    /// Stores a new job, and puts it into the schedule: one without a rule and a TTL, where all are plain.
    #[inline(always)]
    pub fn put<const GROUPED: bool>(
        &mut self,
        job: &NewJob<'_>,
        id: Id<'_>,
        group: Option<GroupNumber>,
        hint: Option<&InsertHint<u64>>,
    ) -> (Handle, OrderKey) {
        let new = self.store.insert(job, id, group);
        let at = OrderKey {
            priority: job.terms.priority,
            due: job.due,
        };
        let store = &self.store;
        let seq = |handle| match GROUPED && handle == new {
            true => job.seq,
            false => store.job(handle).seq(),
        };
        self.schedule.insert(at, new, GROUPED, hint, seq);
        (new, at)
    }

    /// Puts a job into its lists, except those of TTLs.
    #[inline]
    pub fn link_place(
        &mut self,
        handle: Handle,
        at: &Position,
        is_grouped: bool,
        hint: Option<&InsertHint<u64>>,
    ) {
        if let Some(cold) = self.cold.made() {
            let all = cold.purges.iter_mut();
            all.for_each(|purged_jobs| purged_jobs.linked(handle));
        }
        let store = &self.store;
        let seq = |handle| store.job(handle).seq();
        let Status { place, life, .. } = at.status;
        match place {
            Place::Scheduled => self
                .schedule
                .insert(at.order_key(), handle, is_grouped, hint, seq),
            Place::Reserved => {
                let fate = at.fate() as usize;
                self.reserved.insert(fate, life.at, handle, seq);
            }
            Place::Dead => self
                .dead
                .make()
                .insert(life.at, handle, |h| store.job(h).life().death),
            Place::Successor => {}
            Place::Blocked => {
                let blocked = &mut self.cold.make().blocked;
                blocked.insert(seq(handle), handle, seq);
            }
        }
        if self.successor(handle).is_some() {
            self.cold.make().followed.insert(handle, at.status);
        }
    }

    /// Takes a job out of its lists, except those of TTLs.
    #[inline]
    pub fn unlink_place(&mut self, handle: Handle, at: &Position, is_grouped: bool) {
        let store = &self.store;
        let seq = |handle| store.job(handle).seq();
        let Status { place, life, .. } = at.status;
        let there = match place {
            Place::Scheduled => self
                .schedule
                .remove(at.order_key(), handle, is_grouped, seq),
            Place::Reserved => {
                let fate = at.fate() as usize;
                self.reserved.remove(fate, life.at, handle, seq)
            }
            Place::Dead => self
                .dead
                .make()
                .remove(life.at, handle, |h| store.job(h).life().death),
            Place::Successor => true,
            Place::Blocked => {
                let blocked = &mut self.cold.make().blocked;
                blocked.remove(seq(handle), handle, seq)
            }
        };
        must(there, "a job that is not where its fields say");
        if self.successor(handle).is_some() {
            self.cold.make().followed.remove(handle, at.status);
        }
    }

    /// Puts stored jobs with one order key and without groups into the schedule, in the order of their adding.
    pub fn link_together(&mut self, at: OrderKey, handles: &[Handle]) {
        let store = &self.store;
        let seq = |handle| store.job(handle).seq();
        self.schedule.insert_together(at, handles, seq);
    }

    /// Sorts the blocked jobs by new numbers, in the same order.
    pub(super) fn list_blocked_anew(&mut self) {
        let store = &self.store;
        let seq = |handle| store.job(handle).seq();
        let blocked = &mut self.cold.make().blocked;
        let all: Vec<Handle> = blocked.iter().map(|(_, handle)| handle).collect();
        *blocked = Default::default();
        for handle in all {
            blocked.insert(seq(handle), handle, seq);
        }
    }

    /// Gives a reserved job a new lease. It keeps its old place in the order of deadlines until [`Jobs::move_leases`].
    /// `None`, and nothing happens, if more than its deadline would change.
    pub fn touch(&mut self, handle: Handle, change: Change<'_>) -> Option<Moving> {
        let before = self.position(handle);
        let after = before.changed(change, 0);
        let is_alike = before.fate() == after.fate() && before.ends_at() == after.ends_at();
        if self.has_purged() || !is_alike {
            return None;
        }
        let moving = Moving {
            from: before.status.life.at,
            to: after.status.life.at,
            fate: before.fate(),
            seq: self.seq(handle),
            handle,
        };
        self.store.set_status(handle, after.status);
        if self.successor(handle).is_some() {
            let followed = &mut self.cold.make().followed;
            followed.remove(handle, before.status);
            followed.insert(handle, after.status);
        }
        Some(moving)
    }

    pub fn move_leases(&mut self, moving: &mut Vec<Moving>) {
        let store = &self.store;
        let seq = |handle| store.job(handle).seq();
        moving.sort_unstable_by_key(|it| (it.fate as usize, it.from, it.seq, it.handle));
        for of_fate in moving.chunk_by_mut(|a, b| a.fate == b.fate) {
            let fate = of_fate[0].fate as usize;
            let from: Vec<_> = of_fate.iter().map(|it| (it.from, it.handle)).collect();
            let there = self.reserved.remove_sorted(fate, &from, seq);
            must(there, "leases that are not where they were");
            of_fate.sort_unstable_by_key(|it| (it.to, it.seq, it.handle));
            let to: Vec<_> = of_fate.iter().map(|it| (it.to, it.handle)).collect();
            self.reserved.insert_sorted(fate, &to, seq);
        }
        moving.clear();
    }

    /// The successor of a job. Where jobs are plain none has one, and nothing else is asked.
    #[inline]
    pub fn successor(&self, handle: Handle) -> Option<Handle> {
        match self.are_plain() {
            true => None,
            false => self.store.successor(handle),
        }
    }

    /// The job must have no successor.
    pub fn set_successor(&mut self, handle: Handle, successor: Handle) {
        self.store.set_successor(handle, successor);
        let status = self.store.job(handle).status();
        self.cold.make().followed.insert(handle, status);
    }

    pub fn take_successor(&mut self, handle: Handle) -> Option<Handle> {
        let successor = self.store.take_successor(handle)?;
        // The entry of a purged job was taken out by its purge.
        if !self.is_purged(handle) {
            let status = self.store.job(handle).status();
            self.cold.make().followed.remove(handle, status);
        }
        Some(successor)
    }
}

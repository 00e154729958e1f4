//! Purges and trims carried out.

use super::bounds::{check_instant, malformed};
use super::groups::Groups;
use super::jobs::Freed;
use super::position::Fate;
use super::purged::{Purged, MANY, SUMMED};
use super::store::Id;
use super::Queue;
use crate::queue::effect::Purge;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, State};
use crate::storage::broken::there;

/// Purges of up to this many jobs update the groups of their jobs at once.
const AT_ONCE: usize = if cfg!(test) { 3 } else { 2000 };

impl Queue {
    pub(super) fn apply_purge(&mut self, purge: Purge) -> Result<(), QueueError> {
        match purge {
            Purge::State { state, cut } => {
                check_instant(cut)?;
                self.purge_state(state, cut);
            }
            Purge::Overdue { dead, cut } => {
                check_instant(cut)?;
                let fate = if dead { Fate::Dies } else { Fate::Ready };
                self.purge_overdue(fate, cut);
            }
            Purge::Trim { count } => {
                let dead = self.jobs.dead().len();
                let count = usize::try_from(count).ok().filter(|&count| count <= dead);
                self.trim(count.ok_or(malformed("more dead jobs than there are"))?);
            }
        }
        Ok(())
    }

    /// Delayed is what is due after `cut`, ready the rest of the schedule.
    fn purge_state(&mut self, state: Option<State>, cut: u64) {
        let count = self.jobs.taken_by(state, cut);
        match state {
            None => self.purge_all(),
            Some(State::Delayed) => self.let_go(Purged::Dues(cut + 1..=u64::MAX), count),
            Some(State::Ready) => self.let_go(Purged::Dues(0..=cut), count),
            Some(State::Reserved) => self.let_go(Purged::Leases(cut + 1..=u64::MAX), count),
            Some(State::Done) => {
                self.parts.set_done_aside(&self.jobs);
                self.note_done();
            }
            Some(State::Dead) => self.let_go(Purged::DeadBefore((u64::MAX, u64::MAX)), count),
            Some(State::Blocked) => self.let_go(Purged::Blocked, count),
        }
    }

    /// Groups that have settings stay: then one state goes after the other, those first that wait for others.
    fn purge_all(&mut self) {
        if !self.parts.has_own() {
            return self.noting_removed(Self::set_jobs_aside);
        }
        let jobs = &self.jobs;
        let all = [
            (Purged::Blocked, jobs.blocked_len()),
            (Purged::Dues(0..=u64::MAX), jobs.schedule().len()),
            (Purged::Leases(0..=u64::MAX), jobs.reserved().len()),
            (Purged::DeadBefore((u64::MAX, u64::MAX)), jobs.dead().len()),
        ];
        for (purged, count) in all {
            self.let_go(purged, count);
        }
    }

    /// Purges reserved jobs of this fate whose leases had ended by `cut`.
    fn purge_overdue(&mut self, fate: Fate, cut: u64) {
        let of_fate = self.jobs.reserved().list(fate as usize);
        let count = of_fate.count_below(cut, true);
        // The lists of jobs with successors are not split by fates, so a purge of many cannot take some of them: these
        // are removed one by one.
        let followed = self.jobs.followed().leased_by(cut);
        let followed = followed.filter(|&handle| self.jobs.position(handle).fate() == fate);
        let followed: Vec<Handle> = followed.collect();
        let count = count - followed.len();
        self.noting_removed(|queue| {
            followed.into_iter().for_each(|handle| queue.remove(handle));
        });
        self.let_go(Purged::Overdue { fate, cut }, count);
    }

    /// Removes the `count` jobs that have been dead longest.
    fn trim(&mut self, count: usize) {
        let mark = |(at, handle)| (at, self.jobs.job(handle).life().death);
        let last = count
            .checked_sub(1)
            .and_then(|last| self.jobs.dead().nth(last))
            .map(mark);
        let kept = self
            .jobs
            .dead()
            .nth(count)
            .map_or((u64::MAX, u64::MAX), mark);
        if last.is_some_and(|last| last < kept) {
            return self.let_go(Purged::DeadBefore(kept), count);
        }
        // A forged payload can make them equal to jobs that stay.
        for _ in 0..count {
            let (_, handle) = there(self.jobs.dead().first(), "fewer dead jobs than there are");
            self.remove(handle);
        }
    }

    /// Removes the jobs that `purged` names, `count` of them: few at once; many are detached, and freed later.
    fn let_go(&mut self, purged: Purged, count: usize) {
        self.noting_removed(|queue| {
            if count == queue.jobs.listed_len() && !queue.parts.has_own() {
                queue.set_jobs_aside();
            } else if count <= MANY {
                let handles = queue.jobs.named_by(&purged, count);
                handles.into_iter().for_each(|handle| queue.remove(handle));
            } else {
                queue.detach(purged, count);
            }
        });
    }

    /// Detaches the jobs that `purged` names, `count` of them.
    fn detach(&mut self, purged: Purged, count: usize) {
        if self.parts.flows.is_some() && count <= SUMMED {
            let going = self.jobs.named_by(&purged, count);
            let leave = |it| self.parts.drop_record(&self.jobs, it);
            going.into_iter().for_each(leave);
        }
        let groups = self.parts.groups.as_mut();
        let leaves_now =
            |it: &mut Box<Groups>| count <= AT_ONCE || !it.purge_later(&purged, count, &self.jobs);
        if groups.is_some_and(leaves_now) {
            let leaving = self.jobs.named_by(&purged, count);
            self.parts.leave_groups(&mut self.jobs, &leaving);
        }
        if purged == Purged::Blocked {
            self.parts.set_waits_aside(&self.jobs);
        }
        self.jobs.detach(purged, count);
    }

    /// Whether there is work left that no command shows.
    pub fn has_leftovers(&self) -> bool {
        self.jobs.has_purged() || self.is_passing() || self.jobs.is_scattered()
    }

    /// Does up to `budget` of the work that [`Queue::has_leftovers`] tells of; returns the unused budget.
    pub fn work_off(&mut self, budget: usize) -> usize {
        let left = self.parts.update_groups(&self.jobs, budget);
        let left = self.free_purged(left);
        self.gather(left)
    }

    /// Frees up to `budget` purged jobs; returns the unused budget. Not an effect: no command shows a difference.
    pub fn free_purged(&mut self, budget: usize) -> usize {
        let mut left = budget;
        while left > 0 {
            match self.jobs.pop_purged() {
                None => break,
                Some(Freed::Entry) => {}
                Some(Freed::Job(handle)) => {
                    left = left.saturating_sub(self.jobs.notes(handle).beside_len());
                    self.free_purged_job(handle);
                }
            }
            left = left.saturating_sub(1);
        }
        left
    }

    /// Frees a purged job whose id a new job gets.
    pub(super) fn free_namesake(&mut self, id: Id<'_>) {
        if self.jobs.has_purged() {
            let namesake = self.jobs.find_any(id);
            if let Some(handle) = namesake.filter(|&it| self.jobs.is_purged(it)) {
                self.free_purged_job(handle);
            }
        }
    }

    pub(in crate::queue) fn free_purged_job(&mut self, handle: Handle) {
        self.free_purged_successor(handle);
        self.jobs.forget_bytes(handle);
        let at = self.jobs.position(handle);
        self.jobs.unlink_end(handle, at.ends_at());
        self.jobs.forget_purged(handle);
        self.drop_job(handle);
    }

    pub(in crate::queue) fn free_purged_successor(&mut self, handle: Handle) {
        if self.jobs.successor(handle).is_some() {
            let before = self.jobs.content_of(handle);
            self.remove_successor(handle);
            self.jobs.forget_successor_bytes(handle, before);
        }
    }
}

//! Purges and trims carried out.

use super::bounds::{check_instant, malformed};
use super::groups::Groups;
use super::jobs::{Freed, Jobs};
use super::parts::Parts;
use super::position::Fate;
use super::purged::{Purged, SUMMED};
use super::store::Id;
use super::Queue;
use crate::queue::budget::steps_of_bytes;
use crate::queue::effect::Purge;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, State};
use crate::storage::broken::there;

/// Purges of up to this many jobs update the groups of their jobs at once.
const AT_ONCE: usize = if cfg!(test) { 3 } else { 2000 };

impl Queue {
    /// Whether there is work left that no command shows.
    pub fn has_leftovers(&self) -> bool {
        self.jobs.has_purged() || self.parts.is_passing() || self.jobs.is_scattered()
    }

    /// Frees a purged job, which was found in a list of TTLs.
    pub(in crate::queue) fn free_purged_job(&mut self, handle: Handle) {
        self.parts.free_purged_job(&mut self.jobs, handle);
    }

    /// Does up to `budget` of the work that [`Queue::has_leftovers`] tells of; returns the unused budget.
    pub fn work_off(&mut self, budget: usize) -> usize {
        let left = self.parts.update_groups(&self.jobs, budget);
        let left = self.parts.free_purged(&mut self.jobs, left);
        self.parts.gather(&mut self.jobs, left)
    }
}

impl Parts {
    /// Removes many jobs at once, by `remove`. Those that clients wait for are looked up before and after.
    pub(super) fn noting_removed(
        &mut self,
        jobs: &mut Jobs,
        remove: impl FnOnce(&mut Self, &mut Jobs),
    ) {
        let departures = self.cold.departures.as_ref();
        let going = departures.map(|it| it.about_to_go(jobs));
        remove(self, jobs);
        if let Some((departures, going)) = self.departures().zip(going) {
            departures.gone(going, jobs);
        }
    }

    pub(super) fn apply_purge(&mut self, jobs: &mut Jobs, purge: Purge) -> Result<(), QueueError> {
        match purge {
            Purge::State { state, cut } => {
                check_instant(cut)?;
                self.purge_state(jobs, state, cut);
            }
            Purge::Overdue { dead, cut } => {
                check_instant(cut)?;
                let fate = if dead { Fate::Dies } else { Fate::Ready };
                self.purge_overdue(jobs, fate, cut);
            }
            Purge::Trim { count } => {
                let dead = jobs.dead().len();
                let count = usize::try_from(count).ok().filter(|&count| count <= dead);
                self.trim(
                    jobs,
                    count.ok_or(malformed("more dead jobs than there are"))?,
                );
            }
        }
        Ok(())
    }

    /// Delayed is what is due after `cut`, ready the rest of the schedule.
    fn purge_state(&mut self, jobs: &mut Jobs, state: Option<State>, cut: u64) {
        let count = jobs.taken_by(state, cut);
        match state {
            None => self.purge_all(jobs),
            Some(State::Delayed) => self.let_go(jobs, Purged::Dues(cut + 1..=u64::MAX), count),
            Some(State::Ready) => self.let_go(jobs, Purged::Dues(0..=cut), count),
            Some(State::Reserved) => self.let_go(jobs, Purged::Leases(cut + 1..=u64::MAX), count),
            Some(State::Done) => self.set_done_aside(jobs),
            Some(State::Dead) => self.let_go(jobs, Purged::DeadBefore((u64::MAX, u64::MAX)), count),
            Some(State::Blocked) => self.let_go(jobs, Purged::Blocked, count),
        }
    }

    /// Groups that have settings stay: then one state goes after the other, those first that wait for others.
    fn purge_all(&mut self, jobs: &mut Jobs) {
        if !self.has_own() {
            return self.noting_removed(jobs, Self::set_jobs_aside);
        }
        let all = [
            (Purged::Blocked, jobs.blocked_len()),
            (Purged::Dues(0..=u64::MAX), jobs.schedule().len()),
            (Purged::Leases(0..=u64::MAX), jobs.reserved().len()),
            (Purged::DeadBefore((u64::MAX, u64::MAX)), jobs.dead().len()),
        ];
        for (purged, count) in all {
            self.let_go(jobs, purged, count);
        }
    }

    /// Purges reserved jobs of this fate whose leases had ended by `cut`.
    fn purge_overdue(&mut self, jobs: &mut Jobs, fate: Fate, cut: u64) {
        let of_fate = jobs.reserved().list(fate as usize);
        let count = of_fate.count_below(cut, true);
        // The lists of jobs with successors are not split by fates, so a purge of many cannot take some of them: these
        // are removed one by one.
        let followed = jobs.followed().leased_by(cut);
        let followed = followed.filter(|&handle| jobs.position(handle).fate() == fate);
        let followed: Vec<Handle> = followed.collect();
        let count = count - followed.len();
        self.noting_removed(jobs, |parts, jobs| {
            followed
                .into_iter()
                .for_each(|handle| parts.remove(jobs, handle));
        });
        self.let_go(jobs, Purged::Overdue { fate, cut }, count);
    }

    /// Removes the `count` jobs that have been dead longest.
    fn trim(&mut self, jobs: &mut Jobs, count: usize) {
        let mark = |(at, handle)| (at, jobs.job(handle).life().death);
        let last = count
            .checked_sub(1)
            .and_then(|last| jobs.dead().nth(last))
            .map(mark);
        let kept = jobs.dead().nth(count).map_or((u64::MAX, u64::MAX), mark);
        if last.is_some_and(|last| last < kept) {
            return self.let_go(jobs, Purged::DeadBefore(kept), count);
        }
        // A forged payload can make them equal to jobs that stay.
        for _ in 0..count {
            let (_, handle) = there(jobs.dead().first(), "fewer dead jobs than there are");
            self.remove(jobs, handle);
        }
    }

    /// Removes the jobs that `purged` names, `count` of them: few at once; many are detached, and freed later.
    fn let_go(&mut self, jobs: &mut Jobs, purged: Purged, count: usize) {
        self.noting_removed(jobs, |parts, jobs| {
            if count == jobs.listed_len() && !parts.has_own() {
                parts.set_jobs_aside(jobs);
            } else if let Some(handles) = jobs.few(count, || jobs.named_by(&purged, count)) {
                handles.into_iter().for_each(|it| parts.remove(jobs, it));
            } else {
                parts.detach(jobs, purged, count);
            }
        });
    }

    /// Detaches the jobs that `purged` names, `count` of them.
    fn detach(&mut self, jobs: &mut Jobs, purged: Purged, count: usize) {
        if self.flows.is_some() && count <= SUMMED {
            let going = jobs.named_by(&purged, count);
            let leave = |it| self.drop_record(jobs, it);
            going.into_iter().for_each(leave);
        }
        let groups = self.groups.as_mut();
        let leaves_now =
            |it: &mut Box<Groups>| count <= AT_ONCE || !it.purge_later(&purged, count, jobs);
        if groups.is_some_and(leaves_now) {
            let leaving = jobs.named_by(&purged, count);
            self.leave_groups(jobs, &leaving);
        } else if let (Some(flows), Purged::Dues(_) | Purged::Leases(_)) =
            (&mut self.flows, &purged)
        {
            flows.note_all_emptied();
        }
        if purged == Purged::Blocked {
            self.set_waits_aside(jobs);
        }
        jobs.detach(purged, count);
    }

    /// Frees up to `budget` purged jobs; returns the unused budget. Not an effect: no command shows a difference.
    pub fn free_purged(&mut self, jobs: &mut Jobs, budget: usize) -> usize {
        let mut left = budget;
        while left > 0 {
            match jobs.pop_purged() {
                None => break,
                Some(Freed::Entry) => {}
                Some(Freed::Job(handle)) => {
                    let of_bytes = steps_of_bytes(jobs.content_of(handle));
                    left = left.saturating_sub(jobs.notes(handle).beside_len() + of_bytes);
                    self.free_purged_job(jobs, handle);
                }
            }
            left = left.saturating_sub(1);
        }
        left
    }

    /// Frees a purged job whose id a new job gets.
    pub(super) fn free_namesake(&mut self, jobs: &mut Jobs, id: Id<'_>) {
        let namesake = jobs.find_any(id);
        if let Some(handle) = namesake.filter(|&it| jobs.is_purged(it)) {
            self.free_purged_job(jobs, handle);
        }
    }

    fn free_purged_job(&mut self, jobs: &mut Jobs, handle: Handle) {
        self.free_purged_successor(jobs, handle);
        jobs.forget_bytes(handle);
        let at = jobs.position(handle);
        jobs.unlink_end(handle, at.ends_at());
        jobs.forget_purged(handle);
        self.drop_job(jobs, handle);
    }

    fn free_purged_successor(&mut self, jobs: &mut Jobs, handle: Handle) {
        if jobs.successor(handle).is_some() {
            let before = jobs.content_of(handle);
            self.remove_successor(jobs, handle);
            jobs.forget_successor_bytes(handle, before);
        }
    }
}

//! Purges and trims carried out.

use super::apply::{check_instant, malformed};
use super::position::Fate;
use super::purged::{Purged, MANY};
use super::Queue;
use crate::queue::effect::Purge;
use crate::queue::error::QueueError;
use crate::queue::job::{Handle, Place, State};
use crate::storage::broken::there;

impl Queue {
    /// How many jobs a purge of a state takes: of the reserved ones, those whose leases end after `cut`.
    pub(in crate::queue) fn taken_by(&self, state: Option<State>, cut: u64) -> usize {
        match state {
            Some(State::Reserved) => self.reserved.len() - self.reserved.count_by(cut),
            _ => self.standing_in(state, cut),
        }
    }

    /// How many jobs stand in the place of a state at the instant `cut`, or in any.
    pub(in crate::queue) fn standing_in(&self, state: Option<State>, cut: u64) -> usize {
        let ready = || self.schedule.ready_len(cut);
        match state {
            None => self.live_len() + self.dead.len(),
            Some(State::Delayed) => self.schedule.len() - ready(),
            Some(State::Ready) => ready(),
            Some(State::Reserved) => self.reserved.len(),
            Some(State::Dead) => self.dead.len(),
            Some(State::Done) => self.done.len(),
            Some(State::Blocked) => self.blocked_len(),
        }
    }

    pub(super) fn apply_purge(&mut self, purge: Purge) -> Result<(), QueueError> {
        match purge {
            Purge::State { state, cut } => {
                check_instant(cut)?;
                self.purge_state(state, cut);
            }
            Purge::Overdue { dead, cut } => {
                check_instant(cut)?;
                let fate = if dead { Fate::Dies } else { Fate::Back };
                self.purge_overdue(fate, cut);
            }
            Purge::Trim { count } => {
                let dead = self.dead.len();
                let count = usize::try_from(count).ok().filter(|&count| count <= dead);
                self.trim(count.ok_or(malformed("more dead jobs than there are"))?);
            }
        }
        Ok(())
    }

    /// Delayed is what is due after `cut`, ready the rest of the schedule.
    fn purge_state(&mut self, state: Option<State>, cut: u64) {
        let count = self.taken_by(state, cut);
        match state {
            None => self.noting_removed(Self::set_jobs_aside),
            Some(State::Delayed) => self.let_go(Purged::Dues(cut + 1..=u64::MAX), count),
            Some(State::Ready) => self.let_go(Purged::Dues(0..=cut), count),
            Some(State::Reserved) => self.let_go(Purged::Leases(cut + 1..=u64::MAX), count),
            Some(State::Done) => {
                self.set_done_aside();
                self.note_done();
            }
            Some(State::Dead) => self.let_go(Purged::DeadBefore((u64::MAX, u64::MAX)), count),
            Some(State::Blocked) => self.let_go(Purged::Blocked, count),
        }
    }

    /// Purges reserved jobs of this fate whose leases had ended by `cut`.
    fn purge_overdue(&mut self, fate: Fate, cut: u64) {
        let of_fate = self.reserved.list(fate as usize);
        let count = of_fate.count_below(cut, true);
        // The lists of jobs with successors are not split by fates, so a purge of many cannot take some of them: these
        // are removed one by one.
        let followed = self.followed().leased_by(cut);
        let followed = followed.filter(|&handle| self.position(handle).fate() == fate);
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
            .and_then(|last| self.dead.nth(last))
            .map(mark);
        let kept = self.dead.nth(count).map_or((u64::MAX, u64::MAX), mark);
        if last.is_some_and(|last| last < kept) {
            return self.let_go(Purged::DeadBefore(kept), count);
        }
        // A forged payload can make them equal to jobs that stay.
        for _ in 0..count {
            let (_, handle) = there(self.dead.first(), "fewer dead jobs than there are");
            self.remove(handle);
        }
    }

    /// Removes the jobs that `purged` names, `count` of them: few at once; many are detached, and freed later.
    fn let_go(&mut self, purged: Purged, count: usize) {
        self.noting_removed(|queue| {
            if count == queue.live_len() + queue.dead.len() {
                queue.set_jobs_aside();
            } else if count <= MANY {
                let handles = queue.handles_of(&purged, count);
                handles.into_iter().for_each(|handle| queue.remove(handle));
            } else {
                queue.detach_purged(purged, count);
            }
        });
    }

    pub(super) fn handles_of(&self, purged: &Purged, count: usize) -> Vec<Handle> {
        let seq = |handle| self.jobs.job(handle).seq();
        let of = |handles: &mut dyn Iterator<Item = (u64, Handle)>| {
            handles.take(count).map(|(_, handle)| handle).collect()
        };
        match purged {
            Purged::Dues(dues) => of(&mut self.schedule.by_due(*dues.start(), seq)),
            Purged::Leases(ends) => of(&mut self.leases_from(*ends.start())),
            Purged::Overdue { fate, .. } => of(&mut self.reserved.list(*fate as usize).iter()),
            Purged::DeadBefore(_) => of(&mut self.dead.iter()),
            Purged::Blocked => {
                let flows = self.flows.iter();
                of(&mut flows.flat_map(|flows| flows.blocked().iter()))
            }
        }
    }
}

/// Says which jobs a purge or a trim that is about to be carried out takes.
pub(super) fn goes_with(queue: &Queue, purge: Purge) -> Box<dyn Fn(Handle) -> bool + '_> {
    let course = move |handle| queue.jobs.job(handle).course();
    let at = move |handle, place| course(handle).place == place;
    match purge {
        Purge::State { state, cut } => match state {
            // No job is left that waits for them.
            None | Some(State::Blocked | State::Done) => Box::new(|_| false),
            Some(State::Delayed) => {
                Box::new(move |job| at(job, Place::Scheduled) && course(job).due > cut)
            }
            Some(State::Ready) => {
                Box::new(move |job| at(job, Place::Scheduled) && course(job).due <= cut)
            }
            Some(State::Reserved) => {
                Box::new(move |job| at(job, Place::Reserved) && course(job).life.at > cut)
            }
            Some(State::Dead) => Box::new(move |job| at(job, Place::Dead)),
        },
        Purge::Trim { count } => {
            let of = move |handle| (course(handle).life.at, course(handle).life.death);
            let kept = usize::try_from(count)
                .ok()
                .and_then(|at| queue.dead.nth(at));
            let kept = kept.map_or((u64::MAX, u64::MAX), |(_, handle)| of(handle));
            Box::new(move |job| at(job, Place::Dead) && of(job) < kept)
        }
        // None is left where jobs are after others: there all that is overdue is carried out first.
        Purge::Overdue { .. } => Box::new(|_| false),
    }
}

//! DEL and PURGE decided.

use super::clock::Now;
use super::effect::{Change, Effect, Effects, Event, Removal};
use super::ghosts::{Purged, MANY};
use super::job::{Handle, Place, State};
use super::Queue;

impl Queue {
    /// Removes a job in any state, reserved ones only where they are not spared, and its memory;
    /// whether a job went.
    pub fn delete(&mut self, id: &[u8], spare_reserved: bool, now: Now, out: &mut Effects) -> bool {
        let handle = self.find_settled(self.jobs.hashed(id), now, out);
        if let Some(handle) = handle {
            if spare_reserved && self.jobs.job(handle).place() == Place::Reserved {
                return false;
            }
            let change = Change::Removed {
                cause: Removal::Deleted,
                remember: 0,
            };
            self.commit_job(handle, change, now, out);
        }
        if self.memory.until(id).is_some() {
            self.commit(&Effect::ForgotId { id }, out);
        }
        handle.is_some()
    }

    /// Removes all jobs of a state, or all; returns how many. Memories stay.
    pub fn purge(&mut self, state: Option<State>, now: Now, out: &mut Effects) -> u64 {
        // Ready jobs whose lease is over, as far as they are ended in time; none goes as reserved.
        self.settle_for(0, Place::Scheduled, now, out);
        let cut = now.ms();
        let count = match state {
            None => self.live_len() + self.dead.len(),
            Some(State::Reserved) => self.leases_after(cut),
            Some(_) => self.len(state, now),
        };
        if count > 0 {
            let effect = match state {
                Some(State::Reserved) => Effect::PurgedLeases { cut },
                _ => Effect::Purged { state, cut },
            };
            let successors = self.successors_of(state, now);
            self.commit(&effect, out);
            self.count_deleted(count + successors, out);
        }
        count as u64
    }

    pub(super) fn count_deleted(&mut self, count: usize, out: &mut Effects) {
        self.totals.deleted += count as u64;
        out.totals.deleted += count as u64;
        out.raise(Event::Del);
    }

    fn leases_after(&self, cut: u64) -> usize {
        self.reserved.len() - self.reserved.count_below(cut, true)
    }

    /// Of jobs in that state whose lease is not over, or in any.
    fn successors_of(&self, state: Option<State>, now: Now) -> usize {
        let goes = |handle| match state {
            None => true,
            Some(State::Reserved) => {
                let job = self.jobs.job(handle);
                job.place() == Place::Reserved && job.life().at > now.ms()
            }
            Some(state) => self.state_of(handle, now) == state,
        };
        let jobs = self.jobs.successors().map(|(job, _)| job);
        jobs.filter(|&job| !self.is_ghost(job) && goes(job)).count()
    }

    /// Carries out a purge: delayed is what is due after `cut`, ready the rest of the schedule.
    pub(super) fn apply_purge(&mut self, state: Option<State>, cut: u64) {
        let count = self.len(state, Now::from_ms(cut));
        match state {
            None => self.set_jobs_aside(),
            Some(State::Delayed) => self.let_go(Purged::Dues(cut + 1..=u64::MAX), count),
            Some(State::Ready) => self.let_go(Purged::Dues(0..=cut), count),
            Some(State::Reserved) => self.let_go(Purged::Leases(0..=u64::MAX), count),
            Some(State::Dead) => self.let_go(Purged::DeadBefore((u64::MAX, u64::MAX)), count),
        }
    }

    pub(super) fn apply_purge_of_leases(&mut self, cut: u64) {
        let purged = Purged::Leases(cut + 1..=u64::MAX);
        self.let_go(purged, self.leases_after(cut));
    }

    /// Removes so many of the longest dead.
    pub(super) fn apply_trim(&mut self, count: usize) {
        let mark = |(at, handle)| (at, self.jobs.job(handle).life().death);
        let last = count
            .checked_sub(1)
            .and_then(|last| self.dead.nth(last))
            .map(mark);
        let kept = self.dead.nth(count).map_or((u64::MAX, u64::MAX), mark);
        if last.is_some_and(|last| last < kept) {
            return self.let_go(Purged::DeadBefore(kept), count);
        }
        // They cannot be told from those that stay, in a forged payload.
        for _ in 0..count {
            if let Some((_, handle)) = self.dead.first() {
                self.remove(handle);
            }
        }
    }

    /// Removes those jobs, `count` of them: few at once, many by leaving them to be freed later.
    fn let_go(&mut self, purged: Purged, count: usize) {
        if count == self.live_len() + self.dead.len() {
            self.set_jobs_aside();
        } else if count <= MANY {
            let handles = self.handles_of(&purged, count);
            handles.into_iter().for_each(|handle| self.remove(handle));
        } else {
            self.make_ghosts(purged, count);
        }
    }

    pub(super) fn handles_of(&self, purged: &Purged, count: usize) -> Vec<Handle> {
        let seq = |handle| self.jobs.job(handle).seq();
        let of = |handles: &mut dyn Iterator<Item = (u64, Handle)>| {
            handles.take(count).map(|(_, handle)| handle).collect()
        };
        match purged {
            Purged::Dues(dues) => of(&mut self.schedule.by_due(*dues.start(), seq)),
            Purged::Leases(ends) => of(&mut self.reserved.iter_from(*ends.start())),
            Purged::DeadBefore(_) => of(&mut self.dead.iter()),
        }
    }
}

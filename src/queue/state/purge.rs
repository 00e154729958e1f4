//! Purges and trims carried out.

use super::purged::{Purged, MANY};
use super::Queue;
use crate::queue::clock::Now;
use crate::queue::job::{Handle, State};
use crate::storage::broken::there;

impl Queue {
    pub(in crate::queue) fn leases_after(&self, cut: u64) -> usize {
        self.reserved.len() - self.reserved.count_below(cut, true)
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
            let (_, handle) = there(self.dead.first(), "fewer dead jobs than there are");
            self.remove(handle);
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
            self.detach_purged(purged, count);
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

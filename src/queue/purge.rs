//! DEL and PURGE decided.

use super::clock::Now;
use super::effect::{Change, Effect, Removal};
use super::effects::Effects;
use super::job::{Place, State};
use super::Queue;

impl Queue {
    /// Removes a job in any state, reserved ones only where they are not spared, and its memory;
    /// whether a job went.
    pub fn delete(&mut self, id: &[u8], spare_reserved: bool, now: Now, out: &mut Effects) -> bool {
        let handle = self.find_settled(self.jobs().hashed(id), now, out);
        if let Some(handle) = handle {
            if spare_reserved && self.jobs().job(handle).place() == Place::Reserved {
                return false;
            }
            let change = Change::Removed {
                cause: Removal::Deleted,
                remember: 0,
            };
            self.commit_job(handle, change, now, out);
        }
        if self.remembered_until(id).is_some() {
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
            None => self.live_len() + self.dead().len(),
            Some(State::Reserved) => self.leases_after(cut),
            Some(_) => self.len(state, now),
        };
        if count > 0 {
            let effect = match state {
                Some(State::Reserved) => Effect::PurgedLeases { cut },
                _ => Effect::Purged { state, cut },
            };
            let successors = self.successors_of(state, now);
            self.commit_purge(&effect, count + successors, out);
        }
        count as u64
    }

    /// Of jobs in that state whose lease is not over, or in any.
    fn successors_of(&self, state: Option<State>, now: Now) -> usize {
        let (followed, cut) = (self.followed(), now.ms());
        match state {
            None => followed.len(),
            Some(State::Delayed) => followed.due_after(cut),
            Some(State::Ready) => followed.due_by(cut),
            Some(State::Reserved) => followed.leased_beyond(cut),
            Some(State::Dead) => 0,
        }
    }
}

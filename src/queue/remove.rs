//! DEL and PURGE decided.

use super::clock::Now;
use super::effect::{Change, Effect, Effects, Event, Removal};
use super::job::{Handle, Place, State};
use super::Queue;

impl Queue {
    /// Removes a job in any state, reserved ones only where they are not spared, and its memory;
    /// whether a job went.
    pub fn delete(&mut self, id: &[u8], spare_reserved: bool, now: Now, out: &mut Effects) -> bool {
        let handle = self.find_settled(id, now, out);
        if let Some(handle) = handle {
            if spare_reserved && self.jobs.place(handle) == Place::Reserved {
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
        let count = self.len(state, now) as u64
            + if state.is_none() {
                self.dead.len() as u64
            } else {
                0
            };
        if count > 0 {
            let cut = now.ms();
            self.commit(&Effect::Purged { state, cut }, out);
            self.totals.deleted += count;
            out.totals.deleted += count;
            out.raise(Event::Del);
        }
        count
    }

    /// Carries out a purge: delayed is what is due after `cut`, ready the rest of the schedule.
    pub(super) fn apply_purge(&mut self, state: Option<State>, cut: u64) {
        let Some(state) = state else {
            let hasher = self.jobs.hasher().clone();
            self.jobs = super::Store::new(hasher);
            self.schedule = Default::default();
            self.reserved = Default::default();
            self.dead = Default::default();
            self.expiring = Default::default();
            return;
        };
        let seq = |handle| self.jobs.seq(handle);
        let handles: Vec<Handle> = match state {
            State::Delayed => self.schedule.by_due(cut + 1, seq).map(|(_, h)| h).collect(),
            State::Ready => self
                .schedule
                .by_due(0, seq)
                .take_while(|&(due, _)| due <= cut)
                .map(|(_, h)| h)
                .collect(),
            State::Reserved => self.reserved.iter().map(|(_, h)| h).collect(),
            State::Dead => self.dead.iter().map(|(_, h)| h).collect(),
        };
        handles.into_iter().for_each(|handle| self.remove(handle));
    }
}

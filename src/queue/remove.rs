//! DEL and PURGE decided.

use super::clock::Now;
use super::effect::{Change, Effect, Effects, Event, Removal};
use super::ghosts::{Ghosts, MANY, PURGES};
use super::job::{Handle, Place, State};
use super::settle::OUT_OF_TURN;
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
        // Lest jobs whose lease is over be purged as reserved.
        self.settle_for(OUT_OF_TURN as u64, now, out);
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
        let at_cut = Now::from_ms(cut);
        if self.ghosts.len() == PURGES {
            // Perhaps the latest were not many.
            self.bury(MANY);
        }
        match state {
            None => self.set_jobs_aside(),
            Some(of) => match self.len(state, at_cut) {
                going if going == self.live_len() + self.dead.len() => self.set_jobs_aside(),
                going if going <= MANY || self.ghosts.len() == PURGES => {
                    let handles = self.handles_of(of, cut);
                    handles.into_iter().for_each(|handle| self.remove(handle));
                }
                _ => self.make_ghosts(of, cut),
            },
        }
    }

    fn handles_of(&self, state: State, cut: u64) -> Vec<Handle> {
        let seq = |handle| self.jobs.job(handle).seq();
        let handle = |(_, handle)| handle;
        match state {
            State::Delayed => self.schedule.by_due(cut + 1, seq).map(handle).collect(),
            State::Ready => {
                let due = move |&(due, _): &(u64, Handle)| due <= cut;
                let ready = self.schedule.by_due(0, seq).take_while(due);
                ready.map(handle).collect()
            }
            State::Reserved => self.reserved.iter().map(handle).collect(),
            State::Dead => self.dead.iter().map(handle).collect(),
        }
    }

    fn make_ghosts(&mut self, state: State, cut: u64) {
        let (place, dues) = match state {
            State::Delayed => (Place::Scheduled, cut + 1..=u64::MAX),
            State::Ready => (Place::Scheduled, 0..=cut),
            State::Reserved => (Place::Reserved, 0..=u64::MAX),
            State::Dead => (Place::Dead, 0..=u64::MAX),
        };
        let (mut detached, mut list) = Default::default();
        match place {
            Place::Scheduled => detached = self.schedule.detach(dues.clone()),
            Place::Reserved => list = std::mem::take(&mut self.reserved),
            Place::Dead => list = std::mem::take(&mut self.dead),
        }
        self.ghosts.push(Ghosts::new(place, dues, detached, list));
    }
}

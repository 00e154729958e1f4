//! DEL and PURGE decided.

use super::clock::Now;
use super::effect::{Change, Effect, Effects, Event, Removal};
use super::job::{Handle, Place, State};
use super::settle::SETTLE_BUDGET;
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
        self.settle(now, SETTLE_BUDGET, out);
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
    ///
    /// The fewer of those that go and those that stay are moved: the larger part is never touched
    /// one by one.
    pub(super) fn apply_purge(&mut self, state: Option<State>, cut: u64) {
        let going = self.len(state, Now::from_ms(cut));
        if state.is_none() || going == self.jobs.len() {
            return self.set_jobs_aside();
        }
        if going <= self.jobs.len() / 2 {
            let handles: Vec<Handle> = self.of_state_at_cut(state, cut).collect();
            return handles.into_iter().for_each(|handle| self.remove(handle));
        }
        let others = State::ALL.into_iter().filter(|&other| state != Some(other));
        let staying: Vec<Handle> = others
            .flat_map(|other| self.of_state_at_cut(Some(other), cut).collect::<Vec<_>>())
            .collect();
        self.keep_only(&staying);
    }

    fn of_state_at_cut(
        &self,
        state: Option<State>,
        cut: u64,
    ) -> Box<dyn Iterator<Item = Handle> + '_> {
        let seq = |handle| self.jobs.seq(handle);
        let handle = |(_, handle)| handle;
        match state {
            Some(State::Delayed) => Box::new(self.schedule.by_due(cut + 1, seq).map(handle)),
            Some(State::Ready) => {
                let due = move |&(due, _): &(u64, Handle)| due <= cut;
                Box::new(self.schedule.by_due(0, seq).take_while(due).map(handle))
            }
            Some(State::Reserved) => Box::new(self.reserved.iter().map(handle)),
            Some(State::Dead) => Box::new(self.dead.iter().map(handle)),
            None => Box::new(std::iter::empty()),
        }
    }

    /// Moves these jobs into a store of their own, and sets the others aside with the old one.
    fn keep_only(&mut self, staying: &[Handle]) {
        self.set_jobs_aside();
        let Some(aside) = self.remains.pop() else {
            return;
        };
        for &handle in staying {
            self.insert(aside.job(handle));
        }
        self.remains.push(aside);
    }
}

//! The rules of DQ.RESCHEDULE and DQ.KICK.

use super::budget::OUT_OF_TURN;
use super::clock::Now;
use super::effect::Change;
use super::effects::Effects;
use super::event::Event;
use super::job::Place;
use super::Queue;

/// What a job is given; `None` leaves what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reschedule {
    /// The new due time.
    pub due: Option<u64>,
    /// The new priority.
    pub priority: Option<i32>,
}

impl Queue {
    /// Gives a delayed or ready job another due time, another priority, or both; returns whether there was one.
    pub fn reschedule(&mut self, id: &[u8], new: Reschedule, now: Now, out: &mut Effects) -> bool {
        let Some(handle) = self.find_unexpired(self.jobs().hashed(id), now, out) else {
            return false;
        };
        let before = self.jobs().job(handle).status();
        if before.place != Place::Scheduled {
            return false;
        }
        if let Some(due) = new.due.filter(|&due| due != before.due) {
            let was_ready = self.jobs().is_ready(handle, now);
            self.commit_job(handle, Change::Rescheduled { due }, now, out);
            if !was_ready && due <= now.ms() {
                out.raise(Event::Ready);
            }
        }
        let old = self.jobs().job(handle).terms().priority;
        if let Some(priority) = new.priority.filter(|&priority| priority != old) {
            self.commit_job(handle, Change::Prioritized { priority }, now, out);
        }
        true
    }

    /// Makes a dead, done or blocked job ready; returns whether there was one.
    pub fn kick(&mut self, id: &[u8], now: Now, out: &mut Effects) -> bool {
        self.expire_for_turns(now, out);
        let id = self.jobs().hashed(id);
        let Some(handle) = self.find_unexpired(id, now, out) else {
            return self.kick_done(id, now, out);
        };
        match self.jobs().job(handle).place() {
            Place::Dead => {}
            Place::Blocked => {
                self.commit_unblocked(handle, now, out);
                return true;
            }
            Place::Scheduled | Place::Reserved | Place::Successor => return false,
        }
        self.commit_job(handle, Change::Kicked { due: now.ms() }, now, out);
        true
    }

    /// Makes up to `count` dead jobs ready, the longest dead first; returns how many.
    pub fn kick_oldest(&mut self, count: u64, now: Now, out: &mut Effects) -> u64 {
        self.expire_for(count, Place::Dead, now, out);
        self.trim_dead(now, usize::MAX, out);
        let mut budget = OUT_OF_TURN;
        let mut kicked = 0;
        while kicked < count && budget > 0 {
            let Some((_, handle)) = self.jobs().dead().first() else {
                break;
            };
            if let Some(took) = self.remove_if_expired(handle, now, out) {
                budget = budget.saturating_sub(took);
            } else {
                self.commit_job(handle, Change::Kicked { due: now.ms() }, now, out);
                kicked += 1;
            }
        }
        kicked
    }
}

//! The rules of DQ.DEL and DQ.PURGE.

use super::budget::EXPIRE_BUDGET;
use super::clock::Now;
use super::effect::{Effect, Forgotten, Purge};
use super::effects::Effects;
use super::end::Cause;
use super::job::{Place, State};
use super::overdue::Overdue;
use super::state::jobs::Jobs;
use super::stats::Totals;
use super::Queue;

impl Queue {
    /// Removes a job in any state, and its id from the dedupe window; returns whether a job was removed. With
    /// `spare_reserved` a reserved job is left alone.
    pub fn delete(&mut self, id: &[u8], spare_reserved: bool, now: Now, out: &mut Effects) -> bool {
        let hashed = self.jobs().hashed(id);
        let handle = self.find_unexpired(hashed, now, out);
        if let Some(handle) = handle {
            if spare_reserved && self.jobs().job(handle).place() == Place::Reserved {
                return false;
            }
            self.end(handle, Cause::Deleted, now.ms(), now, out);
        }
        let was_done = handle.is_none() && self.delete_done(hashed, now, out);
        if self.parts().remembered_until(self.jobs(), id).is_some() {
            self.commit(&Effect::Forgot(Forgotten::Id(id)), out);
        }
        handle.is_some() || was_done
    }

    /// Removes all jobs of a state, or all; returns how many. The dedupe window stays. Jobs whose lease or TTL is
    /// overdue count as what they have become.
    pub fn purge(&mut self, state: Option<State>, now: Now, out: &mut Effects) -> u64 {
        // What is overdue may matter to jobs that are after it, so all of it is carried out.
        let budget = if self.parts().flows().is_some() {
            usize::MAX
        } else {
            EXPIRE_BUDGET
        };
        self.expire_overdue(now, budget, out);
        self.expire_odd(now, out);
        self.purge_as_it_stands(state, now, out)
    }

    pub(super) fn purge_as_it_stands(
        &mut self,
        state: Option<State>,
        now: Now,
        out: &mut Effects,
    ) -> u64 {
        let done = match state {
            None | Some(State::Done) => self.purge_done(now, out),
            Some(_) => 0,
        };
        if state == Some(State::Done) {
            return done as u64;
        }
        let count = match state {
            None => self.at(now).len(None) + self.at(now).len(Some(State::Dead)),
            Some(_) => self.at(now).len(state),
        };
        if count > 0 {
            self.commit_purges(state, now, self.at(now).overdue(), out);
        }
        (count + done) as u64
    }

    fn commit_purges(&mut self, state: Option<State>, now: Now, over: Overdue, out: &mut Effects) {
        let cut = now.ms();
        let successors = self.jobs().successors_of(state, cut);
        let taken = self.jobs().taken_by(state, cut);
        let (overdue, expired) = match state {
            None => (over.leases(), over.expired()),
            Some(State::Delayed) => (0, over.expired_delayed.saturating_sub(over.late)),
            Some(State::Ready) => (over.came_back, over.expired_ready + over.late),
            Some(State::Reserved | State::Blocked | State::Done) => (0, 0),
            Some(State::Dead) => (over.died, over.expired_dead),
        };
        if taken > 0 {
            let purge = Purge::State { state, cut };
            self.commit_over_of(purge, now, out);
            self.commit_purge(purge, taken + successors, out);
        }
        let dead = state == Some(State::Dead);
        if overdue > 0 && state.is_some() {
            self.commit_purge(Purge::Overdue { dead, cut }, overdue, out);
        }
        let died = match state {
            None => over.died,
            _ if dead => overdue,
            _ => 0,
        };
        self.recount_purged(
            &Totals {
                timed_out: overdue as u64,
                died: died as u64,
                expired: expired as u64,
                ..Totals::default()
            },
            out,
        );
    }
}

impl Jobs {
    /// How many successors the jobs in a state have, or all jobs. Jobs with an overdue lease count for no state.
    fn successors_of(&self, state: Option<State>, cut: u64) -> usize {
        let followed = self.followed();
        match state {
            None => self.successors_len(),
            Some(State::Delayed) => followed.due_after(cut),
            Some(State::Ready) => followed.due_by(cut),
            Some(State::Reserved) => followed.leased_beyond(cut),
            Some(State::Dead | State::Done) => 0,
            Some(State::Blocked) => self.blocked_successors(),
        }
    }
}

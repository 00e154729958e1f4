//! What time alone does to a queue: leases, TTLs and dedupe windows expire.
//!
//! Idempotent, in steps as small as wanted, to be called at any time on a master; a replica waits for
//! the effects. A job that becomes due is not part of this: nothing changes then.

use super::budget::{
    steps_of_bytes, EXPIRE_BUDGET, EXPIRE_BUDGET_OF_ID, OUT_OF_TURN, STEPS_OF_OCCURRENCE,
    STEPS_OF_RESUME,
};
use super::clock::Now;
use super::effect::{Change, Effect, Forgotten, Purge};
use super::effects::Effects;
use super::end::Cause;
use super::history::Failing;
use super::job::{Handle, Place};
use super::state::flows::Flows;
use super::state::jobs::Jobs;
use super::state::position::{Expiry, Fate};
use super::state::purged::MANY;
use super::state::serving::Comes;
use super::state::store::{Id, Status};
use super::Queue;
use crate::storage::skiplist::Skiplist;

impl Jobs {
    /// What the end of a job takes of a budget.
    fn steps_of(&self, handle: Handle) -> usize {
        if self.recurs(handle) {
            STEPS_OF_OCCURRENCE
        } else {
            1
        }
    }

    /// Whether a TTL or GRACE, of a job that is not reserved, has expired and has not been carried out.
    #[inline(always)]
    pub(super) fn has_overdue_ttl(&self, now: Now) -> bool {
        self.expiring().first_at() <= now.ms()
    }

    /// Whether a TTL that expired before the instant has not been carried out.
    fn has_overdue_before(&self, instant: u64) -> bool {
        self.expiring().first_at() < instant
    }
}

impl Queue {
    /// Carries out at most `budget` overdue expirations, in the order of time. Returns how much of the
    /// budget is left: none left means that there may be more.
    #[inline(always)]
    pub fn expire_overdue(&mut self, now: Now, budget: usize, out: &mut Effects) -> usize {
        match self.has_past(now) {
            true => self.expire_in_order(now, budget, out),
            false => budget,
        }
    }

    /// Whether any expiration is overdue.
    #[inline]
    pub(super) fn has_past(&self, now: Now) -> bool {
        self.next_event().is_some_and(|at| at <= now.ms())
    }

    fn expire_in_order(&mut self, now: Now, budget: usize, out: &mut Effects) -> usize {
        let mut left = budget;
        while left > 0 && self.has_past(now) {
            if self.parts().has_flow_work() {
                match self.expire_with_flows(now, left, out) {
                    0 => break,
                    took => left -= took.min(left),
                }
                continue;
            }
            let holds_back = out.holds_back();
            left -= self.expire_next(now, left, out).min(left);
            out.held_back(holds_back);
        }
        left
    }

    /// One step of [`Queue::expire_overdue`] while blocked jobs have yet to learn of ends: an overdue expiration, or
    /// some of these ends, whichever is earlier. While the command holds ends back, they are left until it is done.
    /// Returns what the step took; 0 if there is nothing to do now.
    #[cold]
    fn expire_with_flows(&mut self, now: Now, budget: usize, out: &mut Effects) -> usize {
        let holds_back = out.holds_back();
        let overdue = self.next_in_time().filter(|&at| at <= now.ms());
        let flow = (self.parts().flows())
            .and_then(Flows::work_since)
            .filter(|_| !holds_back);
        let took = match (overdue, flow) {
            (None, None) => 0,
            (Some(overdue), Some(flow)) if flow < overdue => self.carry_out_flows(budget, now, out),
            (None, Some(_)) => self.carry_out_flows(budget, now, out),
            (Some(_), _) => self.expire_next(now, budget, out),
        };
        out.held_back(holds_back);
        took
    }

    /// Carries out what ends have brought about for blocked jobs, at the end of a command within [`FOLLOWED`](super::budget::FOLLOWED). Returns how
    /// many of the `left` steps are left.
    #[inline]
    pub fn follow_up(&mut self, left: usize, now: Now, out: &mut Effects) -> usize {
        if self.parts().flows().is_none() {
            return left;
        }
        out.held_back(false);
        self.follow_some(left, now, out)
    }

    #[cold]
    fn follow_some(&mut self, budget: usize, now: Now, out: &mut Effects) -> usize {
        let mut left = budget;
        while left > 0 && self.parts().has_flow_work() {
            left = left.saturating_sub(self.carry_out_flows(left, now, out));
        }
        out.held_back(false);
        left
    }

    /// Carries out some of the ends that blocked jobs have yet to learn of; returns what it took of a budget.
    fn carry_out_flows(&mut self, budget: usize, now: Now, out: &mut Effects) -> usize {
        let stuck = self.commit_stuck(now, out);
        let looked_at = stuck + self.commit_emptied(budget, now, out);
        looked_at + self.commit_steps(budget, now, out)
    }

    /// As [`Queue::expire_overdue`], for a command that may name many jobs: together they take no more than
    /// [`Effects::allow`] permits.
    pub(super) fn expire_some(&mut self, most: usize, now: Now, out: &mut Effects) {
        let budget = out.allow(most);
        let left = self.expire_overdue(now, budget, out);
        out.took(budget - left);
    }

    /// Ends a job, a delivery or an occurrence by `end`; returns what that takes of a budget.
    fn end_in_steps(&mut self, handle: Handle, end: impl FnOnce(&mut Self)) -> usize {
        let bytes = |it: &Self| it.jobs().bytes() + it.jobs().purged_bytes();
        let (steps, before) = (self.jobs().steps_of(handle), bytes(self));
        end(self);
        steps + steps_of_bytes(before.saturating_sub(bytes(self)))
    }

    /// Carries out the first of what is overdue; returns what it took of the budget.
    fn expire_next(&mut self, now: Now, budget: usize, out: &mut Effects) -> usize {
        match self.first_overdue(now) {
            Some(Comes::Done) => self.expire_done(now, budget, out),
            Some(Comes::Trim) => self.trim_dead(now, budget, out),
            Some(Comes::Forget) => self.forget_next(now, budget, out),
            Some(Comes::Resume) => {
                self.commit_resumed(now, out);
                STEPS_OF_RESUME
            }
            Some(Comes::Lease) => self.end_overdue_lease(now, out).map_or(1, |(took, _)| took),
            Some(Comes::Ttl) => self.expire_first_overdue(now, out).unwrap_or(1),
            Some(Comes::Flow) | None => 1,
        }
    }

    /// Forgets about `budget` ids of the dedupe window; returns how many. If very many expire at one instant, they are
    /// forgotten one by one.
    fn forget_next(&mut self, now: Now, budget: usize, out: &mut Effects) -> usize {
        let dedupe = &self.parts().dedupe;
        let before = dedupe.len();
        let until = dedupe.nth_until(budget).unwrap_or(0).min(now.ms());
        let twice = budget.saturating_mul(2);
        if before > twice && dedupe.nth_until(twice).is_some_and(|at| at <= until) {
            let first = dedupe.iter().take(budget);
            let ids: Vec<Vec<u8>> = first.map(|(id, _)| id.to_vec()).collect();
            for id in &ids {
                self.commit_forgetting(&Effect::Forgot(Forgotten::Id(id)), out);
            }
        } else {
            self.commit_forgetting(&Effect::Forgot(Forgotten::Until(until)), out);
        }
        before - self.parts().dedupe.len()
    }

    /// Expires what is overdue if jobs have groups: whose turn it is depends on which groups have become empty.
    #[inline]
    pub(super) fn expire_for_turns(&mut self, now: Now, out: &mut Effects) {
        if self.parts().groups().is_some() {
            self.expire_some(EXPIRE_BUDGET, now, out);
        }
    }

    /// As [`Queue::expire_overdue`] for one job, whatever else is overdue.
    pub fn expire_job(&mut self, id: &[u8], now: Now, out: &mut Effects) {
        let id = self.jobs().hashed(id);
        if self.find_unexpired(id, now, out).is_none() {
            self.find_done_unexpired(id, now, out);
        }
    }

    /// Expires what is overdue of the job with this id, so that a command on it sees it as it is. Returns the job, if
    /// it is still there.
    #[inline]
    pub(super) fn find_unexpired(
        &mut self,
        id: Id<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Option<Handle> {
        self.find_with_status(id, now, out)
            .map(|(handle, _)| handle)
    }

    /// As [`Queue::find_unexpired`]; also how the job stands.
    pub(super) fn find_with_status(
        &mut self,
        id: Id<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Option<(Handle, Status)> {
        let mut handle = self.jobs().find(id)?;
        let mut status = self.jobs().job(handle).status();
        if self.depends_on_deaths(handle, &status, now) {
            self.expire_some(EXPIRE_BUDGET_OF_ID, now, out);
            handle = self.jobs().find(id)?;
            status = self.jobs().job(handle).status();
        }
        let Status { place, life, .. } = status;
        if place == Place::Reserved {
            if life.at > now.ms() {
                self.expire_successor(handle, now.ms() + 1, now, out);
                return Some((handle, status));
            }
            self.end_lease(handle, now, out);
            handle = self.jobs().find(id)?;
        }
        if self.remove_if_expired(handle, now, out).is_some() {
            handle = self.jobs().find(id)?;
        } else {
            self.expire_successor(handle, now.ms() + 1, now, out);
        }
        Some((handle, self.jobs().job(handle).status()))
    }

    /// Whether overdue expirations of other jobs matter to this one: by the order of dying, if it dies when its
    /// lease ends; by its group's turn, if that begins anew with its successor; by DEADLEN, if it is dead.
    #[inline]
    fn depends_on_deaths(&self, handle: Handle, status: &Status, now: Now) -> bool {
        match status.place {
            Place::Scheduled | Place::Successor => false,
            // Overdue ends of other jobs may unblock it, or kill it.
            Place::Blocked => self.next_event().is_some_and(|at| at <= now.ms()),
            Place::Reserved => {
                let life = &status.life;
                let dies = || {
                    let job = self.jobs().job(handle);
                    job.terms().exhausted_by(life.attempts)
                };
                life.at <= now.ms() && (self.parts().groups().is_some() || dies())
            }
            Place::Dead => self.settings().dead_len != 0,
        }
    }

    /// As [`Queue::expire_overdue`], for a command that is about to act on `count` jobs in `place`. If more is overdue
    /// than the budget, it ends overdue leases out of turn until `count` jobs have come to `place`. Leases whose
    /// jobs come to other places take at most [`OUT_OF_TURN`] steps.
    #[inline(always)]
    pub(super) fn expire_for(&mut self, count: u64, place: Place, now: Now, out: &mut Effects) {
        if self.expire_overdue(now, EXPIRE_BUDGET, out) == 0 {
            self.expire_leases_for(count, place, now, out);
        }
    }

    #[cold]
    fn expire_leases_for(&mut self, count: u64, place: Place, now: Now, out: &mut Effects) {
        let (mut wanted, mut others) = (count, OUT_OF_TURN);
        while wanted > 0 || others > 0 {
            match self.end_overdue_lease(now, out) {
                None => break,
                Some((_, came_to)) if came_to == Some(place) && wanted > 0 => wanted -= 1,
                Some((took, _)) if others > 0 => others = others.saturating_sub(took),
                Some(_) => break,
            }
        }
    }

    /// While a limit makes the queue full, carries out overdue expirations that may make room, though others may be
    /// overdue before them.
    pub(super) fn expire_for_room(
        &mut self,
        is_full: impl Fn(&Self) -> bool,
        now: Now,
        out: &mut Effects,
    ) {
        for _ in 0..EXPIRE_BUDGET {
            let went_on = is_full(self)
                && (self.expire_first_overdue(now, out).is_some()
                    || self.end_overdue_lease(now, out).is_some());
            if !went_on {
                break;
            }
        }
    }

    /// Ends the first overdue lease, if one is: what that takes of a budget, and the place that its job came to, if any.
    fn end_overdue_lease(&mut self, now: Now, out: &mut Effects) -> Option<(usize, Option<Place>)> {
        let first = self.jobs().first_lease();
        let (_, handle) = first.filter(|&(at, _)| at <= now.ms())?;
        let mut came_to = None;
        let took = self.end_in_steps(handle, |it| came_to = it.end_lease(handle, now, out));
        Some((took, came_to))
    }

    fn end_lease(&mut self, handle: Handle, now: Now, out: &mut Effects) -> Option<Place> {
        let life = self.jobs().job(handle).life();
        // Decided by the instant at which the lease ended, however late that is noticed.
        let is_expired = life.expires != 0 && life.expires <= life.at;
        if self.settings().history != 0 && !is_expired {
            self.keep_attempt(handle, (life.at, Failing::Timeout), None, out);
        }
        let job = self.jobs().job(handle);
        let place = if is_expired {
            self.end(handle, Cause::TimedOutExpired, life.at, now, out)
        } else if job.terms().exhausted_by(life.attempts) {
            self.end(handle, Cause::TimedOut, life.at, now, out)
        } else {
            self.expire_successor(handle, life.at, now, out);
            self.commit_job(handle, Change::TimedOut, now, out);
            Some(Place::Scheduled)
        };
        self.trim_dead_after(life.at, 1, now, out);
        place
    }

    /// Removes at most `most` of the longest dead jobs beyond DEADLEN, because of what happened at `at`. If that was
    /// out of turn, TTLs that expired before `at` may yet make room: then this is left to [`Queue::expire_overdue`].
    pub(super) fn trim_dead_after(&mut self, at: u64, most: usize, now: Now, out: &mut Effects) {
        if self.surplus_dead() > 0 && !self.jobs().has_overdue_before(at) {
            self.trim_dead(now, most, out);
        }
    }

    /// Ends a job by its TTL, or an occurrence by its TTL or GRACE.
    fn expire(&mut self, handle: Handle, now: Now, out: &mut Effects) {
        let expires = self.jobs().job(handle).life().expires;
        let skipped = self.jobs().skipped_at(handle);
        match skipped.filter(|&at| expires == 0 || at <= expires) {
            Some(at) => self.end(handle, Cause::Missed, at, now, out),
            None => self.end(handle, Cause::Expired, expires, now, out),
        };
    }

    /// Carries out the first overdue end of a job by its TTL or GRACE, if one is; returns what it took of a budget.
    fn expire_first_overdue(&mut self, now: Now, out: &mut Effects) -> Option<usize> {
        let first = self.jobs().first_ttl();
        let (_, handle) = first.filter(|&(at, _)| at <= now.ms())?;
        let place = self.jobs().job(handle).place();
        Some(self.end_in_steps(handle, |it| {
            if place == Place::Successor {
                it.expire_as_successor(handle, now, out);
            } else if it.jobs().is_purged(handle) {
                it.free_purged_job(handle);
            } else if place == Place::Reserved {
                it.end_lease(handle, now, out);
            } else {
                it.expire(handle, now, out);
            }
        }))
    }

    /// Carries out at most [`OUT_OF_TURN`] overdue expirations of jobs whose fate is known only then: mostly of those
    /// that have a rule or a successor. All other overdue jobs are counted as what they have become.
    pub fn expire_odd(&mut self, now: Now, out: &mut Effects) {
        if self.next_event().is_none_or(|at| at > now.ms()) {
            return;
        }
        let budget = out.allow(OUT_OF_TURN);
        let mut left = budget;
        while left > 0 {
            let of = |list: &Skiplist<u64>| list.first().filter(|&(at, _)| at <= now.ms());
            let lease = of(self.jobs().reserved().list(Fate::Undecided as usize));
            let followed = self.jobs().followed().leased_by(now.ms()).next();
            let occurrence = of(self.jobs().expiring().list(Expiry::Occurrence as usize));
            let successor = of(self.jobs().expiring().list(Expiry::Successor as usize));
            if let Some(handle) = lease.map(|(_, handle)| handle).or(followed) {
                let took = self.end_in_steps(handle, |it| {
                    it.end_lease(handle, now, out);
                });
                left = left.saturating_sub(took);
            } else if let Some((_, handle)) = occurrence {
                let took = self.end_in_steps(handle, |it| match it.jobs().is_purged(handle) {
                    true => it.free_purged_job(handle),
                    false => it.expire(handle, now, out),
                });
                left = left.saturating_sub(took);
            } else if let Some((_, handle)) = successor {
                left -= 1;
                self.expire_as_successor(handle, now, out);
            } else {
                break;
            }
        }
        out.took(budget - left);
    }

    /// Removes a job whose TTL is overdue; returns what that took of a budget, if it was. Of a recurring job, the TTL or
    /// GRACE ends the occurrence, and the next one begins.
    #[inline]
    pub(super) fn remove_if_expired(
        &mut self,
        handle: Handle,
        now: Now,
        out: &mut Effects,
    ) -> Option<usize> {
        let end = self.jobs().end_of(handle);
        let overdue = end != 0 && end <= now.ms();
        overdue.then(|| self.end_in_steps(handle, |it| it.expire(handle, now, out)))
    }

    /// Removes the longest dead jobs beyond DEADLEN: at most `budget`, or all if they are more than [`MANY`], which one
    /// effect cuts off with no more work. Returns how many jobs' work it was.
    pub(super) fn trim_dead(&mut self, now: Now, budget: usize, out: &mut Effects) -> usize {
        let surplus = self.surplus_dead();
        let dead = self.jobs().dead();
        let longest = || {
            dead.iter()
                .take(surplus)
                .map(|(_, handle)| handle)
                .collect()
        };
        if surplus > 1 && self.jobs().few(surplus, longest).is_none() {
            let count = surplus as u64;
            self.commit_over_of(Purge::Trim { count }, now, out);
            self.commit_purge(Purge::Trim { count }, surplus, out);
            return budget.min(MANY);
        }
        for _ in 0..surplus.min(budget) {
            let Some((_, handle)) = self.jobs().dead().first() else {
                break;
            };
            self.end(handle, Cause::Deleted, now.ms(), now, out);
        }
        surplus.min(budget)
    }
}

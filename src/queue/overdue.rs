//! Jobs whose lease or TTL has expired before the timer has come to them: counted by the lists that they stand in,
//! and shown as what they are by now.
//!
//! A job whose lease is over is ready, dead or gone from that instant on, one whose TTL is over is gone, however late
//! the timer comes. Who looks sees it so, without a job being touched.

use super::clock::Now;
use super::job::{Handle, Place, State, INSTANT_MAX};
use super::state::position::{Ending, Fate};
use super::Queue;
use std::ops::RangeInclusive;

mod groups;

/// Leases that are over and that a look passes over one by one, at most: a few milliseconds, after a standstill.
const LOOKED_AT: usize = 10_000;

/// The instant at which a queue is looked at. Dues follow the clock everywhere; that a lease or a TTL is over is said
/// by the master alone.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// By the clock.
    pub now: Now,
    /// Up to which instant leases and TTLs have expired, without an effect that says so.
    pub(super) ended_ms: u64,
}

impl From<Now> for At {
    fn from(now: Now) -> Self {
        At {
            now,
            ended_ms: now.ms(),
        }
    }
}

impl At {
    /// As a replica sees it.
    pub fn as_shown(now: Now) -> Self {
        At { now, ended_ms: 0 }
    }
}

/// How many jobs are not in the state whose list they are in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overdue {
    /// Their leases are over: by what has become of them, though their TTL may be over by now.
    pub came_back: usize,
    pub died: usize,
    pub went: usize,
    /// Not known before it is carried out: most will be delayed.
    pub odd: usize,
    /// Their TTLs are over, and they were then delayed, ready or dead.
    pub expired_delayed: usize,
    pub expired_ready: usize,
    pub expired_dead: usize,
    /// Of those delayed then, how many have come to be due since.
    pub late: usize,
}

impl Overdue {
    pub fn leases(self) -> usize {
        self.came_back + self.died + self.went + self.odd
    }

    /// Jobs that are gone.
    pub fn expired(self) -> usize {
        self.went + self.expired_delayed + self.expired_ready + self.expired_dead
    }
}

impl Queue {
    pub(super) fn overdue(&self, at: At) -> Overdue {
        let ended = at.ended_ms;
        if self.next_event().is_none_or(|first| first > ended) {
            return Overdue::default();
        }
        let leases = |fate: Fate| self.reserved().list(fate as usize).count_below(ended, true);
        let late = self.late().iter().take_while(|&(due, _)| due <= ended);
        Overdue {
            came_back: leases(Fate::Back),
            died: leases(Fate::Dies),
            went: leases(Fate::Goes),
            odd: leases(Fate::Odd),
            expired_delayed: self.expired(Ending::Delayed, ended),
            expired_ready: self.expired(Ending::Ready, ended),
            expired_dead: self.expired(Ending::Dead, ended),
            late: match self.has_purged() {
                true => late.filter(|&(_, it)| !self.is_purged(it)).count(),
                false => self.late().count_below(ended, true),
            },
        }
    }

    /// Purged jobs keep their TTLs until they are freed, a moment later.
    fn expired(&self, ending: Ending, ended: u64) -> usize {
        let list = self.expiring().list(ending as usize);
        if !self.has_purged() {
            return list.count_below(ended, true);
        }
        let over = list.iter().take_while(|&(at, _)| at <= ended);
        over.filter(|&(_, it)| !self.is_purged(it)).count()
    }

    /// Jobs in a state, or delayed + ready + reserved.
    pub fn len(&self, state: Option<State>, at: impl Into<At>) -> usize {
        let at = at.into();
        let lens = self.lens(at);
        match state {
            None => lens[..3].iter().sum::<usize>() + self.blocked_len(),
            Some(State::Done) => self.done_len(at),
            Some(State::Blocked) => self.blocked_len(),
            Some(state) => lens[state as usize],
        }
    }

    /// In the order of [`State::ALL`].
    pub(super) fn lens(&self, at: At) -> [usize; 4] {
        let over = self.overdue(at);
        let due = self.schedule().ready_len(at.now.ms());
        let delayed = self.schedule().len() - due + over.odd;
        let dead = (self.dead().len() + over.died).saturating_sub(over.expired_dead);
        let kept = match self.settings().dead_len {
            kept if kept != 0 && at.ended_ms != 0 => usize::try_from(kept).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        [
            delayed.saturating_sub(over.expired_delayed.saturating_sub(over.late)),
            (due + over.came_back).saturating_sub(over.late + over.expired_ready),
            self.reserved().len() - over.leases(),
            dead.min(kept),
        ]
    }

    /// The state that a client sees: none of a job that is gone. That of an occurrence that is over is what its rule
    /// will make of it.
    pub(super) fn seen_state(&self, handle: Handle, at: At) -> Option<State> {
        let position = self.position(handle);
        let course = position.course;
        let is_over = |instant: u64| instant != 0 && instant <= at.ended_ms;
        let expired = position.ends_at().is_some_and(|it| is_over(it.at));
        let scheduled = match course.due <= at.now.ms() {
            true => State::Ready,
            false => State::Delayed,
        };
        match course.place {
            Place::Scheduled if expired && position.recurs => Some(State::Delayed),
            Place::Reserved if !is_over(course.life.at) => Some(State::Reserved),
            Place::Reserved if position.fate() == Fate::Odd && position.recurs => {
                Some(State::Delayed)
            }
            Place::Reserved if is_over(course.life.expires) => None,
            Place::Reserved if position.fate() == Fate::Odd => Some(scheduled),
            Place::Reserved if position.fate() == Fate::Goes => None,
            _ if expired => None,
            Place::Scheduled | Place::Successor => Some(scheduled),
            Place::Reserved if position.fate() == Fate::Back => Some(scheduled),
            Place::Reserved | Place::Dead => Some(State::Dead),
            Place::Blocked => Some(State::Blocked),
        }
    }

    /// The next due time, of a job that is there.
    pub(super) fn next_due_at(&self, at: At) -> Option<u64> {
        if self.expiring().list(Ending::Delayed as usize).is_empty() {
            return self.next_due(at.now);
        }
        let seq = |handle| self.jobs().job(handle).seq();
        let mut coming = self.schedule().by_due(at.now.ms() + 1, seq).take(LOOKED_AT);
        let next = coming.find(|&(_, it)| self.seen_state(it, at) == Some(State::Delayed));
        // The last instant is none.
        next.map(|(due, _)| due).filter(|&due| due < INSTANT_MAX)
    }

    /// The due time of a job that has come back so.
    pub(super) fn overdue_due(&self, at: At) -> Option<u64> {
        let back = self.overdue_back(at).take(LOOKED_AT);
        let dues = back.map(|handle| self.jobs().job(handle).due());
        dues.filter(|&due| due <= at.now.ms()).min()
    }

    fn overdue_back(&self, at: At) -> impl Iterator<Item = Handle> + '_ {
        let leases = self.reserved().list(Fate::Back as usize).iter();
        let over = leases.take_while(move |&(lease, _)| lease <= at.ended_ms);
        over.map(|(_, handle)| handle)
    }

    /// Those that have come back so, in ready order: where very many have, as many as are asked for, or more.
    pub(super) fn overdue_by_rank(
        &self,
        dues: RangeInclusive<u64>,
        count: usize,
        at: At,
    ) -> Vec<Handle> {
        let of_dues = |&handle: &Handle| dues.contains(&self.jobs().job(handle).due());
        let back = self.overdue_back(at).take(count.max(LOOKED_AT));
        let mut back: Vec<Handle> = back.filter(of_dues).collect();
        back.sort_by_cached_key(|&handle| self.rank(handle));
        back
    }

    /// By which ready jobs are ordered.
    pub(super) fn rank(&self, handle: Handle) -> (i32, u64, u64) {
        let job = self.jobs().job(handle);
        (job.terms().priority, job.due(), job.seq())
    }

    /// Those that have died so, in the order of dying.
    pub(super) fn overdue_dead(
        &self,
        from: u64,
        at: At,
    ) -> impl Iterator<Item = (u64, Handle)> + '_ {
        let leases = self.reserved().list(Fate::Dies as usize).iter_from(from);
        leases.take_while(move |&(lease, _)| lease <= at.ended_ms)
    }
}

#[cfg(test)]
mod tests;

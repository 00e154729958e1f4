//! Jobs whose lease or TTL has expired, which the timer has not yet carried out: counted by the lists that they stand
//! in, and shown as what they have become.
//!
//! From the instant at which its lease expires, a job is ready, dead or gone; from that of its TTL it is gone. Queries
//! show it so, however late the timer is, and change no job.

use super::clock::Now;
use super::job::{Handle, Place, State, INSTANT_MAX};
use super::state::jobs::Jobs;
use super::state::parts::Parts;
use super::state::position::{Expiry, Fate};
use super::Queue;
use std::ops::RangeInclusive;

mod groups;

pub use groups::GroupSeen;

/// Jobs that a query goes through one by one, at most: a few milliseconds, and only after a standstill.
pub(super) const LOOKED_AT: usize = 10_000;

/// The instant for which a query reads a queue. Due times follow the clock everywhere; only a master says that a
/// lease or a TTL has expired.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// By the clock.
    pub now: Now,
    /// Leases and TTLs up to this instant count as expired, without an effect that says so.
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
    /// As a replica sees the queue: nothing has expired that no effect says.
    pub fn as_shown(now: Now) -> Self {
        At { now, ended_ms: 0 }
    }
}

/// A queue as queries see it at an instant.
#[derive(Clone, Copy)]
pub struct View<'q> {
    pub(super) queue: &'q Queue,
    pub(super) jobs: &'q Jobs,
    pub(super) parts: &'q Parts,
    pub(super) at: At,
}

impl Queue {
    /// To be read as it is at this instant.
    pub fn at(&self, at: impl Into<At>) -> View<'_> {
        View {
            queue: self,
            jobs: self.jobs(),
            parts: self.parts(),
            at: at.into(),
        }
    }
}

/// How many jobs are not in the state whose list they are in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overdue {
    /// Reserved jobs whose lease has expired, by what became of them then. Their TTL may have expired since.
    pub came_back: usize,
    pub died: usize,
    pub went: usize,
    /// Reserved jobs whose lease has expired, but what follows is known only once it is carried out: most will be
    /// delayed.
    pub odd: usize,
    /// Jobs whose TTL has expired, by what they were at that instant: delayed, ready or dead.
    pub expired_delayed: usize,
    pub expired_ready: usize,
    pub expired_dead: usize,
    /// How many of `expired_delayed` have become due since.
    pub late: usize,
}

impl Overdue {
    pub fn leases(self) -> usize {
        self.came_back + self.died + self.went + self.odd
    }

    /// Whether every job is in the state of its list.
    pub fn is_none(self) -> bool {
        self.leases() + self.expired() == 0
    }

    /// Jobs that are gone.
    pub fn expired(self) -> usize {
        self.went + self.expired_delayed + self.expired_ready + self.expired_dead
    }
}

impl Jobs {
    /// Does not count purged jobs, which stay in the lists of TTLs until they are freed, a moment later.
    fn expired(&self, expiry: Expiry, ended: u64) -> usize {
        let list = self.expiring().list(expiry as usize);
        if !self.has_purged() {
            return list.count_below(ended, true);
        }
        let over = list.iter().take_while(|&(at, _)| at <= ended);
        over.filter(|&(_, it)| !self.is_purged(it)).count()
    }

    /// The state that a client sees; `None` if the job is gone. If its occurrence has ended, it is the state that the
    /// rule will give the job.
    pub(super) fn seen_state(&self, handle: Handle, at: At) -> Option<State> {
        let position = self.position(handle);
        let status = position.status;
        let is_over = |instant: u64| instant != 0 && instant <= at.ended_ms;
        let expired = position.ends_at().is_some_and(|it| is_over(it.at));
        let scheduled = match status.due <= at.now.ms() {
            true => State::Ready,
            false => State::Delayed,
        };
        match status.place {
            Place::Scheduled if expired && position.recurs => Some(State::Delayed),
            Place::Reserved if !is_over(status.life.at) => Some(State::Reserved),
            Place::Reserved if position.fate() == Fate::Undecided && position.recurs => {
                Some(State::Delayed)
            }
            Place::Reserved if is_over(status.life.expires) => None,
            Place::Reserved if position.fate() == Fate::Undecided => Some(scheduled),
            Place::Reserved if position.fate() == Fate::Expires => None,
            _ if expired => None,
            Place::Scheduled | Place::Successor => Some(scheduled),
            Place::Reserved if position.fate() == Fate::Ready => Some(scheduled),
            Place::Reserved | Place::Dead => Some(State::Dead),
            Place::Blocked => Some(State::Blocked),
        }
    }

    /// The earliest due time of jobs that are ready again by an overdue lease.
    pub(super) fn overdue_due(&self, at: At) -> Option<u64> {
        let back = self.overdue_back(at).take(LOOKED_AT);
        let dues = back.map(|handle| self.job(handle).due());
        dues.filter(|&due| due <= at.now.ms()).min()
    }

    fn overdue_back(&self, at: At) -> impl Iterator<Item = Handle> + '_ {
        let leases = self.reserved().list(Fate::Ready as usize).iter();
        let over = leases.take_while(move |&(lease, _)| lease <= at.ended_ms);
        over.map(|(_, handle)| handle)
    }

    /// Jobs that are ready again by an overdue lease, in ready order. If they are very many, it goes through only the
    /// first `count` or [`LOOKED_AT`], whichever is more.
    pub(super) fn overdue_by_rank(
        &self,
        dues: RangeInclusive<u64>,
        count: usize,
        at: At,
    ) -> Vec<Handle> {
        let of_dues = |&handle: &Handle| dues.contains(&self.job(handle).due());
        let back = self.overdue_back(at).take(count.max(LOOKED_AT));
        let mut back: Vec<Handle> = back.filter(of_dues).collect();
        back.sort_by_cached_key(|&handle| self.rank(handle));
        back
    }

    /// The key by which ready jobs are ordered.
    pub(super) fn rank(&self, handle: Handle) -> (i32, u64, u64) {
        let job = self.job(handle);
        (job.terms().priority, job.due(), job.seq())
    }

    /// Jobs that are dead by an overdue lease, in the order of dying.
    pub(super) fn overdue_dead(
        &self,
        from: u64,
        at: At,
    ) -> impl Iterator<Item = (u64, Handle)> + '_ {
        let leases = self.reserved().list(Fate::Dies as usize).iter_from(from);
        leases.take_while(move |&(lease, _)| lease <= at.ended_ms)
    }
}

impl View<'_> {
    pub(super) fn overdue(self) -> Overdue {
        let (jobs, ended) = (self.jobs, self.at.ended_ms);
        if self.queue.next_event().is_none_or(|first| first > ended) {
            return Overdue::default();
        }
        let leases = |fate: Fate| jobs.reserved().list(fate as usize).count_below(ended, true);
        let late = jobs.late().iter().take_while(|&(due, _)| due <= ended);
        Overdue {
            came_back: leases(Fate::Ready),
            died: leases(Fate::Dies),
            went: leases(Fate::Expires),
            odd: leases(Fate::Undecided),
            expired_delayed: jobs.expired(Expiry::Delayed, ended),
            expired_ready: jobs.expired(Expiry::Ready, ended),
            expired_dead: jobs.expired(Expiry::Dead, ended),
            late: match jobs.has_purged() {
                true => late.filter(|&(_, it)| !jobs.is_purged(it)).count(),
                false => jobs.late().count_below(ended, true),
            },
        }
    }

    /// Jobs in a state, or delayed + ready + reserved.
    pub fn len(self, state: Option<State>) -> usize {
        let (jobs, lens) = (self.jobs, self.lens());
        match state {
            None => lens[..3].iter().sum::<usize>() + jobs.blocked_len(),
            Some(State::Done) => self.done_len(),
            Some(State::Blocked) => jobs.blocked_len(),
            Some(state) => lens[state as usize],
        }
    }

    /// Jobs of the first four states, in the order of [`State::ALL`].
    pub(super) fn lens(self) -> [usize; 4] {
        let View {
            queue, jobs, at, ..
        } = self;
        let over = self.overdue();
        let due = jobs.schedule().ready_len(at.now.ms());
        let delayed = jobs.schedule().len() - due + over.odd;
        let dead = (jobs.dead().len() + over.died).saturating_sub(over.expired_dead);
        let kept = match queue.settings().dead_len {
            kept if kept != 0 && at.ended_ms != 0 => usize::try_from(kept).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        [
            delayed.saturating_sub(over.expired_delayed.saturating_sub(over.late)),
            (due + over.came_back).saturating_sub(over.late + over.expired_ready),
            jobs.reserved().len() - over.leases(),
            dead.min(kept),
        ]
    }
}

impl Jobs {
    /// The next due time of a job that has not expired.
    pub(super) fn next_due_at(&self, at: At) -> Option<u64> {
        if self.expiring().list(Expiry::Delayed as usize).is_empty() {
            return self.next_due(at.now);
        }
        let seq = |handle| self.job(handle).seq();
        let mut coming = self.schedule().by_due(at.now.ms() + 1, seq).take(LOOKED_AT);
        let next = coming.find(|&(_, it)| self.seen_state(it, at) == Some(State::Delayed));
        // The last instant stands for no due time.
        next.map(|(due, _)| due).filter(|&due| due < INSTANT_MAX)
    }
}

#[cfg(test)]
mod tests;

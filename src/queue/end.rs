//! How a job ends. Rules end a job, or an occurrence, here alone. This also decides what follows: the next
//! occurrence, the successor, the dead list, the dedupe window.

use super::clock::Now;
use super::effect::{Change, DeathCause, EndCause, OccurrenceCause, RemovalCause};
use super::effects::Effects;
use super::job::{Failure, Handle, Place};
use super::Queue;

/// What ends a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause<'a> {
    /// With the job's result, if it has one.
    Acked(Option<&'a [u8]>),
    /// Delivered with NOACK.
    Popped,
    /// By DEL or DEADLEN.
    Deleted,
    /// Its TTL expired.
    Expired,
    /// Its lease ended, and its TTL had expired by then.
    TimedOutExpired,
    /// GRACE expired: of an occurrence alone.
    Missed,
    /// Dead, as the lease of its last attempt ended.
    TimedOut,
    /// Dead by NACK.
    Nacked {
        priority: i32,
        failure: Option<Failure<'a>>,
    },
}

impl Queue {
    /// Ends an existing job, or its occurrence, at `at`. Returns the place of what is left: of the dead job or
    /// occurrence, or else of the successor or the next occurrence.
    // Inlined: each caller knows the cause, with which most of this is compiled away.
    #[inline(always)]
    pub(super) fn end(
        &mut self,
        handle: Handle,
        cause: Cause<'_>,
        at: u64,
        now: Now,
        out: &mut Effects,
    ) -> Option<Place> {
        if let (Cause::Acked(result), true) = (cause, self.may_keep_done(handle)) {
            if self.flows().is_some() && !self.jobs().recurs(handle) {
                self.tell_done(handle, result, now, out);
            }
            if self.end_as_done(handle, result, now, out) {
                return None;
            }
        }
        if cause != Cause::Deleted && self.jobs().recurs(handle) {
            self.note_moment_of(cause, at, now);
            return self.end_occurrence(handle, cause, at, now, out);
        }
        self.expire_successor(handle, cause.successor_expires_before(at), now, out);
        let change = self.change_by(handle, cause, at, now);
        if self.flows().is_some() {
            self.tell_end(handle, (change, cause), at, now, out);
        }
        self.commit_job(handle, change, now, out);
        match change {
            Change::Died { .. } => Some(Place::Dead),
            Change::Succeeded { .. } => Some(Place::Scheduled),
            _ => None,
        }
    }

    /// The change that ends a job: it dies, is removed, or gives its place to its successor.
    #[inline(always)]
    fn change_by<'a>(&self, handle: Handle, cause: Cause<'a>, at: u64, now: Now) -> Change<'a> {
        let removed = |cause, remember| Change::Removed { cause, remember };
        let died = |cause| Change::Died { at, cause };
        let (otherwise, end) = match cause {
            Cause::Acked(_) => (
                removed(RemovalCause::Acked, self.remember_until(now)),
                EndCause::Acked,
            ),
            Cause::Popped => (
                removed(RemovalCause::Popped, self.remember_until(now)),
                EndCause::Popped,
            ),
            Cause::TimedOut => (died(DeathCause::TimedOut), EndCause::TimedOut),
            Cause::Nacked { priority, failure } => (
                died(DeathCause::Nacked { priority, failure }),
                EndCause::Nacked,
            ),
            Cause::Deleted => return removed(RemovalCause::Deleted, 0),
            Cause::TimedOutExpired => return removed(RemovalCause::TimedOutExpired, 0),
            Cause::Expired | Cause::Missed => return removed(RemovalCause::Expired, 0),
        };
        self.jobs().succeeded_at(handle, otherwise, end, at)
    }

    /// Until when NX refuses the id of a job that is finished now; 0 if it does not.
    pub(super) fn remember_until(&self, now: Now) -> u64 {
        match self.settings().dedupe_ms {
            0 => 0,
            window_ms => now.after_capped(window_ms),
        }
    }

    /// Ends an occurrence; the next one follows, if the rule has one.
    fn end_occurrence(
        &mut self,
        handle: Handle,
        cause: Cause<'_>,
        at: u64,
        now: Now,
        out: &mut Effects,
    ) -> Option<Place> {
        let kept = cause.kills() && self.has_room_for_occurrence(handle);
        let mut noted = None;
        let ended = match cause {
            Cause::Acked(_) => OccurrenceCause::Acked,
            Cause::Popped => OccurrenceCause::Popped,
            Cause::Missed => OccurrenceCause::Missed,
            Cause::Expired | Cause::Deleted => OccurrenceCause::Expired,
            Cause::TimedOutExpired => OccurrenceCause::TimedOutExpired,
            Cause::TimedOut => OccurrenceCause::TimedOut { at, kept },
            Cause::Nacked { priority, failure } => {
                noted = failure;
                OccurrenceCause::Nacked { at, priority, kept }
            }
        };
        let next = self.next_occurrence(handle, now, out);
        self.commit_recurred(handle, (ended, next), noted, now, out);
        match cause.kills() {
            true => kept.then_some(Place::Dead),
            false => Some(Place::Scheduled),
        }
    }
}

impl Cause<'_> {
    fn kills(self) -> bool {
        matches!(self, Cause::TimedOut | Cause::Nacked { .. })
    }

    /// A successor whose TTL expires before the returned instant does not take the place of a job that ends at `at`.
    #[inline(always)]
    fn successor_expires_before(self, at: u64) -> u64 {
        match self {
            Cause::TimedOut | Cause::TimedOutExpired | Cause::Expired => at,
            _ => at + 1,
        }
    }
}

//! How a job ends. Rules end a job, or an occurrence, here alone. This also decides what follows: the next
//! occurrence, the successor, the dead list, the dedupe window.
//!
//! A successor, which NEXT adds, is on no list except that of TTLs. It takes the place of the job before it if that is
//! finished or dead; if that job is removed in any other way, the successor is removed with it.

use super::after::{Moment, Outcome};
use super::clock::Now;
use super::effect::{Change, DeathCause, EndCause, OccurrenceCause, RemovalCause};
use super::effects::Effects;
use super::job::{Failure, Handle, Place};
use super::recurring::rule::Next;
use super::settings::Settings;
use super::state::jobs::Jobs;
use super::Queue;
use crate::storage::broken::there;

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
            if self.parts().flows().is_some() && !self.jobs().recurs(handle) {
                let at = Moment::from(now);
                self.note_moment(at);
                self.commit_over(handle, Outcome::Done, at, result, out);
            }
            if self.end_as_done(handle, result, now, out) {
                return None;
            }
        }
        if cause != Cause::Deleted && self.jobs().recurs(handle) {
            if self.parts().flows().is_some() {
                self.note_moment(cause.moment(at, now));
            }
            return self.end_occurrence(handle, cause, at, now, out);
        }
        self.expire_successor(handle, cause.successor_expires_before(at), now, out);
        let change = cause.change(handle, at, (self.jobs(), self.settings(), now));
        if self.parts().flows().is_some() {
            self.tell_end(handle, (change, cause), at, now, out);
        }
        self.commit_job(handle, change, now, out);
        match change {
            Change::Died { .. } => Some(Place::Dead),
            Change::Succeeded { .. } => Some(Place::Scheduled),
            _ => None,
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
        let kept = cause.kills() && self.parts().has_room_for_occurrence(self.jobs(), handle);
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
        let next = self.jobs().next_occurrence(handle, now, out);
        self.commit_recurred(handle, (ended, next), noted, now, out);
        match cause.kills() {
            true => kept.then_some(Place::Dead),
            false => Some(Place::Scheduled),
        }
    }

    /// Whether a job that is acked might be kept: by the settings, or by its own KEEP.
    #[inline]
    pub(super) fn may_keep_done(&self, handle: Handle) -> bool {
        self.keeps_done()
            || (self.jobs().says_keep() && self.jobs().job(handle).terms().rest.keep_ms().is_some())
    }

    /// Removes the job's successor, if the TTL of that successor expired before the instant `before`.
    #[inline]
    pub(super) fn expire_successor(
        &mut self,
        handle: Handle,
        before: u64,
        now: Now,
        out: &mut Effects,
    ) {
        let Some(successor) = self.jobs().successor(handle) else {
            return;
        };
        let expires = self.jobs().job(successor).life().expires;
        if expires != 0 && expires < before {
            self.commit_job(handle, Change::SuccessorExpired, now, out);
        }
    }

    /// Removes a successor that was found in the list of TTLs, as its TTL has expired.
    pub(super) fn expire_as_successor(&mut self, successor: Handle, now: Now, out: &mut Effects) {
        let id = self.jobs().hashed(self.jobs().job(successor).id());
        let handle = there(self.jobs().find_any(id), "a successor of nobody");
        if self.jobs().is_purged(handle) {
            self.free_purged_job(handle);
        } else {
            self.commit_job(handle, Change::SuccessorExpired, now, out);
        }
    }
}

impl Jobs {
    /// The occurrence that follows one that ends now.
    pub(super) fn next_occurrence(
        &self,
        handle: Handle,
        now: Now,
        out: &mut Effects,
    ) -> Option<Next> {
        let job = self.job(handle);
        let recurring = job.recurring()?;
        let occurrence = recurring.occurrence;
        let (zone, unknown) = recurring.rule.zone(out.zone_of(), occurrence);
        out.miss_zone(unknown);
        recurring.rule.next(job.id(), occurrence, now.ms(), &*zone)
    }

    /// The change by which a job ends at `at`: `otherwise`, or its successor takes its place. The successor's TTL must
    /// have been carried out up to `at`.
    pub(super) fn succeeded_at<'a>(
        &self,
        handle: Handle,
        otherwise: Change<'a>,
        end: EndCause,
        at: u64,
    ) -> Change<'a> {
        let Some(successor) = self.successor(handle) else {
            return otherwise;
        };
        let remember = match otherwise {
            Change::Removed { remember, .. } => remember,
            _ => 0,
        };
        let ready = self.job(successor).due() <= at;
        Change::Succeeded {
            end,
            remember,
            ready,
        }
    }
}

impl Settings {
    /// Until when NX refuses the id of a job that is finished now; 0 if it does not.
    pub(super) fn remember_until(&self, now: Now) -> u64 {
        match self.dedupe_ms {
            0 => 0,
            window_ms => now.after_capped(window_ms),
        }
    }
}

impl<'a> Cause<'a> {
    /// The change that ends a job: it dies, is removed, or gives its place to its successor.
    #[inline(always)]
    fn change(
        self,
        handle: Handle,
        at: u64,
        (jobs, settings, now): (&Jobs, &Settings, Now),
    ) -> Change<'a> {
        let removed = |cause, remember| Change::Removed { cause, remember };
        let died = |cause| Change::Died { at, cause };
        let (otherwise, end) = match self {
            Cause::Acked(_) => (
                removed(RemovalCause::Acked, settings.remember_until(now)),
                EndCause::Acked,
            ),
            Cause::Popped => (
                removed(RemovalCause::Popped, settings.remember_until(now)),
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
        jobs.succeeded_at(handle, otherwise, end, at)
    }

    /// The instant of an end: now if a command brought it about, `at` if time did.
    pub(super) fn moment(self, at: u64, now: Now) -> Moment {
        let is_now = matches!(
            self,
            Cause::Acked(_) | Cause::Popped | Cause::Deleted | Cause::Nacked { .. }
        );
        match is_now {
            true => Moment::from(now),
            false => Moment {
                ms: at,
                is_within: false,
            },
        }
    }

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

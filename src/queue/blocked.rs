//! The rules of jobs that are after others: ADD and NACK with AFTER, and what an end means to the jobs after it.

use super::after::{AfterThat, For, Moment, Outcome};
use super::budget::EXPIRE_BUDGET;
use super::claim::Nack;
use super::clock::Now;
use super::effect::{Change, EndCause, RemovalCause};
use super::effects::Effects;
use super::end::Cause;
use super::error::QueueError;
use super::job::{Handle, Place, State, LEASE_ENDED, REASON_MAX};
use super::state::after::Waiter;
use super::state::store::Status;
use super::Queue;

impl Queue {
    /// Gives a job back until others have ended; returns its new state, or `None` if the claim matches no live job.
    pub fn nack_after(
        &mut self,
        nack: &Nack<'_>,
        until: &For<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Result<Option<State>, QueueError> {
        until.check_name()?;
        self.expire_some(EXPIRE_BUDGET, now, out);
        let Some(handle) = self.find_unexpired(self.jobs().hashed(nack.id), now, out) else {
            return Ok(None);
        };
        let Status { place, life, .. } = self.jobs().job(handle).status();
        if !nack.claim.fits(life.token) || place == Place::Dead {
            return Ok(None);
        }
        if self.remove_if_expired(handle, now, out).is_some() {
            return Ok(None);
        }
        let job = self.jobs().job(handle);
        if job.recurring().is_some() || job.place() == Place::Dead {
            return Err(QueueError::AfterRule);
        }
        let group = self
            .parts()
            .group_of(self.jobs(), handle)
            .map(<[u8]>::to_vec);
        let waiter = Waiter {
            id: nack.id,
            there: Some(handle),
            group: group.as_deref(),
        };
        let plan = self.parts().plan_after(self.jobs(), &waiter, until)?;
        let job = self.jobs().job(handle);
        let Some((due, attempts)) = nack.next_attempt(job, None, now) else {
            return Ok(None);
        };
        let priority = job.terms().priority;
        let change = Change::Nacked {
            due,
            priority,
            attempts,
            failure: nack.failure(now),
        };
        self.commit_job(handle, change, now, out);
        if let Some(departure) = self.last_departure() {
            departure.is_claimed = nack.claim.is_token();
        }
        let dies = plan.dies();
        let after = AfterThat {
            until,
            at: Moment::from(now),
            is_timed: true,
            dies,
        };
        self.commit_waits(handle, (plan, &after), now, out);
        out.hold_back();
        // Its successor may have taken its place.
        let state = match dies {
            true => Some(State::Dead),
            false => self
                .jobs()
                .find(self.jobs().hashed(nack.id))
                .map(|it| self.jobs().state_of(it, now)),
        };
        self.trim_dead_after(now.ms(), 1, now, out);
        Ok(state)
    }

    /// Records, for the jobs after this one, that it is about to end by `change`.
    #[cold]
    pub(super) fn tell_end(
        &mut self,
        handle: Handle,
        (change, cause): (Change<'_>, Cause<'_>),
        at: u64,
        now: Now,
        out: &mut Effects,
    ) {
        let outcome = match change {
            Change::Removed { cause, .. } => match cause {
                RemovalCause::Acked | RemovalCause::Popped => Outcome::Done,
                RemovalCause::Deleted => Outcome::Deleted,
                RemovalCause::Expired | RemovalCause::TimedOutExpired => Outcome::Expired,
            },
            Change::Succeeded { end, .. } => match end {
                EndCause::Acked | EndCause::Popped => Outcome::Done,
                EndCause::TimedOut | EndCause::Nacked => Outcome::Dead,
            },
            _ => Outcome::Dead,
        };
        let moment = cause.moment(at, now);
        self.note_moment(moment);
        let value = match cause {
            Cause::Nacked { failure, .. } => failure.and_then(|failure| failure.reason),
            Cause::TimedOut => Some(LEASE_ENDED),
            _ => None,
        };
        let kept = |reason: &'_ [u8]| reason.len().min(REASON_MAX);
        let value = match cause {
            Cause::Acked(result) => result,
            _ => value.map(|reason| &reason[..kept(reason)]),
        };
        self.commit_over(handle, outcome, moment, value, out);
    }
}

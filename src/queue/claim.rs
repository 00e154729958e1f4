//! What a client says about a delivery that it holds: ACK, NACK, TOUCH.

use super::attr::delay_after;
use super::budget::EXPIRE_BUDGET;
use super::clock::Now;
use super::effect::Change;
use super::effects::Effects;
use super::end::Cause;
use super::error::QueueError;
use super::history::{Attempt, Failing, PAST_REASON_MAX};
use super::instant::spread;
use super::job::{Failure, Handle, Place, State, INSTANT_MAX, PROGRESS_MAX, REASON_MAX, TOKEN_MAX};
use super::note::{check_step_name, Note};
use super::state::jobs::Jobs;
use super::state::store::{Id, Job, Status};
use super::Queue;

/// Decimal digits of [`TOKEN_MAX`].
const TOKEN_DIGITS: usize = 19;
const _: () = assert!(TOKEN_MAX.ilog10() as usize + 1 == TOKEN_DIGITS);

/// Which delivery a client means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Whichever is current.
    Current,
    /// The delivery with this token, while it is current.
    Token(u64),
    /// Something that is not a token: no delivery.
    Nothing,
}

impl Claim {
    /// Reads a token in decimal digits, as the server writes it. Anything else matches no delivery.
    pub fn of_token(digits: &[u8]) -> Self {
        // Called for each job of a heartbeat: one pass, without converting to text. `TOKEN_DIGITS` digits always fit.
        let mut is_number = (1..=TOKEN_DIGITS).contains(&digits.len()) && digits[0] != b'0';
        let mut token = 0u64;
        for &byte in digits.iter().take(TOKEN_DIGITS) {
            let digit = byte.wrapping_sub(b'0');
            is_number &= digit <= 9;
            token = token.wrapping_mul(10).wrapping_add(u64::from(digit));
        }
        if is_number {
            Claim::Token(token)
        } else {
            Claim::Nothing
        }
    }

    pub(super) fn is_token(self) -> bool {
        matches!(self, Claim::Token(_))
    }

    pub(super) fn fits(self, token: u64) -> bool {
        match self {
            Claim::Current => token != 0,
            Claim::Token(claimed) => token != 0 && claimed == token,
            Claim::Nothing => false,
        }
    }
}

/// The arguments of TOUCH for one job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touch<'a> {
    /// The length of the new lease; `None`: as long as the last one.
    pub ttr_ms: Option<u64>,
    /// Only its first bytes are kept.
    pub progress: Option<&'a [u8]>,
    /// What the delivery counts in RATE and GROUPRATE.
    pub weight: Option<u32>,
}

pub(super) struct Touched {
    pub deadline: u64,
    /// The length of the new lease; `None` if it equals the current lease.
    pub changed_to: Option<u64>,
}

/// What becomes of a job that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackKind {
    /// The attempt failed: the next one follows after the backoff. After the last attempt the job is dead.
    Fail,
    /// The delivery is not counted.
    Silent,
    /// The job is dead at once.
    Fatal,
}

/// The arguments of NACK for one job.
#[allow(missing_docs, reason = "named as in the commands")]
#[derive(Clone, Copy, Debug)]
pub struct Nack<'a> {
    pub id: &'a [u8],
    pub claim: Claim,
    pub delay_ms: Option<u64>,
    pub priority: Option<i32>,
    pub kind: NackKind,
    /// Only its first bytes are kept.
    pub reason: Option<&'a [u8]>,
    /// The step that the job waits for, `delay_ms` at most. For [`NackKind::Silent`].
    pub awaits: Option<&'a [u8]>,
    /// The server's delays at this moment, for a job without a ladder of its own.
    pub default_backoff: &'a [u64],
}

impl<'a> Nack<'a> {
    /// The step that the job is to wait for, if that is not set already.
    fn awaited(&self, handle: Handle, jobs: &Jobs) -> Option<&'a [u8]> {
        let name = self.awaits?;
        let is_set = jobs.step(handle, name).is_some();
        (!is_set).then_some(name)
    }

    /// Checks what does not depend on the job.
    pub fn check(&self, now: Now) -> Result<(), QueueError> {
        self.asked(now).map(drop)
    }

    /// The instant that its DELAY names.
    pub(super) fn asked(&self, now: Now) -> Result<Option<u64>, QueueError> {
        self.awaits.map_or(Ok(()), check_step_name)?;
        let after = |ms| now.after(ms).ok_or(QueueError::OutOfRange);
        self.delay_ms.map(after).transpose()
    }

    /// When the next attempt is due, and how many deliveries count before it; `None` if the job dies.
    pub(super) fn next_attempt(
        &self,
        job: Job<'_>,
        asked: Option<u64>,
        now: Now,
    ) -> Option<(u64, u32)> {
        let (terms, Status { due, life, .. }) = (job.terms(), job.status());
        let attempts = life.attempts;
        match self.kind {
            NackKind::Fatal => None,
            NackKind::Fail if terms.exhausted_by(attempts) => None,
            NackKind::Fail => {
                let backoff = || now.after_capped(self.backoff(job, attempts));
                Some((asked.unwrap_or_else(backoff), attempts))
            }
            NackKind::Silent => Some((asked.unwrap_or(due), attempts.saturating_sub(1))),
        }
    }

    /// The wait by the job's own ladder, or by the server's: then up to a tenth longer, so that what failed together is
    /// not tried together.
    fn backoff(&self, job: Job<'_>, attempts: u32) -> u64 {
        if let Some(own) = job.terms().rest.backoff() {
            return own.after(attempts);
        }
        let ms = delay_after(self.default_backoff.iter().copied(), attempts);
        ms + spread(job.id(), attempts.into(), ms / 10)
    }

    /// How the attempt failed, and why, for the job's history.
    fn failing(&self) -> (Failing, Option<&'a [u8]>) {
        let kept = |reason: &'a [u8]| &reason[..reason.len().min(PAST_REASON_MAX)];
        let how = match self.kind {
            NackKind::Fatal => Failing::Fatal,
            NackKind::Fail | NackKind::Silent => Failing::Nacked,
        };
        (how, self.reason.map(kept))
    }

    /// The failure to record; `None` if the delivery did not fail, and the client gave no reason.
    pub(super) fn failure(&self, now: Now) -> Option<Failure<'_>> {
        if self.kind == NackKind::Silent && self.reason.is_none() {
            return None;
        }
        let kept = |reason: &'_ [u8]| reason.len().min(REASON_MAX);
        Some(Failure {
            at: now.ms(),
            reason: self.reason.map(|reason| &reason[..kept(reason)]),
        })
    }
}

impl Queue {
    /// Ends a finished job, with its result if it has one; returns whether the claim matched a delivery.
    pub fn ack(
        &mut self,
        id: &[u8],
        claim: Claim,
        result: Option<&[u8]>,
        now: Now,
        out: &mut Effects,
    ) -> bool {
        self.expire_for_turns(now, out);
        let Some((handle, status)) = self.find_with_status(self.jobs().hashed(id), now, out) else {
            return false;
        };
        if !claim.fits(status.life.token) {
            return false;
        }
        self.end(handle, Cause::Acked(result), now.ms(), now, out);
        if let Some(departure) = self.last_departure() {
            departure.is_claimed = claim.is_token();
            if result.is_some() {
                departure.set_value(result);
            }
        }
        true
    }

    /// Gives a job back; returns its new state, or `None` if the claim matches no live job.
    pub fn nack(
        &mut self,
        nack: &Nack<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Result<Option<State>, QueueError> {
        let asked = nack.asked(now)?;
        let id = self.jobs().hashed(nack.id);
        Ok(self.nack_named(id, nack, asked, now, out))
    }

    pub(super) fn nack_named(
        &mut self,
        id: Id<'_>,
        nack: &Nack<'_>,
        asked: Option<u64>,
        now: Now,
        out: &mut Effects,
    ) -> Option<State> {
        self.expire_some(EXPIRE_BUDGET, now, out);
        let (handle, Status { place, life, .. }) = self.find_with_status(id, now, out)?;
        if !nack.claim.fits(life.token) || place == Place::Dead {
            return None;
        }
        if self.remove_if_expired(handle, now, out).is_some() {
            return None;
        }
        let awaits = nack.awaited(handle, self.jobs());
        let asked = match awaits {
            Some(_) => Some(asked.unwrap_or(INSTANT_MAX)),
            None => asked.filter(|_| nack.awaits.is_none()),
        };
        if self.settings().history != 0 && nack.kind != NackKind::Silent {
            let (how, reason) = nack.failing();
            self.keep_attempt(handle, (now.ms(), how), reason, out);
        }
        let job = self.jobs().job(handle);
        let (terms, failure) = (job.terms(), nack.failure(now));
        let priority = nack.priority.unwrap_or(terms.priority);
        let Some((due, attempts)) = nack.next_attempt(job, asked, now) else {
            let cause = Cause::Nacked { priority, failure };
            self.end(handle, cause, now.ms(), now, out);
            if let Some(departure) = self.last_departure() {
                departure.is_claimed = nack.claim.is_token();
                departure.set_value(failure.and_then(|failure| failure.reason));
            }
            self.trim_dead_after(now.ms(), 1, now, out);
            return Some(State::Dead);
        };
        let change = Change::Nacked {
            due,
            priority,
            attempts,
            failure,
        };
        self.commit_job(handle, change, now, out);
        if let Some(departure) = self.last_departure() {
            departure.is_claimed = nack.claim.is_token();
        }
        let state = self.jobs().state_of(handle, now);
        if let Some(name) = awaits.filter(|_| state == State::Delayed) {
            self.commit_noted(handle, Note::Awaits { name }, out);
        }
        self.trim_dead_after(now.ms(), 1, now, out);
        Some(state)
    }

    /// Has the job keep the attempt that failed. Its delivery is current.
    pub(super) fn keep_attempt(
        &mut self,
        handle: Handle,
        (ended, how): (u64, Failing),
        reason: Option<&[u8]>,
        out: &mut Effects,
    ) {
        if !self.jobs().has_room_for_note() {
            return;
        }
        let life = self.jobs().job(handle).life();
        let attempt = Attempt {
            token: life.token,
            attempts: life.attempts,
            ended,
            how,
            reason,
        };
        self.commit_failed(handle, attempt, out);
    }

    /// Starts a new lease now; returns when it ends, or `None` if the claim matches no reserved job.
    pub fn touch(
        &mut self,
        id: &[u8],
        claim: Claim,
        touch: Touch<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Option<u64> {
        let id = self.jobs().hashed(id);
        let (handle, lease) = self.touched(id, claim, touch.ttr_ms, now, out)?;
        if let Some(lease_ms) = lease.changed_to {
            let Touched { deadline, .. } = lease;
            self.commit_job(handle, Change::Touched { deadline, lease_ms }, now, out);
        }
        if let Some(weight) = touch.weight {
            self.serving_mut().reweigh(handle, weight, now);
        }
        if let Some(text) = touch.progress {
            let text = &text[..text.len().min(PROGRESS_MAX)];
            self.commit_noted(handle, Note::Progress { text }, out);
        }
        Some(lease.deadline)
    }

    /// The job that a TOUCH matches, and its new lease.
    #[inline]
    pub(super) fn touched(
        &mut self,
        id: Id<'_>,
        claim: Claim,
        ttr_ms: Option<u64>,
        now: Now,
        out: &mut Effects,
    ) -> Option<(Handle, Touched)> {
        let (handle, Status { place, life, .. }) = self.find_with_status(id, now, out)?;
        if place != Place::Reserved || !claim.fits(life.token) {
            return None;
        }
        let lease_ms = ttr_ms.unwrap_or(life.lease_ms);
        let deadline = now.after_capped(lease_ms);
        let differs = (deadline, lease_ms) != (life.at, life.lease_ms);
        let changed_to = differs.then_some(lease_ms);
        Some((
            handle,
            Touched {
                deadline,
                changed_to,
            },
        ))
    }
}

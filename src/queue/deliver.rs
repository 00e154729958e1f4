//! Deliveries decided: POP, ACK, NACK, TOUCH.

use super::budget::{DELIVERED_BYTES, OUT_OF_TURN, SETTLE_BUDGET};
use super::clock::{Mint, Now};
use super::effect::{Change, Death, End, Ended, Removal};
use super::effects::Effects;
use super::error::QueueError;
use super::job::{Failure, Handle, Place, State, REASON_MAX, TOKEN_MAX};
use super::state::store::{Course, Id, Job};
use super::Queue;

/// What POP asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pop<'a> {
    /// Jobs at most.
    pub count: u64,
    /// That very job.
    pub id: Option<&'a [u8]>,
    /// Length of the lease, instead of the job's.
    pub ttr_ms: Option<u64>,
    /// Removes the job at delivery.
    pub noack: bool,
}

/// A worker's right to a job: the token that names this delivery, and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Larger than that of any delivery before.
    pub token: u64,
    /// Unix-ms.
    pub deadline_ms: u64,
}

/// One job in a consumer's hand.
#[allow(missing_docs, reason = "called as in POP's reply")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    pub id: &'a [u8],
    pub payload: &'a [u8],
    /// This one included.
    pub attempts: u32,
    /// None where the job went at delivery.
    pub lease: Option<Lease>,
    /// For which instant it was due; of a recurring job that of its occurrence.
    pub due: u64,
}

/// Of [`TOKEN_MAX`].
const TOKEN_DIGITS: usize = 19;
const _: () = assert!(TOKEN_MAX.ilog10() as usize + 1 == TOKEN_DIGITS);

/// Which delivery a client speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Whichever is current.
    Current,
    /// The one of that token, while it is current.
    Token(u64),
    /// Something that is no token.
    Nothing,
}

impl Claim {
    /// From what the client sent: decimal digits as we send them, or nothing that fits.
    pub fn of_token(digits: &[u8]) -> Self {
        // Asked for each job of a heartbeat: one pass, no detour over text. So many digits always fit.
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

    fn fits(self, token: u64) -> bool {
        match self {
            Claim::Current => token != 0,
            Claim::Token(claimed) => token != 0 && claimed == token,
            Claim::Nothing => false,
        }
    }
}

pub(super) struct Touched {
    pub deadline: u64,
    /// The length of the lease, unless it is that lease already.
    pub changed_to: Option<u64>,
}

/// What becomes of a job that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackKind {
    /// The next attempt after its backoff; dead after the last.
    Fail,
    /// The delivery is not counted.
    Silent,
    /// Dead now.
    Fatal,
}

/// What NACK says of one job.
#[allow(missing_docs, reason = "called as the commands call them")]
#[derive(Clone, Copy, Debug)]
pub struct Nack<'a> {
    pub id: &'a [u8],
    pub claim: Claim,
    pub delay_ms: Option<u64>,
    pub priority: Option<i32>,
    pub kind: NackKind,
    /// Only its first bytes are kept.
    pub reason: Option<&'a [u8]>,
}

impl Nack<'_> {
    /// The instant that its DELAY names.
    pub(super) fn asked(&self, now: Now) -> Result<Option<u64>, QueueError> {
        let after = |ms| now.after(ms).ok_or(QueueError::OutOfRange);
        self.delay_ms.map(after).transpose()
    }

    /// What is noted of it; nothing where the delivery did not fail, and nobody says why it ended.
    fn failure(&self, now: Now) -> Option<Failure<'_>> {
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
    /// Delivers up to `count` ready jobs in ready order, fewer of large ones; returns how many. `deliver` sees
    /// each one before anything else happens to it.
    pub fn pop(
        &mut self,
        pop: &Pop<'_>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
        mut deliver: impl FnMut(Delivery<'_>),
    ) -> u64 {
        self.settle_for(self.most_deliverable(pop, now), Place::Scheduled, now, out);
        if let Some(id) = pop.id {
            self.settle_job(id, now, out);
        }
        let mut budget = OUT_OF_TURN;
        self.take(pop, now, mint, out, &mut budget, &mut deliver)
    }

    /// No more jobs than that can be delivered, whatever ends.
    fn most_deliverable(&self, pop: &Pop<'_>, now: Now) -> u64 {
        if self.is_shut(now) {
            return 0;
        }
        let by_rate = self
            .settings()
            .rate
            .map_or(u64::MAX, |rate| rate.count.into());
        let by_places = match self.settings().max_reserved {
            0 => u64::MAX,
            _ if pop.noack => u64::MAX,
            places => places,
        };
        pop.count.min(by_rate).min(by_places)
    }

    /// As [`Queue::pop`], for whom what is past has been settled already. Where that was not all, jobs whose
    /// TTL is over stand before others: each takes one of the budget, and at none left it ends.
    pub fn take(
        &mut self,
        pop: &Pop<'_>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
        budget: &mut usize,
        deliver: &mut impl FnMut(Delivery<'_>),
    ) -> u64 {
        let (mut delivered, mut bytes) = (0, 0);
        while delivered < pop.count && *budget > 0 && bytes < DELIVERED_BYTES {
            self.follow_clock_back(now);
            self.look_before(pop.id, pop.noack, now);
            let handle = match self.next_deliverable(pop, now) {
                None if self.look_further(pop, now) => self.next_deliverable(pop, now),
                found => found,
            };
            let Some(handle) = handle else {
                break;
            };
            if self.expire_overdue(handle, now, out) {
                *budget -= 1;
                continue;
            }
            bytes += self.deliver(handle, pop, now, mint, out, deliver);
            delivered += 1;
            self.prefetch_following();
        }
        delivered
    }

    /// Whether a group has been found that may be served, where not all are known.
    fn look_further(&mut self, pop: &Pop<'_>, now: Now) -> bool {
        let unknown = self.is_passing() && pop.id.is_none() && !self.is_held(pop, now);
        unknown && self.look_at_ready(pop.noack, now)
    }

    fn is_held(&self, pop: &Pop<'_>, now: Now) -> bool {
        self.is_shut(now) || (!pop.noack && self.reserved_is_full())
    }

    /// Delivers nothing, whatever ends.
    fn is_shut(&self, now: Now) -> bool {
        let rate = self.rate();
        self.is_paused(now) || rate.is_some_and(|window| !window.is_open(now))
    }

    fn next_deliverable(&self, pop: &Pop<'_>, now: Now) -> Option<Handle> {
        if self.is_held(pop, now) {
            return None;
        }
        match pop.id {
            Some(id) => self
                .find(self.jobs().hashed(id))
                .filter(|&job| self.is_ready(job, now) && self.may_be_served(job, now, pop.noack)),
            None => self.first_in_turn(now, pop.noack),
        }
    }

    /// Returns the length of the payload.
    fn deliver(
        &mut self,
        handle: Handle,
        pop: &Pop<'_>,
        now: Now,
        mint: &mut Mint,
        out: &mut Effects,
        deliver: &mut impl FnMut(Delivery<'_>),
    ) -> usize {
        let job = self.jobs().job(handle);
        if !pop.noack {
            let lease_ms = pop.ttr_ms.unwrap_or(job.terms().ttr_ms);
            let (token, deadline) = (
                mint.next_token(now, self.token_floor()),
                now.after_capped(lease_ms),
            );
            let lease = Lease {
                token,
                deadline_ms: deadline,
            };
            let len = Self::show(job, Some(lease), deliver);
            let change = Change::Reserved {
                token,
                deadline,
                lease_ms,
            };
            self.commit_job(handle, change, now, out);
            return len;
        }
        let len = Self::show(job, None, deliver);
        if self.recurs(handle) {
            self.end_occurrence(handle, Ended::Popped, None, now, out);
            return len;
        }
        let popped = Change::Removed {
            cause: Removal::Popped,
            remember: self.remember_until(now),
        };
        let change = self.ended(handle, popped, End::Popped, now, out);
        self.commit_job(handle, change, now, out);
        len
    }

    /// Shows a job to its consumer; returns the length of its payload.
    fn show(job: Job<'_>, lease: Option<Lease>, deliver: &mut impl FnMut(Delivery<'_>)) -> usize {
        let Course { due, life, .. } = job.course();
        let payload = job.payload();
        deliver(Delivery {
            id: job.id(),
            payload,
            attempts: life.attempts.saturating_add(1),
            due: job.recurring().map_or(due, |it| it.round.occurrence),
            lease,
        });
        payload.len()
    }

    /// Until when NX refuses an id that is finished now; 0 where it does not.
    fn remember_until(&self, now: Now) -> u64 {
        match self.settings().dedupe_ms {
            0 => 0,
            window_ms => now.after_capped(window_ms),
        }
    }

    /// Removes a finished job; whether the claim reached one.
    pub fn ack(&mut self, id: &[u8], claim: Claim, now: Now, out: &mut Effects) -> bool {
        self.settle_for_turns(now, out);
        let Some(handle) = self.find_settled(self.jobs().hashed(id), now, out) else {
            return false;
        };
        if !claim.fits(self.jobs().job(handle).life().token) {
            return false;
        }
        if self.recurs(handle) {
            self.end_occurrence(handle, Ended::Acked, None, now, out);
            return true;
        }
        let acked = Change::Removed {
            cause: Removal::Acked,
            remember: self.remember_until(now),
        };
        let change = self.ended(handle, acked, End::Acked, now, out);
        self.commit_job(handle, change, now, out);
        true
    }

    /// Gives a job back; its new state, or `None` where the claim reaches none that is alive.
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
        self.settle_some(SETTLE_BUDGET, now, out);
        let handle = self.find_settled(id, now, out)?;
        let Course { place, life, .. } = self.jobs().job(handle).course();
        if !nack.claim.fits(life.token) || place == Place::Dead {
            return None;
        }
        if self.expire_overdue(handle, now, out) {
            return None;
        }
        let change = match self.nacked(handle, nack, asked, now) {
            Change::Died {
                cause: Death::Nacked { priority },
                ..
            } if self.recurs(handle) => {
                self.bury_occurrence(
                    handle,
                    Some(priority),
                    now.ms(),
                    nack.failure(now),
                    (now, out),
                );
                return Some(State::Dead);
            }
            died @ Change::Died { .. } => self.ended(handle, died, End::Nacked, now, out),
            lives => lives,
        };
        if matches!(change, Change::Succeeded { .. }) {
            self.commit_job(handle, change, now, out);
            return Some(State::Dead);
        }
        match nack.failure(now) {
            Some(failure) => self.commit_failed(handle, change, failure, now, out),
            None => self.commit_job(handle, change, now, out),
        }
        let state = self.state_of(handle, now);
        self.trim_dead_after(now.ms(), 1, now, out);
        Some(state)
    }

    fn nacked(&self, handle: Handle, nack: &Nack<'_>, asked: Option<u64>, now: Now) -> Change {
        let job = self.jobs().job(handle);
        let terms = job.terms();
        let Course { due, life, .. } = job.course();
        let attempts = life.attempts;
        let priority = nack.priority.unwrap_or(terms.priority);
        let died = Change::Died {
            at: now.ms(),
            cause: Death::Nacked { priority },
        };
        match nack.kind {
            NackKind::Fatal => died,
            NackKind::Fail if terms.exhausted_by(attempts) => died,
            NackKind::Fail => Change::Nacked {
                due: asked.unwrap_or_else(|| now.after_capped(terms.backoff_after(attempts))),
                priority,
                attempts,
            },
            NackKind::Silent => Change::Nacked {
                due: asked.unwrap_or(due),
                priority,
                attempts: attempts.saturating_sub(1),
            },
        }
    }

    /// A fresh lease from now; its end, or `None` where the claim reaches no reserved job.
    pub fn touch(
        &mut self,
        id: &[u8],
        claim: Claim,
        ttr_ms: Option<u64>,
        now: Now,
        out: &mut Effects,
    ) -> Option<u64> {
        let id = self.jobs().hashed(id);
        let (handle, lease) = self.touched(id, claim, ttr_ms, now, out)?;
        if let Some(lease_ms) = lease.changed_to {
            let Touched { deadline, .. } = lease;
            self.commit_job(handle, Change::Touched { deadline, lease_ms }, now, out);
        }
        Some(lease.deadline)
    }

    /// The job that a touch reaches, and what it does to its lease.
    #[inline]
    pub(super) fn touched(
        &mut self,
        id: Id<'_>,
        claim: Claim,
        ttr_ms: Option<u64>,
        now: Now,
        out: &mut Effects,
    ) -> Option<(Handle, Touched)> {
        let handle = self.find_settled(id, now, out)?;
        let Course { place, life, .. } = self.jobs().job(handle).course();
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

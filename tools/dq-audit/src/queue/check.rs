//! Judges one job by itself.

use redis_dq::queue::job::{Place, INSTANT_MAX, TOKEN_MS_SHIFT};

use super::job::Job;
use crate::judge::Judge;
use crate::rule::Rule;

/// The first and the last instant at which a lease can have begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    pub earliest: u64,
    pub latest: u64,
}

/// A lease is counted from the next full millisecond; a token's upper bits are of that time or later. A lease that
/// would end after the last instant says nothing.
pub fn begun(deadline: u64, lease_ms: u64, token: Option<u64>) -> Begun {
    let by_token = token.map_or(u64::MAX, |token| token >> TOKEN_MS_SHIFT);
    if deadline >= INSTANT_MAX {
        return Begun {
            earliest: 0,
            latest: by_token,
        };
    }
    let from = deadline.saturating_sub(lease_ms);
    Begun {
        earliest: from.saturating_sub(1),
        latest: from.min(by_token),
    }
}

/// Judges whether the lease has been overdue for so long that its end should have been recorded.
pub(super) fn check_over(id: &[u8], job: &Job, judge: &mut Judge) {
    const AT_ONCE_MS: u64 = 10_000;
    if job.place != Place::Reserved {
        return;
    }
    let gone_on = judge.gone_on_after_ms(job.at);
    if gone_on > AT_ONCE_MS {
        let text = format!(
            "its lease, which ends at {}, had not ended {gone_on} ms later",
            job.at
        );
        judge.fault(Rule::OneLease, id, text);
    }
}

/// Judges a lease that is said to have expired.
pub(super) fn end_lease(id: &[u8], job: &Job, judge: &mut Judge) {
    if job.place == Place::Reserved {
        judge.claim(
            job.at,
            Rule::OneLease,
            id,
            "its lease was ended, which does so",
        );
    } else {
        judge.fault(Rule::OneLease, id, "a lease ended that had not begun");
    }
}

/// Judges a death by the end of the lease.
pub(super) fn check_death(id: &[u8], job: &Job, at: u64, judge: &mut Judge) {
    if !job.is_exhausted() {
        let text = format!(
            "dead after {} of {} attempts",
            job.attempts, job.max_attempts
        );
        judge.fault(Rule::NothingLost, id, text);
    }
    if job.place == Place::Reserved && at != job.at {
        let text = format!("dead since {at}, but its lease ends at {}", job.at);
        judge.fault(Rule::OneLease, id, text);
    }
}

pub(super) fn check_current(id: &[u8], job: &Job, what: &str, judge: &mut Judge) {
    if job.token == 0 || job.place == Place::Dead {
        let text = format!("{what} by a worker that did not have it");
        judge.fault(Rule::StaleNeverActs, id, text);
    }
}

/// A job may be acknowledged even if it died when its lease expired.
pub(super) fn check_acked(id: &[u8], job: &Job, judge: &mut Judge) {
    if job.token == 0 {
        judge.fault(
            Rule::StaleNeverActs,
            id,
            "acknowledged by a worker that did not have it",
        );
    }
}

/// A reserved job may expire, too, when it is given back after its TTL.
pub(super) fn check_expired(id: &[u8], job: &Job, judge: &mut Judge) {
    if job.expires == 0 {
        judge.fault(Rule::NothingLost, id, "expired without a TTL");
    }
    judge.claim(
        job.expires,
        Rule::NothingLost,
        id,
        "gone by its TTL, which ends",
    );
}

pub(super) fn check_timed_out_expired(id: &[u8], job: &Job, judge: &mut Judge) {
    end_lease(id, job, judge);
    if job.expires == 0 || job.expires > job.at {
        judge.fault(Rule::NothingLost, id, "expired before its TTL");
    }
}

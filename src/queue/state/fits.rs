//! Whether what an effect says fits the job, and a stored job's fields each other. Effects may be forged.

use super::bounds::{
    check_failure, check_id, check_instant, check_occurrence, malformed, CONTRADICTION,
};
use super::store::{Job, NewJob};
use crate::queue::effect::Change;
use crate::queue::error::QueueError;
use crate::queue::job::{Life, Place, INSTANT_MAX, SEQ_MAX, TOKEN_MAX};

/// Whether the change is one that the job's place allows, with numbers within bounds.
#[inline]
pub fn check_change(job: Job<'_>, change: Change<'_>) -> Result<(), QueueError> {
    let place = job.place();
    let is_live = !matches!(place, Place::Dead | Place::Blocked);
    let fits = match change {
        Change::Reserved {
            token,
            deadline,
            lease_ms,
        } => {
            place == Place::Scheduled
                && (1..=TOKEN_MAX).contains(&token)
                && deadline.max(lease_ms) <= INSTANT_MAX
        }
        Change::Touched { deadline, lease_ms } => {
            place == Place::Reserved && deadline.max(lease_ms) <= INSTANT_MAX
        }
        Change::TimedOut => place == Place::Reserved,
        Change::Nacked { due, .. } => {
            change.failure().map_or(Ok(()), check_failure)?;
            is_live && due <= INSTANT_MAX
        }
        Change::Died { at, .. } => {
            change.failure().map_or(Ok(()), check_failure)?;
            let ends_otherwise = job.is_followed() || job.recurring().is_some();
            is_live && at <= INSTANT_MAX && !ends_otherwise
        }
        Change::Rescheduled { due } => place == Place::Scheduled && due <= INSTANT_MAX,
        Change::Kicked { due } => place == Place::Dead && due <= INSTANT_MAX,
        Change::Removed { remember, .. } => remember <= INSTANT_MAX,
        Change::Prioritized { .. } => place == Place::Scheduled,
        Change::Succeeded { remember, .. } => remember <= INSTANT_MAX && job.is_followed(),
        Change::SuccessorExpired => job.is_followed(),
        Change::Unblocked { due } => place == Place::Blocked && due <= INSTANT_MAX,
    };
    if fits {
        Ok(())
    } else {
        Err(malformed("an effect that the job's state does not allow"))
    }
}

/// Whether the fields of a stored job fit together. Its terms and other jobs are not checked here.
pub fn check_stored(job: &NewJob<'_>) -> Result<(), QueueError> {
    let life = &job.life;
    check_id(job.id)?;
    for instant in [job.due, life.expires, life.at, life.lease_ms] {
        check_instant(instant)?;
    }
    if job.seq > SEQ_MAX || life.death > SEQ_MAX || life.token > TOKEN_MAX {
        return Err(malformed("a number that leaves no room to count on"));
    }
    job.failure.map_or(Ok(()), check_failure)?;
    if let Some((rule, occurrence)) = &job.recurring {
        check_occurrence(occurrence)?;
        if matches!(job.place, Place::Dead | Place::Successor | Place::Blocked)
            || rule.ttl_ms == 0 && life.expires != 0
        {
            return Err(malformed(CONTRADICTION));
        }
    }
    let fits = match job.place {
        Place::Scheduled => life.at == 0 && life.death == 0,
        Place::Reserved => life.token != 0 && life.death == 0,
        Place::Dead => true,
        Place::Blocked => life.at == 0 && life.death == 0 && life.token == 0,
        Place::Successor => {
            let fresh = Life {
                expires: life.expires,
                ..Life::default()
            };
            *life == fresh && job.failure.is_none()
        }
    };
    if !fits {
        return Err(malformed(CONTRADICTION));
    }
    Ok(())
}

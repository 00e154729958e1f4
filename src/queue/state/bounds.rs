//! Within which bounds what an effect says must be. Effects may be forged.

use crate::queue::error::QueueError;
use crate::queue::job::{Failure, GROUP_MAX, ID_MAX, INSTANT_MAX, REASON_MAX, SEQ_MAX};
use crate::queue::recurring::rule::{Next, Occurrence};

pub const CONTRADICTION: &str = "a stored job that contradicts itself or another";

pub const fn malformed(what: &'static str) -> QueueError {
    QueueError::Malformed(what)
}

pub fn check_instant(instant: u64) -> Result<(), QueueError> {
    if instant > INSTANT_MAX {
        return Err(malformed("an instant past the last"));
    }
    Ok(())
}

pub fn check_id(id: &[u8]) -> Result<(), QueueError> {
    if !(1..=ID_MAX).contains(&id.len()) {
        return Err(malformed("an id of an impossible length"));
    }
    Ok(())
}

pub fn check_failure(failure: Failure<'_>) -> Result<(), QueueError> {
    check_instant(failure.at)?;
    if failure
        .reason
        .is_some_and(|reason| reason.len() > REASON_MAX)
    {
        return Err(malformed("a reason longer than any that is kept"));
    }
    Ok(())
}

pub fn check_group(name: &[u8]) -> Result<(), QueueError> {
    if !(1..=GROUP_MAX).contains(&name.len()) {
        return Err(malformed("a group's name of an impossible length"));
    }
    Ok(())
}

pub fn check_occurrence(occurrence: &Occurrence) -> Result<(), QueueError> {
    check_instant(occurrence.at)?;
    if occurrence.runs > SEQ_MAX || !is_offset(occurrence.offset_s) {
        return Err(malformed("a number that leaves no room to count on"));
    }
    Ok(())
}

pub fn check_next(next: Next) -> Result<(), QueueError> {
    [next.occurrence, next.due, next.expires]
        .into_iter()
        .try_for_each(check_instant)?;
    if !is_offset(next.offset_s) {
        return Err(malformed("a clock that is ahead by more than a day"));
    }
    Ok(())
}

fn is_offset(offset_s: i32) -> bool {
    offset_s.unsigned_abs() < 26 * 3600
}

//! Bounds of arguments, as the server has them. What is outside is refused, by its name, before anything is sent.

use crate::error::Error;
use crate::values::{instant_ms, ms};
use std::time::{Duration, SystemTime};

const LATEST: u64 = (1 << 42) - 1;

pub(crate) fn between(
    name: &str,
    value: u64,
    unit: &str,
    first: u64,
    last: u64,
) -> Result<(), Error> {
    match (first..=last).contains(&value) {
        true => Ok(()),
        false => Err(Error::Usage(format!(
            "{name}: {value}{unit} is not between {first} and {last}"
        ))),
    }
}

/// Durations, each with its name and the least number of milliseconds.
pub(crate) fn lengths(
    all: impl IntoIterator<Item = (&'static str, Option<Duration>, u64)>,
) -> Result<(), Error> {
    all.into_iter()
        .try_for_each(|(name, length, first)| match length {
            Some(length) => between(name, ms(length), " ms", first, LATEST),
            None => Ok(()),
        })
}

pub(crate) fn instants(
    all: impl IntoIterator<Item = (&'static str, Option<SystemTime>)>,
) -> Result<(), Error> {
    all.into_iter().try_for_each(|(name, at)| match at {
        Some(at) => between(name, instant_ms(at), " ms", 0, LATEST),
        None => Ok(()),
    })
}

pub(crate) fn backoff(steps: Option<&Vec<Duration>>) -> Result<(), Error> {
    let Some(steps) = steps else { return Ok(()) };
    between("backoff", steps.len() as u64, " steps", 0, 1024)?;
    lengths(steps.iter().map(|step| ("backoff", Some(*step), 0)))
}

/// The name of a group or a signal.
pub(crate) fn name(name: &str, text: Option<&String>) -> Result<(), Error> {
    self::text(name, text, 256)
}

/// A text that is kept with jobs.
pub(crate) fn text(name: &str, text: Option<&String>, most: u64) -> Result<(), Error> {
    let length = text.map(|text| text.len() as u64);
    length.map_or(Ok(()), |length| between(name, length, " bytes", 1, most))
}

pub(crate) fn number(name: &str, value: Option<u64>, first: u64, last: u64) -> Result<(), Error> {
    value.map_or(Ok(()), |value| between(name, value, "", first, last))
}

/// The id of a job to be added.
pub(crate) fn id(id: &[u8]) -> Result<(), Error> {
    if id == b"*" {
        let why = "id: \"*\" is not an id; leave it out for a new one";
        return Err(Error::Usage(why.into()));
    }
    between("id", id.len() as u64, " bytes", 1, 1024)
}

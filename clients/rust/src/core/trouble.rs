//! Whether waiting helps after an error, and for how long to wait.

use super::fatalities::FATALITIES;
use crate::error::Error;
use crate::refused::Refused;
use crate::values::error_text;
use redis::Cmd;
use std::time::Duration;

const FIRST_S: f64 = 0.05;
const LONGEST_S: f64 = 5.0;

/// How long to wait after the first, second, ... failure to reach the server. The jitter only adds.
pub(crate) fn trouble_wait(times: u32, jitter: f64) -> Duration {
    let grown = FIRST_S * 2f64.powi(times.saturating_sub(1).min(62) as i32);
    Duration::from_secs_f64(grown.min(LONGEST_S) * (1.0 + jitter / 4.0))
}

/// The error, with what to do, if waiting does not fix what the server says.
pub(crate) fn fatal(text: &str) -> Option<Error> {
    let said = text.strip_prefix("ERR ").unwrap_or(text);
    let found = FATALITIES
        .iter()
        .find(|(words, is_first, _)| match is_first {
            true => said.starts_with(words),
            false => said.contains(words),
        })?;
    Some(Error::configuration(found.2, text))
}

/// Whether the server will refuse the command again.
pub(crate) fn is_for_good(text: &str) -> bool {
    text.starts_with("ERR ") || text.starts_with("MAX")
}

/// Whether another server has the key, or will have it.
pub(crate) fn is_elsewhere(text: &str) -> bool {
    ["MOVED", "ASK", "READONLY", "CLUSTERDOWN", "MASTERDOWN"]
        .iter()
        .any(|code| text.starts_with(code))
}

/// Whether a server's error passes soon, and the command was not executed.
pub(crate) fn passes(code: &str) -> bool {
    is_elsewhere(code) || ["LOADING", "TRYAGAIN"].contains(&code)
}

impl Error {
    /// Says how many of so many jobs were added all the same.
    pub(crate) fn after(mut self, added: usize, all: usize) -> Self {
        if let Error::Refused(why) | Error::QueueFull(why) = &mut self {
            if added > 0 {
                why.advice = format!("; {added} of {all} jobs were added");
            }
        }
        self
    }

    /// The error for what the server says to a command; `None`: to a new connection.
    pub(crate) fn refused(command: Option<&Cmd>, text: &str) -> Self {
        let of = Box::new(Refused::of(command, text));
        if ["MAXLEN", "MAXBYTES"].contains(&&*of.code) {
            return Error::QueueFull(of);
        }
        match text.strip_prefix("ERR unknown command") {
            Some(_) => fatal(text).unwrap_or(Error::Refused(of)),
            None => Error::Refused(of),
        }
    }
}

/// How many ids an error names.
const MOST_NAMES: usize = 10;

/// Whether the server has refused an `AFTER` because it does not hold one of its jobs.
pub(crate) fn is_unheld(text: &str) -> bool {
    text.contains("AFTER names a job that the queue does not hold")
}

pub(crate) fn some_of(ids: &[Vec<u8>]) -> String {
    let names = ids.iter().take(MOST_NAMES);
    let names: Vec<_> = names.map(|id| String::from_utf8_lossy(id)).collect();
    match ids.len() - names.len() {
        0 => names.join(", "),
        left => format!("{} and {left} more", names.join(", ")),
    }
}

impl From<redis::RedisError> for Error {
    fn from(error: redis::RedisError) -> Self {
        match error.code() {
            Some(_) => Error::refused(None, &error_text(&error)),
            None => Error::Connection(error_text(&error)),
        }
    }
}

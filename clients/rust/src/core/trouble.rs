//! What went wrong: whether waiting helps, and for how long.

use super::outcome::exponential;
use crate::error::Error;
use crate::values::error_text;
use std::time::Duration;

/// How long to wait when the server is away, the first, second, ... time.
pub(crate) fn trouble_wait(times: u32, jitter: f64) -> Duration {
    exponential(
        times,
        Duration::from_millis(50),
        Duration::from_secs(5),
        jitter,
    )
}

enum Says {
    Anywhere(&'static str),
    First(&'static str),
}
use Says::{Anywhere, First};

const UPGRADE: &str = "the server's dq module is older than this library: upgrade the module";
const NO_DATABASE: &str =
    "the server does not have this database: choose another number in the URL";

const FATAL: [(Says, &str); 11] = [
    (Anywhere("NOPERM"), "the server's ACL denies this user what a worker needs: permit the queue's keys and the dq.* commands"),
    (Anywhere("NOAUTH"), "the server requires a password: set user name and password in the URL, redis://user:password@host"),
    (Anywhere("WRONGPASS"), "the server refuses user name or password: set the right ones in the URL, redis://user:password@host"),
    (Anywhere("without any password configured"), "the server has no password for this user: take it out of the URL"),
    (Anywhere("unknown command"), "the server does not have the dq module: load it, with 'loadmodule /path/to/libdq.so' in its configuration"),
    (First("WRONGTYPE"), "a queue's key holds a value of another type: choose another name for the queue, or delete that key"),
    (First("syntax error"), UPGRADE),
    (First("wrong number of arguments"), UPGRADE),
    (First("timeout is not a float"), UPGRADE),
    (Anywhere("DB index"), NO_DATABASE),
    (Anywhere("invalid DB"), NO_DATABASE),
];

/// What waiting does not mend, by what the server says, and what to do.
pub(crate) fn fatal(text: &str) -> Option<Error> {
    let said = text.strip_prefix("ERR ").unwrap_or(text);
    let is_it = |says: &Says| match says {
        Anywhere(words) => said.contains(words),
        First(words) => said.starts_with(words),
    };
    let found = FATAL.iter().find(|(says, _)| is_it(says))?;
    Some(Error::configuration(found.1, text))
}

/// The server will never take such a command.
pub(crate) fn is_for_good(text: &str) -> bool {
    text.starts_with("ERR ") || text.starts_with("MAX")
}

/// Another server has the key, or will have it.
pub(crate) fn is_elsewhere(text: &str) -> bool {
    ["MOVED", "ASK", "READONLY", "CLUSTERDOWN", "MASTERDOWN"]
        .iter()
        .any(|code| text.starts_with(code))
}

impl Error {
    /// Of a command that the server refused.
    pub(crate) fn refused(text: String) -> Self {
        if text.starts_with("MAXLEN") || text.starts_with("MAXBYTES") {
            return Error::QueueFull(text);
        }
        match text.strip_prefix("ERR unknown command") {
            Some(_) => fatal(&text).unwrap_or(Error::Refused(text)),
            None => Error::Refused(text),
        }
    }
}

impl From<redis::RedisError> for Error {
    fn from(error: redis::RedisError) -> Self {
        match error.code() {
            Some(_) => Error::refused(error_text(&error)),
            None => Error::Connection(error_text(&error)),
        }
    }
}

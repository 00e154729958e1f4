use crate::refused::Refused;
use std::fmt;
use std::time::Duration;

/// Any error, as handlers and middleware return it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The errors of a queue's methods and of a worker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something cannot work as it is configured, and waiting would not help. The text says what to do.
    #[error("dq: {what}{}", in_brackets(.said))]
    Configuration {
        /// What to do.
        what: String,
        /// The server's error, if it sent one.
        said: Option<String>,
    },
    /// The queue has reached its `MAXLEN` or `MAXBYTES`; what was refused was not added.
    #[error("dq: queue is full: {0}")]
    QueueFull(Box<Refused>),
    /// A job of this id is there already; it was not added again.
    #[error("dq: job {0:?} is there already")]
    Exists(String),
    /// There is no job of this id that [`OnlyReplace`](crate::IfExists::OnlyReplace) could replace; it was not added.
    #[error("dq: there is no job {0:?} to replace")]
    NotFound(String),
    /// The job that was waited for did not succeed.
    #[error("dq: job {id} failed ({outcome}){}", after_colon(.reason))]
    JobFailed {
        /// The job's id.
        id: String,
        /// How it ended.
        outcome: Outcome,
        /// Why the job is dead, if a reason was given.
        reason: Option<String>,
    },
    /// What was waited for did not come in time.
    #[error("dq: job {id:?}{} within {timeout:?}", not(.signal))]
    TimedOut {
        /// The job's id.
        id: String,
        /// How long it was waited for.
        timeout: Duration,
        /// The signal that the job waited for; `None`: its own end was waited for.
        signal: Option<String>,
    },
    /// The job was lost, or its attempt has ended: what its handler does no longer counts.
    #[error("dq: the job is no longer this handler's")]
    NotOurs,
    /// The codec cannot encode the data.
    #[error("dq: data that cannot be encoded: {0}")]
    Encode(String),
    /// The payload of a job cannot be decoded. If a handler returns this error, its job is dead at once: another
    /// attempt would find the same payload.
    #[error("payload cannot be decoded: {0}")]
    Payload(String),
    /// A result, or the value of a step or a signal, cannot be decoded.
    #[error("dq: a value that cannot be decoded: {0}")]
    Decode(String),
    /// Wrong use of a method: a step's name that was used twice in one attempt, progress outside 0 to 1, and the
    /// like.
    #[error("dq: {0}")]
    Usage(String),
    /// The attempt ends here, and goes on later: pass the error on with `?`.
    #[error(transparent)]
    Suspended(#[from] Suspended),
    /// The server refused the command.
    #[error("dq: {0}")]
    Refused(Box<Refused>),
    /// The server cannot be reached, or did not answer.
    #[error("dq: {0}")]
    Connection(String),
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It was acknowledged.
    Done,
    /// It failed in its last attempt, or was given up.
    Dead,
    /// Deleted, purged or trimmed.
    Deleted,
    /// Its TTL expired.
    Expired,
    /// It ended before, without being kept, or never existed. Add jobs that are waited for with `keep`, or give the
    /// queue a `DONETTL`.
    Unknown,
}

impl Outcome {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "done" => Outcome::Done,
            "dead" => Outcome::Dead,
            "deleted" => Outcome::Deleted,
            "expired" => Outcome::Expired,
            _ => Outcome::Unknown,
        }
    }

    /// The outcome's name in the command reference.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Dead => "dead",
            Outcome::Deleted => "deleted",
            Outcome::Expired => "expired",
            Outcome::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Unknown => "unknown: it ended without being kept, or was never there; use KEEP (keep of the job) or DONETTL (of the queue)",
            other => other.name(),
        })
    }
}

fn in_brackets(said: &Option<String>) -> String {
    said.as_ref()
        .map(|said| format!(" ({said})"))
        .unwrap_or_default()
}

fn not(signal: &Option<String>) -> String {
    match signal {
        Some(signal) => format!(": no signal {signal:?}"),
        None => " has not ended".to_owned(),
    }
}

fn after_colon(reason: &Option<String>) -> String {
    reason
        .as_ref()
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default()
}

impl Error {
    pub(crate) fn configuration(what: &str, said: &str) -> Self {
        Error::Configuration {
            what: what.to_owned(),
            said: Some(said.to_owned()),
        }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Error::Configuration {
            what: what.into(),
            said: None,
        }
    }
}

/// The error that ends an attempt that goes on later: neither a failure nor a success. Pass it on with `?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the attempt ends here, and goes on later")]
pub struct Suspended;

use std::fmt;

/// Any error, as handlers and middleware return it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a queue's methods and a worker return.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot work as it is configured, and waiting would not help. The text says what to do.
    #[error("dq: {what}{}", in_brackets(.said))]
    Configuration {
        /// What to do.
        what: String,
        /// What the server said, if it did.
        said: Option<String>,
    },
    /// The queue has reached its `MAXLEN` or `MAXBYTES`; nothing was added.
    #[error("dq: queue is full: {0}")]
    QueueFull(String),
    /// The job that was waited for did not succeed.
    #[error("dq: job {id} failed ({outcome}){}", after_colon(.reason))]
    JobFailed {
        /// Of the job.
        id: String,
        /// How it ended.
        outcome: Outcome,
        /// Why it is dead, if somebody said so.
        reason: Option<String>,
    },
    /// What was waited for did not come in time.
    #[error("dq: not within the timeout")]
    Timeout,
    /// The job was lost, or its attempt has ended: nothing that its handler does counts any more.
    #[error("dq: the job is no longer this handler's")]
    NotOurs,
    /// What the codec cannot write.
    #[error("dq: data that cannot be encoded: {0}")]
    Encode(String),
    /// The payload of a job that does not fit. A handler that returns it has its job dead at once: another attempt would
    /// find the same payload.
    #[error("payload cannot be decoded: {0}")]
    Payload(String),
    /// A result, or the value of a step or a signal, that does not fit.
    #[error("dq: a value that cannot be decoded: {0}")]
    Decode(String),
    /// A name of a step that was used twice in one attempt, progress that is no fraction, and the like.
    #[error("dq: {0}")]
    Usage(String),
    /// The attempt ends here, and goes on later: pass it on with `?`.
    #[error(transparent)]
    Suspended(#[from] Suspended),
    /// The server refuses the command.
    #[error("dq: {0}")]
    Refused(String),
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
    /// Out of attempts, or given up.
    Dead,
    /// Deleted, purged or trimmed.
    Deleted,
    /// Its TTL expired.
    Expired,
    /// It ended before without being kept, or was never there: add jobs that are waited for with `keep`, or give the
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

    /// By its name in the command reference.
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

/// Ends an attempt that goes on later: neither a failure nor a success. Pass it on with `?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the attempt ends here, and goes on later")]
pub struct Suspended;

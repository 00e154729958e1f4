//! What a command is refused with. The text is the reply.

use std::fmt;

/// Why a command was refused, or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// A number that is negative, too large, or leads past the last instant.
    OutOfRange,
    /// The queue holds MAXLEN jobs.
    Full,
    /// And as many bytes as MAXBYTES allows.
    FullOfBytes,
    /// An id is empty or too long.
    IdLength,
    /// A group's name is empty or too long.
    GroupLength,
    /// BACKOFF has too many delays.
    LadderLength,
    /// More jobs than a queue can number.
    TooManyJobs,
    /// A rule without an instant up to the last.
    NeverComes,
    /// UNTIL lies before a rule's first instant.
    UntilIsPast,
    /// TZ is in no database.
    UnknownZone,
    /// Written by a newer version of the module.
    Newer,
    /// Bytes that no encoder of ours wrote, or effects that do not fit the queue.
    Malformed(&'static str),
}

impl QueueError {
    /// The reply.
    pub fn text(self) -> &'static str {
        match self {
            QueueError::OutOfRange => "ERR value is not an integer or out of range",
            QueueError::Full => "MAXLEN queue is full",
            QueueError::FullOfBytes => "MAXBYTES queue is full",
            QueueError::IdLength => "ERR id must be 1 to 1024 bytes long",
            QueueError::GroupLength => "ERR GROUP must be 1 to 256 bytes long",
            QueueError::LadderLength => "ERR BACKOFF takes at most 1024 delays",
            QueueError::TooManyJobs => "ERR queue holds as many jobs as it can number",
            QueueError::NeverComes => "ERR CRON expression never comes",
            QueueError::UntilIsPast => "ERR UNTIL leaves no occurrence",
            QueueError::UnknownZone => "ERR TZ is not the name of a known time zone",
            QueueError::Newer => "ERR queue data of a newer version of the module",
            QueueError::Malformed(_) => "ERR malformed or unfitting queue data",
        }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::Malformed(what) => write!(f, "{}: {what}", self.text()),
            _ => f.write_str(self.text()),
        }
    }
}

impl std::error::Error for QueueError {}

//! The errors of commands. The text is the reply.

use std::fmt;

/// Why a command or a file was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// A number that is negative, too large, or leads beyond the last instant.
    OutOfRange,
    /// The queue holds MAXLEN jobs.
    Full,
    /// The group holds as many jobs as its MAXLEN allows.
    GroupFull,
    /// The queue holds as many bytes as MAXBYTES allows.
    FullOfBytes,
    /// An id is empty or too long.
    IdLength,
    /// A group's name is empty or too long.
    GroupLength,
    /// A step's name is empty or too long.
    StepNameLength,
    /// A job has no room for another step.
    TooManySteps,
    /// BACKOFF has too many delays.
    LadderLength,
    /// More jobs than a queue can number.
    TooManyJobs,
    /// A rule that matches no instant.
    NeverComes,
    /// UNTIL lies before a rule's first instant.
    UntilIsPast,
    /// TZ is in no database.
    UnknownZone,
    /// AFTER names what the queue does not hold.
    AfterUnknown,
    /// AFTER names an id twice.
    AfterTwice,
    /// AFTER and a rule do not go together.
    AfterRule,
    /// What AFTER names waits for the job itself.
    AfterItself,
    /// It takes too long to find out whether what AFTER names waits for the job itself.
    AfterTooMuch,
    /// Written by a newer version of the module.
    Newer,
    /// Bytes that the module cannot have written, or effects that do not fit the queue.
    Malformed(&'static str),
}

impl QueueError {
    /// The reply.
    pub fn text(self) -> &'static str {
        match self {
            QueueError::OutOfRange => "ERR value is not an integer or out of range",
            QueueError::Full => "MAXLEN queue is full",
            QueueError::GroupFull => "MAXLEN group is full",
            QueueError::FullOfBytes => "MAXBYTES queue is full",
            QueueError::IdLength => "ERR id must be 1 to 1024 bytes long",
            QueueError::GroupLength => "ERR GROUP must be 1 to 256 bytes long",
            QueueError::StepNameLength => "ERR step name must be 1 to 256 bytes long",
            QueueError::TooManySteps => "ERR a job has at most 1000 steps",
            QueueError::LadderLength => "ERR BACKOFF takes at most 1024 delays",
            QueueError::TooManyJobs => "ERR the queue has reached the largest number of jobs",
            QueueError::NeverComes => "ERR CRON expression matches no time before 2109",
            QueueError::UntilIsPast => "ERR UNTIL is before the first occurrence",
            QueueError::UnknownZone => "ERR TZ is not the name of a known time zone",
            QueueError::AfterUnknown => "ERR AFTER names a job that the queue does not hold",
            QueueError::AfterTwice => "ERR AFTER names an id twice",
            QueueError::AfterRule => "ERR AFTER cannot be combined with a recurring job",
            QueueError::AfterItself => "ERR AFTER would wait for itself",
            QueueError::AfterTooMuch => "ERR AFTER has too much before it",
            QueueError::Newer => "ERR queue data was written by a newer version of the module: install that version here first",
            QueueError::Malformed(_) => "ERR queue data is malformed or does not fit the queue",
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

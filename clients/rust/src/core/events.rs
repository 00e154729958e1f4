//! What goes into the core and what comes out.

use super::delivery::Delivered;
use crate::error::Error;
use redis::{Cmd, Value};
use std::sync::Arc;
use std::time::Duration;

/// Counts the connections that a line has had, so that late events of an old connection are ignored.
pub(crate) type Turn = u64;

/// Names a delivery within its worker.
pub(crate) type Serial = u64;

/// A connection of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    /// Waits in `DQ.BPOP`.
    Waiting,
    /// Sends acknowledgements that no fetch takes along, heartbeats and `DQ.UNBLOCK`.
    Control,
    /// Waits in `DQ.BTOUCH`, to notice lost jobs of one key.
    Listener(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub link: usize,
    pub name: Name,
}

/// Why a handler was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// Another worker may have the job: its lease expired, or it was deleted or replaced. What the handler then
    /// returns does not count.
    Lost,
    /// The worker stops, and the handler's time to finish is over. The job is given back.
    Stopping,
    /// The handler took longer than its `timeout`. The attempt has failed.
    Timeout,
}

/// How an attempt ended, in plain values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    Done(Option<Vec<u8>>),
    Failed {
        reason: String,
        wait: Option<Duration>,
    },
    Snoozed {
        reason: Option<String>,
        wait: Duration,
    },
    GaveUp {
        reason: String,
    },
    /// As if the job had not been delivered.
    GivenBack,
    /// `Core::suspend` has decided how the job goes on.
    Suspended,
}

/// The commands by which a handler ends its attempt, uncounted. They are sent as one command. And the jobs that must be
/// there, for it or for those that it adds to wait for.
#[derive(Debug)]
pub(crate) struct Suspension(pub Vec<Cmd>, pub Vec<Vec<u8>>);

/// What may have been sent on a connection that ended.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sent {
    Nothing,
    /// This end closed it: a reply was an error, or did not come in time.
    Closed,
    Cut,
}

/// A delivery of a worker of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub worker: u64,
    pub serial: Serial,
}

pub(crate) enum Event {
    /// The next replies on a connection, and its turn.
    Replies(Line, Turn, Vec<Value>),
    /// A connection is up; with the server's number of it, unless `CLIENT ID` is forbidden, and the server's address.
    Opened(Line, Turn, Option<u64>, Arc<str>),
    /// A connection ended. With the error's text.
    Broken(Line, Turn, String, Sent),
    /// Handlers ended, each with the jobs of its batch.
    Ended(Vec<Vec<(Serial, End)>>),
    Suspended(Serial, Suspension),
    Progress(Serial, String),
    /// The server no longer has this delivery, as one of the job's own commands or another worker of the process
    /// found out.
    Gone(Serial),
    /// The worker cannot run as it is configured.
    Unfit(Error),
    Stop,
}

#[derive(Debug)]
pub(crate) enum Action {
    Send {
        line: Line,
        turn: Turn,
        /// Commands that are answered at once.
        commands: Vec<Cmd>,
        /// A command that waits at the server.
        last: Option<Cmd>,
        within: Duration,
    },
    Close(Line),
    /// Commands to write without waiting for replies: a server that stands still reads them when it goes on.
    Last(Line, Vec<Cmd>),
    Start {
        handler: usize,
        /// Each with its link.
        jobs: Vec<(Serial, usize, Arc<Delivered>)>,
    },
    Tell(Serial, CancelReason),
    /// An answer by this link said that a job is dead, or may be.
    Died(usize, Arc<Delivered>),
    /// A job was lost: for the hooks and the log.
    Lost(Serial, Arc<Delivered>),
    /// A delivery of another worker of this process was lost.
    LoseOther(Owner),
    Say(Said),
    /// The worker has ended.
    Finish(Result<(), Error>),
}

/// What `DQ.EXPLAIN` says.
#[derive(Debug, PartialEq)]
pub(crate) struct Reason {
    pub code: String,
    pub number: Option<i64>,
    pub until_ms: Option<i64>,
}

/// What to log.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Trouble(String),
    Refused {
        job: Arc<Delivered>,
        error: String,
        is_wait: bool,
    },
    /// With the kind that may have been meant.
    UnknownKind(Arc<Delivered>, Option<String>),
    RunsHere(Arc<Delivered>),
    UsedUp(Arc<Delivered>),
    Unheard(String),
    NoUnblock(String),
    NoReasons(String),
    Uncounted(String),
    /// Jobs of a queue are ready, and come to nobody.
    Idle {
        queue: String,
        why: Vec<Reason>,
    },
    Unexplained(String),
    Stopping {
        jobs: usize,
    },
    Stopped {
        gave_back: usize,
    },
}

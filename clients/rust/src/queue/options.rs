//! Options of the commands for programs that handle jobs without a worker.

use super::duration;
use crate::bounds;
use crate::error::Error;
use crate::guard::{clean, LONGEST_REASON};
use redis::Cmd;
use std::time::{Duration, SystemTime};

/// How [`crate::Queue::pop`] and [`crate::Queue::bpop`] deliver: one job, unless `count` says otherwise.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Pop {
    count: Option<usize>,
    pub(super) id: Option<Vec<u8>>,
    ttr: Option<Duration>,
    lease: Option<Duration>,
    no_ack: bool,
}

impl Pop {
    /// Delivers one job.
    pub fn new() -> Self {
        Pop::default()
    }

    /// Up to this many jobs (of each shard).
    pub fn count(mut self, count: usize) -> Self {
        self.count = Some(count);
        self
    }

    /// This job, if it is ready; not for `bpop`.
    pub fn id(mut self, id: impl AsRef<[u8]>) -> Self {
        self.id = Some(id.as_ref().to_vec());
        self
    }

    /// The length of the lease.
    pub fn ttr(mut self, ttr: Duration) -> Self {
        self.ttr = Some(ttr);
        self
    }

    /// The length of the lease of jobs without a TTR of their own or of their queue.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Removes the job at delivery: at-most-once delivery.
    pub fn no_ack(mut self) -> Self {
        self.no_ack = true;
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        bounds::lengths([("ttr", self.ttr, 1), ("lease", self.lease, 1)])
    }

    pub(super) fn words(&self, to: &mut Cmd) {
        match &self.id {
            Some(id) => to.arg("ID").arg(id),
            None => to.arg("COUNT").arg(self.count.unwrap_or(1).max(1)),
        };
        duration(to, "TTR", self.ttr);
        duration(to, "LEASE", self.lease);
        if self.no_ack {
            to.arg("NOACK");
        }
        for word in ["WITHDUE", "WITHRESULTS", "WITHSTEPS", "WITHTERMS"] {
            to.arg(word);
        }
    }
}

/// How a job is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NackMode {
    /// The attempt failed.
    #[default]
    Fail,
    /// This delivery does not count.
    Silent,
    /// The job is dead now.
    Fatal,
}

/// How [`crate::Queue::nack`] gives a job back.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Nack {
    mode: NackMode,
    delay: Option<Duration>,
    priority: Option<i32>,
    reason: Option<String>,
}

impl Nack {
    /// The attempt failed, and the job's backoff decides.
    pub fn new() -> Self {
        Nack::default()
    }

    /// Whether the attempt failed.
    pub fn mode(mut self, mode: NackMode) -> Self {
        self.mode = mode;
        self
    }

    /// The wait until the next delivery.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// The job's new priority.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Why the attempt failed: the job's reason, of which the first 1024 bytes are kept.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(clean(reason.into(), LONGEST_REASON));
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        bounds::lengths([("delay", self.delay, 0)])
    }

    pub(super) fn words(&self, to: &mut Cmd) {
        to.arg(match self.mode {
            NackMode::Fail => "FAIL",
            NackMode::Silent => "SILENT",
            NackMode::Fatal => "FATAL",
        });
        duration(to, "DELAY", self.delay);
        if let Some(priority) = self.priority {
            to.arg("PRIORITY").arg(priority);
        }
        if let Some(reason) = &self.reason {
            to.arg("REASON").arg(reason);
        }
    }
}

/// What [`crate::Queue::reschedule`] changes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Reschedule {
    pub(super) delay: Option<Duration>,
    pub(super) at: Option<SystemTime>,
    pub(super) priority: Option<i32>,
}

impl Reschedule {
    /// A new due time, this long from now.
    pub fn delay(delay: Duration) -> Self {
        Reschedule {
            delay: Some(delay),
            ..Reschedule::default()
        }
    }

    /// A new due time.
    pub fn at(at: SystemTime) -> Self {
        Reschedule {
            at: Some(at),
            ..Reschedule::default()
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        bounds::lengths([("delay", self.delay, 0)])?;
        bounds::instants([("at", self.at)])
    }

    /// Only a new priority.
    pub fn priority(priority: i32) -> Self {
        Reschedule::default().and_priority(priority)
    }

    /// A new priority as well.
    pub fn and_priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }
}

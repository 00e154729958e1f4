//! What queries other than `DQ.GET` return.

use crate::core::{before, terms};
use crate::result::JobResult;
use crate::values;
use redis::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// An attempt of a job that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// Deliveries by then, with this one.
    pub attempts: u32,
    /// When its delivery began.
    pub started: SystemTime,
    /// When it was given back, or its lease ended.
    pub ended: SystemTime,
    /// `nacked`, `fatal` or `timeout`.
    pub how: String,
    /// Why.
    pub reason: Option<String>,
}

impl FailedAttempt {
    pub(super) fn of(row: Value) -> Option<Self> {
        let [attempts, started, ended, how, reason] = values::list(row).try_into().ok()?;
        Some(FailedAttempt {
            attempts: values::int(&attempts) as u32,
            started: values::instant(&started)?,
            ended: values::instant(&ended)?,
            how: values::text(how)?,
            reason: values::text(reason),
        })
    }
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// It waits for jobs that have not ended.
    Blocked,
    /// Its due time is in the future.
    Delayed,
    /// Its due time has come.
    Ready,
    /// It was delivered, and its lease has not expired.
    Reserved,
    /// Its attempts are used up, or it was given up.
    Dead,
    /// It was acknowledged, and is kept.
    Done,
    /// All, for [`Queue::purge`](crate::Queue::purge).
    All,
}

impl State {
    /// The state's name in commands.
    pub fn word(self) -> &'static str {
        match self {
            State::Blocked => "blocked",
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Reserved => "reserved",
            State::Dead => "dead",
            State::Done => "done",
            State::All => "all",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let all = [
            State::Blocked,
            State::Delayed,
            State::Ready,
            State::Reserved,
            State::Dead,
            State::Done,
        ];
        all.into_iter().find(|state| state.word() == name)
    }
}

/// A job that was popped by hand, without a worker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reserved {
    /// The key that the job came from.
    pub queue: String,
    /// The job's id; bytes that are not UTF-8 are replaced.
    pub id: String,
    /// The job's id as bytes.
    pub id_bytes: Vec<u8>,
    /// The payload that was added.
    pub payload: Vec<u8>,
    /// What `ack`, `nack` and `touch` need; `None` with `NOACK`.
    pub token: Option<String>,
    /// Deliveries, this one included.
    pub attempt: u32,
    /// When the lease expires; `None` with `NOACK`.
    pub deadline: Option<SystemTime>,
    /// When the job was due.
    pub due: Option<SystemTime>,
    /// The length of its leases.
    pub ttr: Duration,
    /// The limit of deliveries; 0: none.
    pub max_attempts: u32,
    /// The wait of the job's backoff after a failure of this attempt; `None`: no backoff.
    pub retry_in: Option<Duration>,
    /// How the jobs ended that this job came after.
    pub results: Vec<JobResult>,
    /// What earlier attempts kept, by name.
    pub steps: BTreeMap<String, Vec<u8>>,
}

impl Reserved {
    pub(super) fn of(queue: &[u8], row: Value) -> Option<Self> {
        let [id, payload, token, attempt, deadline, due, results, steps, rest] =
            <[Value; 9]>::try_from(values::list(row)).ok()?;
        let terms = terms(&rest)?;
        let id_bytes = values::bytes(id)?;
        let steps = values::pairs(steps)
            .into_iter()
            .map(|(name, value)| (values::lossy(name), value));
        Some(Reserved {
            queue: values::lossy(queue.to_vec()),
            id: values::lossy(id_bytes.clone()),
            id_bytes,
            payload: values::bytes(payload)?,
            token: values::text(token),
            attempt: values::int(&attempt) as u32,
            deadline: values::instant(&deadline),
            due: values::instant(&due),
            ttr: terms.ttr,
            max_attempts: terms.max_attempts,
            retry_in: terms.wait,
            results: values::list(results)
                .into_iter()
                .filter_map(before)
                .map(|row| JobResult::of(&row))
                .collect(),
            steps: steps.collect(),
        })
    }
}

/// A job as `DQ.PEEK` shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Peeked {
    /// The job's id.
    pub id: String,
    /// The payload that was added.
    pub payload: Vec<u8>,
    /// Depends on the state that was asked for: when the job is due, when its lease expires, when it died or was
    /// done.
    pub at: Option<SystemTime>,
    /// Deliveries so far.
    pub attempts: u32,
    /// Smaller is delivered first.
    pub priority: i32,
    /// The payload's whole length, where `payload` is cut too.
    pub payload_bytes: u64,
}

impl Peeked {
    pub(super) fn of(row: Value) -> Option<Self> {
        let mut row = values::list(row);
        let length = (row.len() > 5).then(|| row.pop()).flatten();
        let [id, payload, at, attempts, priority] = <[Value; 5]>::try_from(row).ok()?;
        let payload = values::bytes(payload)?;
        Some(Peeked {
            id: values::text(id)?,
            payload_bytes: length.map_or(payload.len() as u64, |it| values::int(&it) as u64),
            payload,
            at: values::instant(&at),
            attempts: values::int(&attempts) as u32,
            priority: values::int(&priority) as i32,
        })
    }
}

/// A group that holds jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Jobs that are delayed or ready.
    pub waiting: u64,
    /// Jobs that are reserved.
    pub reserved: u64,
}

impl Group {
    pub(super) fn of(row: Value) -> Option<Self> {
        let [name, waiting, reserved] = <[Value; 3]>::try_from(values::list(row)).ok()?;
        Some(Group {
            name: values::text(name)?,
            waiting: values::int(&waiting) as u64,
            reserved: values::int(&reserved) as u64,
        })
    }
}

//! Written from docs/libraries.md by `make generated`; DO NOT EDIT.

use super::reading::Fields;
use super::records::{FailedAttempt, State};
use super::rule::Rule;
use crate::error::Outcome;
use crate::result::JobResult;
use redis::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// A job as `DQ.GET` shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[rustfmt::skip]
pub struct JobInfo {
    /// The job's.
    pub id: String,
    /// What was added.
    pub payload: Vec<u8>,
    /// Where the job is.
    pub state: State,
    /// Smaller is delivered first.
    pub priority: i32,
    /// When it is due; nothing of a blocked job without a time of its own.
    pub due: Option<SystemTime>,
    /// When its lease ends; nothing unless reserved.
    pub deadline: Option<SystemTime>,
    /// How long its leases are.
    pub ttr: Duration,
    /// Deliveries so far.
    pub attempts: u32,
    /// Deliveries allowed; 0: no limit.
    pub max_attempts: u32,
    /// The waits after failures.
    pub backoff: Vec<Duration>,
    /// What kind of job it is, for those who look; it changes nothing of how the job is served.
    pub label: Option<String>,
    /// When its TTL ends it.
    pub expires: Option<SystemTime>,
    /// The current one.
    pub token: Option<String>,
    /// Why it failed last.
    pub reason: Option<String>,
    /// When that was.
    pub failed: Option<SystemTime>,
    /// Its last attempts that failed, as many as the queue's `HISTORY` keeps.
    pub history: Vec<FailedAttempt>,
    /// The group that it is in.
    pub group: Option<String>,
    /// The payload of the job that takes its place when its run is over.
    pub next: Option<Vec<u8>>,
    /// How a recurring job comes again.
    pub rule: Option<Rule>,
    /// What its handler reported last.
    pub progress: Option<String>,
    /// How long it stays once it is done; nothing: as its queue says.
    pub keep: Option<Duration>,
    /// What a delivery counts for `RATE` and `GROUPRATE`.
    pub cost: u32,
    /// The signal that it waits for.
    pub awaits: Option<String>,
    /// What its handler has kept, by name.
    pub steps: BTreeMap<String, Vec<u8>>,
    /// The latest delivery, of a reserved or done job.
    pub started: Option<SystemTime>,
    /// Who works on it: the name or the address of the connection that it was delivered to, if the server knows it.
    pub client: Option<String>,
    /// When a done job was acknowledged.
    pub finished: Option<SystemTime>,
    /// What the handler of a done job returned, as the codec encoded it.
    pub result: Option<Vec<u8>>,
    /// The jobs that a blocked job still waits for.
    pub after: Vec<String>,
    /// The group that it waits for.
    pub after_group: Option<String>,
    /// What it does if a job that it is after dies: `wait`, `run` or `die`.
    pub on_dead: Option<String>,
    /// How the jobs ended that it is after, or was.
    pub results: Vec<JobResult>,
    /// The payload's whole length, where `payload` is cut too.
    pub payload_bytes: u64,
    /// All fields as the server gave them, also those that this library does not know.
    pub fields: BTreeMap<String, Value>,
}

#[rustfmt::skip]
impl JobInfo {
    pub(super) fn of(reply: Value) -> Self {
        let it = Fields::of(reply);
        JobInfo {
            id: it.text("id").unwrap_or_default(),
            payload: it.bytes("payload").unwrap_or_default(),
            state: it.state("state"),
            priority: it.int("priority") as i32,
            due: it.instant("due"),
            deadline: it.instant("deadline"),
            ttr: it.duration("ttr").unwrap_or_default(),
            attempts: it.int("attempts") as u32,
            max_attempts: it.int("max-attempts") as u32,
            backoff: it.durations("backoff"),
            label: it.text("label"),
            expires: it.instant("expires"),
            token: it.text("token"),
            reason: it.text("reason"),
            failed: it.instant("failed"),
            history: it.history("history"),
            group: it.text("group"),
            next: it.bytes("next"),
            rule: Rule::of(&it),
            progress: it.text("progress"),
            keep: it.duration("keep"),
            cost: it.maybe_int("cost").unwrap_or(1) as u32,
            awaits: it.text("awaits"),
            steps: it.steps("steps"),
            started: it.instant("started"),
            client: it.text("client"),
            finished: it.instant("finished"),
            result: it.bytes("result"),
            after: it.texts("after"),
            after_group: it.text("after-group"),
            on_dead: it.text("on-dead"),
            results: it.results("results"),
            payload_bytes: it.int("payload-bytes") as u64,
            fields: it.0,
        }
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.state {
            State::Done => Some(Outcome::Done),
            State::Dead => Some(Outcome::Dead),
            _ => None,
        }
    }
}

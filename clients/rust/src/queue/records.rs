//! What queries return.

use crate::core::{before, terms};
use crate::error::Outcome;
use crate::result::Before;
use crate::values;
use redis::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// After jobs that have not ended.
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
    /// As commands have it.
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
    /// The key that it came from.
    pub queue: String,
    /// Of the job; [`Reserved::id_bytes`] where it is no UTF-8.
    pub id: String,
    /// The same as bytes.
    pub id_bytes: Vec<u8>,
    /// What was added.
    pub payload: Vec<u8>,
    /// What `ack`, `nack` and `touch` need; `None` with NOACK.
    pub token: Option<String>,
    /// Deliveries, this one included.
    pub attempt: u32,
    /// The end of the lease.
    pub deadline: Option<SystemTime>,
    /// When it was due.
    pub due: Option<SystemTime>,
    /// The length of its leases.
    pub ttr: Duration,
    /// 0: no limit.
    pub max_attempts: u32,
    /// What its ladder waits after a failure of this attempt, if it has one.
    pub retry_in: Option<Duration>,
    /// How the jobs ended that it was after.
    pub results: Vec<Before>,
    /// What it keeps of its steps.
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
                .map(|row| Before::of(&row))
                .collect(),
            steps: steps.collect(),
        })
    }
}

/// A job as `DQ.GET` shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobInfo {
    /// Of the job.
    pub id: String,
    /// What was added.
    pub payload: Vec<u8>,
    /// Where it is.
    pub state: State,
    /// Smaller is delivered first.
    pub priority: i32,
    /// When it is due.
    pub due: Option<SystemTime>,
    /// The end of its lease.
    pub deadline: Option<SystemTime>,
    /// The length of its leases.
    pub ttr: Duration,
    /// Deliveries so far.
    pub attempts: u32,
    /// 0: no limit.
    pub max_attempts: u32,
    /// The waits after failures.
    pub backoff: Vec<Duration>,
    /// When its TTL ends it.
    pub expires: Option<SystemTime>,
    /// The current one.
    pub token: Option<String>,
    /// Of the last failure.
    pub reason: Option<String>,
    /// When that was.
    pub failed: Option<SystemTime>,
    /// Whose job it is.
    pub group: Option<String>,
    /// The payload of the job that takes its place when its run is over.
    pub next: Option<Vec<u8>>,
    /// Of a recurring job.
    pub rule: Option<RecurrenceRule>,
    /// What its handler said last.
    pub progress: Option<String>,
    /// How long it stays once it is done.
    pub keep: Option<Duration>,
    /// What a delivery counts for `RATE` and `GROUPRATE`.
    pub cost: u32,
    /// The signal that it waits for.
    pub awaits: Option<String>,
    /// What its handler keeps.
    pub steps: BTreeMap<String, Vec<u8>>,
    /// The latest delivery, of a reserved or done job.
    pub started: Option<SystemTime>,
    /// When a done job was acknowledged.
    pub finished: Option<SystemTime>,
    /// Of a done job.
    pub result: Option<Vec<u8>>,
    /// What a blocked job still waits for.
    pub after: Vec<String>,
    /// The group that it waits for.
    pub after_group: Option<String>,
    /// What a blocked job does if one that it is after dies: `wait`, `run` or `die`.
    pub on_dead: Option<String>,
    /// How the jobs ended that it was after.
    pub results: Vec<Before>,
    /// All as the server gave them.
    pub fields: BTreeMap<String, Value>,
}

impl JobInfo {
    pub(super) fn of(reply: Value) -> Self {
        let fields: BTreeMap<String, Value> = values::map(reply).into_iter().collect();
        let nil = Value::Nil;
        let field = |name: &str| fields.get(name).unwrap_or(&nil);
        let text = |name: &str| values::text(field(name).clone());
        let bytes = |name: &str| values::bytes(field(name).clone());
        let list = |name: &str| values::list(field(name).clone());
        let instant = |name: &str| values::instant(field(name));
        let number = |name: &str| values::int(field(name));
        let length = |name: &str| {
            matches!(field(name), Value::Int(_)).then(|| values::duration(field(name)))
        };
        let steps = values::pairs(field("steps").clone());
        JobInfo {
            id: text("id").unwrap_or_default(),
            payload: bytes("payload").unwrap_or_default(),
            state: text("state")
                .and_then(|name| State::named(&name))
                .unwrap_or(State::All),
            priority: number("priority") as i32,
            due: instant("due"),
            deadline: instant("deadline"),
            ttr: values::duration(field("ttr")),
            attempts: number("attempts") as u32,
            max_attempts: number("max-attempts") as u32,
            backoff: list("backoff").iter().map(values::duration).collect(),
            expires: instant("expires"),
            token: text("token"),
            reason: text("reason"),
            failed: instant("failed"),
            group: text("group"),
            next: bytes("next"),
            rule: RecurrenceRule::of(&fields),
            progress: text("progress"),
            keep: length("keep"),
            cost: number("cost") as u32,
            awaits: text("awaits"),
            steps: steps
                .into_iter()
                .map(|(name, value)| (values::lossy(name), value))
                .collect(),
            started: instant("started"),
            finished: instant("finished"),
            result: bytes("result"),
            after: list("after").into_iter().filter_map(values::text).collect(),
            after_group: text("after-group"),
            on_dead: text("on-dead"),
            results: list("results")
                .into_iter()
                .filter_map(before)
                .map(|row| Before::of(&row))
                .collect(),
            fields,
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

/// How a recurring job comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecurrenceRule {
    /// Each so often.
    pub every: Option<Duration>,
    /// Or by this expression,
    pub cron: Option<String>,
    /// in this zone.
    pub zone: Option<String>,
    /// The last instant.
    pub until: Option<SystemTime>,
    /// How often in all.
    pub times: Option<u64>,
    /// An occurrence that late is skipped.
    pub grace: Option<Duration>,
    /// Each comes up to so much later.
    pub jitter: Option<Duration>,
    /// The instant of the current one.
    pub occurrence: Option<SystemTime>,
    /// How many have ended.
    pub runs: u64,
}

impl RecurrenceRule {
    fn of(fields: &BTreeMap<String, Value>) -> Option<Self> {
        let field = |name: &str| fields.get(name).filter(|value| **value != Value::Nil);
        let length = |name: &str| field(name).map(values::duration);
        let text = |name: &str| field(name).cloned().and_then(values::text);
        field("every").or(field("cron"))?;
        Some(RecurrenceRule {
            every: length("every"),
            cron: text("cron"),
            zone: text("tz"),
            until: field("until").and_then(values::instant),
            times: field("times").map(|times| values::int(times) as u64),
            grace: length("grace"),
            jitter: length("jitter"),
            occurrence: field("occurrence").and_then(values::instant),
            runs: field("runs").map_or(0, values::int) as u64,
        })
    }
}

/// A job as `DQ.PEEK` shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Peeked {
    /// Of the job.
    pub id: String,
    /// What was added.
    pub payload: Vec<u8>,
    /// When it is due, its lease ends, or it died, by the state that was asked for.
    pub at: Option<SystemTime>,
    /// Deliveries so far.
    pub attempts: u32,
    /// Smaller is delivered first.
    pub priority: i32,
}

impl Peeked {
    pub(super) fn of(row: Value) -> Option<Self> {
        let [id, payload, at, attempts, priority] =
            <[Value; 5]>::try_from(values::list(row)).ok()?;
        Some(Peeked {
            id: values::text(id)?,
            payload: values::bytes(payload)?,
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

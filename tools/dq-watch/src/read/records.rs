//! Jobs and settings as replies say them.

use super::said::Said;
use crate::text::why::Why;
use crate::text::{escape, units};

/// Bytes of a payload that are shown in a list.
pub const IN_LIST: usize = 300;

/// Bytes of a reason that the server keeps.
pub const REASON_MAX: usize = 1024;

/// What DQ.CFGGET says and DQ.STATS does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub ttr_ms: u64,
    pub attempts: u64,
    pub backoff_ms: Vec<u64>,
    pub maxlen: u64,
    pub maxbytes: u64,
    pub deadlen: u64,
    pub dedupe_ms: u64,
    pub maxreserved: u64,
    pub rate: (u64, u64),
    pub groupmax: u64,
    pub grouprate: (u64, u64),
    pub groupfifo: bool,
    pub donelen: u64,
    pub donettl_ms: u64,
    pub donebytes: u64,
    /// Failed attempts that a job keeps.
    pub history: u64,
    /// As in DQ.STATS.
    pub paused: i64,
    /// Why nothing is delivered, if the server says it.
    pub why: Option<Why>,
}

impl Settings {
    /// Whether done jobs are kept that do not say it themselves (KEEP).
    pub fn keeps_done(&self) -> bool {
        self.donelen > 0 || self.donettl_ms > 0 || self.donebytes > 0
    }
}

/// A group as DQ.GROUPS lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: Vec<u8>,
    /// Jobs that are blocked, delayed or ready.
    pub waiting: u64,
    pub reserved: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeekedJob {
    pub id: Vec<u8>,
    pub payload: Cut,
    /// None: blocked, without an instant of its own.
    pub at_ms: Option<i64>,
    pub attempts: u64,
    pub priority: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    pub id: Vec<u8>,
    pub payload: Cut,
    pub state: String,
    /// Why it is not delivered, if the server says it.
    pub why: Option<Why>,
    pub priority: i64,
    /// None: blocked, without an instant of its own.
    pub due_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub ttr_ms: u64,
    pub attempts: u64,
    pub max_attempts: u64,
    pub backoff_ms: Vec<u64>,
    pub expires_ms: Option<i64>,
    pub token: Option<String>,
    /// When the last failure was, and its reason.
    pub failed_ms: Option<i64>,
    pub reason: Option<Vec<u8>>,
    /// The last attempts that failed, the oldest first.
    pub history: Vec<Attempt>,
    /// Who works on it: the name or the address of a connection.
    pub client: Option<Vec<u8>>,
    pub group: Option<Vec<u8>>,
    /// The payload of the successor: it runs when this run has ended.
    pub successor: Option<Cut>,
    pub rule: Option<Rule>,
    /// When the last delivery began, while the job is reserved or done.
    pub started_ms: Option<i64>,
    /// When the job was done, and its result.
    pub finished_ms: Option<i64>,
    pub result: Option<Cut>,
    pub progress: Option<Vec<u8>>,
    /// The signal it waits for.
    pub awaits: Option<Vec<u8>>,
    /// What it waits for, while it is blocked.
    pub after: Option<After>,
    /// How the jobs ended that it was told to wait for.
    pub results: Vec<Ended>,
    /// Its steps, in the order of first writing.
    pub steps: Vec<Step>,
    /// What else was said of it when it was added.
    pub said: Vec<Said>,
}

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub attempts: u64,
    pub started_ms: i64,
    pub ended_ms: i64,
    /// `nacked`, `fatal` or `timeout`.
    pub how: String,
    pub reason: Option<Vec<u8>>,
}

impl Attempt {
    /// How it failed, and why, as `shown` makes the reason safe to show.
    pub fn text(&self, shown: fn(&[u8]) -> String) -> String {
        let how = match self.how.as_str() {
            "nacked" => "failed",
            "fatal" => "failed for good",
            "timeout" => "timed out: its lease ended",
            other => other,
        };
        match &self.reason {
            Some(reason) => format!("{how}: {}", shown(reason)),
            None => escape::line(how.as_bytes()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub name: Vec<u8>,
    pub value: Cut,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// The jobs that have not ended yet.
    Jobs { ids: Vec<Vec<u8>>, on_dead: String },
    /// Until the group is empty.
    Group(Vec<u8>),
}

impl After {
    /// As text; of many ids only the first few.
    pub fn text(&self) -> String {
        match self {
            After::Jobs { ids, .. } => first_few(ids.iter().map(|id| escape::name(id))),
            After::Group(name) => format!("all jobs of the group {}", escape::name(name)),
        }
    }
}

const FEW: usize = 8;

pub fn first_few(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(FEW);
    let mut first: Vec<String> = all.take(FEW).collect();
    if more > 0 {
        first.push(format!("and {more} more"));
    }
    first.join(", ")
}

/// A job that another one was told to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub id: Vec<u8>,
    /// None: the job had not ended when it was last read.
    pub outcome: Option<String>,
    /// The result of a done job, the reason of a dead one.
    pub value: Option<Cut>,
}

/// The rule of a recurring job, and how often it has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub when: When,
    pub until_ms: Option<i64>,
    pub times: Option<u64>,
    pub grace_ms: Option<u64>,
    pub jitter_ms: Option<u64>,
    pub occurrence_ms: i64,
    pub runs: u64,
    /// The next instants at which it will be due; empty if the user may not ask.
    pub next_ms: Vec<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    Every(u64),
    Cron { expression: String, zone: String },
}

impl When {
    /// The rule as options of DQ.ADD, but with a unit.
    pub fn text(&self) -> String {
        match self {
            When::Every(ms) => format!("every {}", units::millis(*ms)),
            When::Cron { expression, zone } => format!("cron {expression} {zone}"),
        }
    }
}

/// The beginning of a payload, and how long it is. Of a result or a step only so much is known as was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    pub bytes: Vec<u8>,
    pub length: usize,
    pub or_more: bool,
}

impl Cut {
    pub fn of(bytes: &[u8], longest: usize) -> Cut {
        Cut {
            bytes: bytes[..bytes.len().min(longest)].to_vec(),
            length: bytes.len(),
            or_more: false,
        }
    }

    /// Of a value that was asked for with `PREFIX longest + 1`.
    pub fn of_prefix(bytes: &[u8], longest: usize) -> Cut {
        Cut {
            or_more: bytes.len() > longest,
            ..Cut::of(bytes, longest)
        }
    }

    pub fn is_cut(&self) -> bool {
        self.bytes.len() < self.length
    }
}

//! What a client or the timer may ask, and what may come back.

use dq::queue::add::Condition;
use dq::queue::after::{OnDead, Outcome};
use dq::queue::claim::NackKind;
use dq::queue::job::State;
use dq::queue::settings::SettingsChange;
use dq::queue::when::When;

pub type Id = Vec<u8>;

/// As a client would send it: tokens are text.
#[derive(Clone, Debug)]
pub enum Op {
    Add(AddOp),
    /// With what they share, which has neither id nor payload.
    AddMany(AddOp, Vec<NewOp>),
    Pop(PopOp),
    Ack {
        id: Id,
        token: Option<Vec<u8>>,
        result: Option<Vec<u8>>,
    },
    Nack(NackOp),
    Touch(TouchOp),
    Step(StepOp),
    Signal {
        id: Id,
        name: Vec<u8>,
        value: Vec<u8>,
    },
    /// Where the instant is out of range, nothing is asked of any job.
    Reschedule {
        id: Id,
        when: Option<When>,
        priority: Option<i32>,
    },
    Kick(Id),
    KickOldest(u64),
    Del {
        id: Id,
        unreserved: bool,
    },
    Purge(Option<State>),
    Pause(Option<u64>),
    Resume,
    Configure(SettingsChange),
    /// The timer with that budget.
    Expire(usize),
}

#[derive(Clone, Debug)]
pub struct AddOp {
    pub id: Option<Id>,
    pub payload: Vec<u8>,
    pub condition: Condition,
    pub when: Option<When>,
    pub priority: i32,
    pub ttr: Option<u64>,
    /// The server's own default at that moment.
    pub server_ttr: u64,
    pub attempts: Option<u32>,
    pub backoff: Option<Vec<u64>>,
    pub ttl: Option<u64>,
    pub rule: Option<RuleOp>,
    pub group: Option<Vec<u8>>,
    pub keep: Option<u64>,
    pub cost: u32,
    pub after: Option<AfterOp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterOp {
    Jobs(Vec<Id>, OnDead),
    Group(Vec<u8>),
}

impl AddOp {
    /// Of that id and nothing else.
    pub fn like(id: &[u8]) -> Self {
        AddOp {
            id: Some(id.to_vec()),
            payload: Vec::new(),
            condition: Condition::New,
            when: None,
            priority: 0,
            ttr: None,
            server_ttr: 60_000,
            attempts: None,
            backoff: None,
            ttl: None,
            rule: None,
            group: None,
            keep: None,
            cost: 1,
            after: None,
        }
    }
}

/// What one of several jobs has of its own.
#[derive(Clone, Debug)]
pub struct NewOp {
    pub id: Option<Id>,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOp {
    /// Of a cron expression that comes at each full multiple of `ms`; else EVERY.
    pub text: Option<&'static str>,
    pub ms: u64,
    /// 0 is none.
    pub until: u64,
    pub times: u64,
    pub grace: u64,
    pub jitter: u64,
}

#[derive(Clone, Debug)]
pub struct PopOp {
    pub count: u64,
    pub id: Option<Id>,
    pub ttr: Option<u64>,
    /// In place of the server's default, which is `server_ttr` at that moment.
    pub lease: Option<u64>,
    pub server_ttr: u64,
    pub noack: bool,
    pub with_terms: bool,
    pub with_steps: bool,
}

impl PopOp {
    /// The first job, without options.
    pub const FIRST: PopOp = PopOp {
        count: 1,
        id: None,
        ttr: None,
        lease: None,
        server_ttr: 60_000,
        noack: false,
        with_terms: false,
        with_steps: false,
    };
}

#[derive(Clone, Debug)]
pub struct NackOp {
    pub id: Id,
    pub token: Option<Vec<u8>>,
    pub delay: Option<u64>,
    pub priority: Option<i32>,
    pub kind: NackKind,
    pub reason: Option<Vec<u8>>,
    /// With SILENT.
    pub awaits: Option<Vec<u8>>,
    /// Then nothing else but a reason is said.
    pub after: Option<AfterOp>,
}

#[derive(Clone, Debug)]
pub struct TouchOp {
    pub id: Id,
    pub token: Option<Vec<u8>>,
    pub ttr: Option<u64>,
    pub progress: Option<Vec<u8>>,
    pub cost: Option<u32>,
}

/// Names and values.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Clone, Debug)]
pub struct StepOp {
    pub id: Id,
    pub token: Vec<u8>,
    pub pairs: Pairs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    pub id: Id,
    pub payload: Vec<u8>,
    pub attempts: u32,
    /// Token and deadline.
    pub lease: Option<(u64, u64)>,
    /// TTR, attempts allowed, and the wait after a failure.
    pub terms: Option<(u64, u32, Option<u64>)>,
    /// What WITHSTEPS tells.
    pub steps: Option<Pairs>,
    /// How those ended that it was after.
    pub results: Vec<(Id, Option<Outcome>, Option<Vec<u8>>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Ok,
    Nil,
    Added(Id),
    AddedMany(Vec<Option<Id>>),
    Jobs(Vec<Delivered>),
    Count(u64),
    State(State),
    Deadline(u64),
    Error(&'static str),
}

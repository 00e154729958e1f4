//! Operations of clients and the timer, and their replies.

use dq::queue::add::Condition;
use dq::queue::after::{OnDead, Outcome};
use dq::queue::attr::{Attr, Attrs, Home, Kind, Unsaid};
use dq::queue::claim::{NackKind, Touch};
use dq::queue::clock::When;
use dq::queue::job::State;
use dq::queue::settings::{GroupSettings, SettingsChange};

pub type Id = Vec<u8>;

/// An operation as a client would send it: tokens are text.
#[derive(Clone, Debug)]
pub enum Op {
    Add(AddOp),
    /// Jobs with what they share, which has neither id nor payload.
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
    /// If the instant is out of range, no job is looked at.
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
    /// What a group has of its own; None: CLEAR.
    Group(Vec<u8>, Option<GroupSettings>),
    PauseGroup(Vec<u8>, Option<u64>),
    ResumeGroup(Vec<u8>),
    /// The timer, with a budget of so many jobs.
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
    /// The server's default TTR at that moment.
    pub server_ttr: u64,
    pub attempts: Option<u32>,
    pub backoff: Option<Vec<u64>>,
    pub ttl: Option<u64>,
    pub rule: Option<RuleOp>,
    pub group: Option<Vec<u8>>,
    pub said: Said,
    pub after: Option<AfterOp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterOp {
    Jobs(Vec<Id>, OnDead),
    Group(Vec<u8>),
}

impl AddOp {
    /// An ADD with this id and no options.
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
            said: Said::default(),
            after: None,
        }
    }
}

/// What else is said of a job: values by the module's table, which knows their names, words and bounds. So a row more is
/// said, sent, handed on and compared without another line; what becomes of a value the model says itself, where it is not
/// there as long as the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said(Vec<(Attr, Value)>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Text(Vec<u8>),
}

impl Said {
    /// Of a delivery that counts so much.
    pub fn costing(units: u32) -> Self {
        Said::default().with(Attr::Cost, Value::Number(units.into()))
    }

    /// KEEP, beside others.
    pub fn keeping(self, ms: Option<u64>) -> Self {
        match ms {
            Some(ms) => self.with(Attr::Keep, Value::Number(ms)),
            None => Said(self.0.into_iter().filter(|it| it.0 != Attr::Keep).collect()),
        }
    }

    /// All of the table that can be said so. BACKOFF stands with the terms.
    pub fn all() -> impl Iterator<Item = Attr> {
        let is_one = |attr: &Attr| {
            let row = attr.row();
            matches!(row.home, Home::Tag(_)) && row.kind != Kind::Ladder
        };
        Attr::ALL.iter().copied().filter(is_one)
    }

    /// What is so of a job that does not say it is not kept.
    pub fn with(mut self, attr: Attr, value: Value) -> Self {
        self.0.retain(|it| it.0 != attr);
        if attr.row().unsaid != unsaid_of(&value) {
            self.0.push((attr, value));
        }
        self.0.sort_by_key(|it| it.0 as usize);
        self
    }

    fn get(&self, attr: Attr) -> Option<&Value> {
        self.0.iter().find(|it| it.0 == attr).map(|it| &it.1)
    }

    fn number(&self, attr: Attr) -> Option<u64> {
        match self.get(attr) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub fn keep(&self) -> Option<u64> {
        self.number(Attr::Keep)
    }

    pub fn cost(&self) -> u32 {
        self.number(Attr::Cost).map_or(1, |units| units as u32)
    }

    /// As the queue has it.
    pub fn attrs(&self) -> Attrs<'static> {
        let said = self.0.iter();
        said.fold(Attrs::NONE, |all, (attr, value)| match value {
            Value::Number(number) => all.with_number(*attr, *number),
            Value::Text(text) => all.with_text(*attr, text),
        })
    }

    /// Each value of the table, none where nothing is said or known.
    pub fn values(&self) -> impl Iterator<Item = (Attr, Option<Value>)> + '_ {
        Said::all().map(|attr| {
            let unsaid = match attr.row().unsaid {
                Unsaid::Is(number) => Some(Value::Number(number)),
                Unsaid::OfQueue | Unsaid::Nothing(_) => None,
            };
            (attr, self.get(attr).cloned().or(unsaid))
        })
    }

    /// Whether a job of the queue says the same.
    pub fn is_said_by(&self, attrs: &Attrs<'_>) -> bool {
        self.values().all(|(attr, value)| {
            value
                == match attr.row().kind {
                    Kind::Text(_) => attrs.text(attr).map(|text| Value::Text(text.to_vec())),
                    _ => attrs.number_or_unsaid(attr).map(Value::Number),
                }
        })
    }
}

fn unsaid_of(value: &Value) -> Unsaid {
    match value {
        Value::Number(number) => Unsaid::Is(*number),
        Value::Text(_) => Unsaid::OfQueue,
    }
}

/// What one of several jobs does not share with the others.
#[derive(Clone, Debug)]
pub struct NewOp {
    pub id: Option<Id>,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOp {
    /// A cron expression that matches each full multiple of `ms`; None: EVERY.
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
    /// The lease's length; None is the server's default, `server_ttr`.
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
    /// The server's delays at that moment.
    pub server_backoff: Vec<u64>,
    pub reason: Option<Vec<u8>>,
    /// The signal that the job then waits for; only with SILENT.
    pub awaits: Option<Vec<u8>>,
    /// With AFTER, of the other options only a reason is given.
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

impl TouchOp {
    /// Without options.
    pub fn like(id: &[u8]) -> Self {
        TouchOp {
            id: id.to_vec(),
            token: None,
            ttr: None,
            progress: None,
            cost: None,
        }
    }

    pub fn given(&self) -> Touch<'_> {
        Touch {
            ttr_ms: self.ttr,
            progress: self.progress.as_deref(),
            weight: self.cost,
        }
    }
}

/// Pairs of name and value.
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
    /// The steps in the reply of WITHSTEPS.
    pub steps: Option<Pairs>,
    /// How the jobs ended that it was after.
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

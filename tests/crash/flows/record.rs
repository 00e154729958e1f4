//! What clients sent and received, and which jobs were blocked between two lives.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// When a command was sent, and when it was answered or abandoned.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub sent_us: u64,
    pub ended_us: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
    /// The connection died before the answer.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    Jobs(Vec<String>),
    Group(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDead {
    Wait,
    Run,
    Die,
}

impl OnDead {
    pub const ALL: [OnDead; 3] = [OnDead::Wait, OnDead::Run, OnDead::Die];

    pub fn word(self) -> &'static str {
        match self {
            OnDead::Wait => "WAIT",
            OnDead::Run => "RUN",
            OnDead::Die => "DIE",
        }
    }
}

/// The queue of a job: the first letter of its id.
pub fn queue_of(id: &str) -> char {
    id.chars().next().expect("an id")
}

/// An ADD. No id is added twice.
#[derive(Clone, Debug)]
pub struct Added {
    pub id: String,
    pub group: Option<String>,
    pub after: After,
    pub on_dead: OnDead,
    pub answer: Answer,
    pub span: Span,
}

/// How a job in an AFTER ended: id, outcome, value.
pub type Outcome = (String, Option<String>, Option<String>);

#[derive(Clone, Debug)]
pub struct Delivered {
    pub id: String,
    pub token: u64,
    pub results: Vec<Outcome>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// Done, with its result.
    Done(String),
    /// Dead, with its reason.
    Dead(String),
    Deleted,
}

#[derive(Clone, Debug)]
pub struct Ended {
    pub id: String,
    pub how: How,
    pub answer: Answer,
    pub span: Span,
}

/// A job that was given back until others have ended, which were added in the same transaction.
#[derive(Clone, Debug)]
pub struct Forked {
    pub id: String,
    pub token: u64,
    pub children: Vec<String>,
    pub answer: Answer,
}

#[derive(Clone, Debug)]
pub struct Kicked {
    pub id: String,
    pub answer: Answer,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Event {
    Added(Added),
    Delivered(Delivered),
    Ended(Ended),
    Forked(Forked),
    Kicked(Kicked),
    /// Found dead: id and reason.
    Died(String, String),
}

impl Event {
    pub fn is_unknown(&self) -> bool {
        let answer = match self {
            Event::Added(it) => it.answer,
            Event::Ended(it) => it.answer,
            Event::Forked(it) => it.answer,
            Event::Kicked(it) => it.answer,
            Event::Delivered(_) | Event::Died(..) => Answer::Yes,
        };
        answer == Answer::Unknown
    }
}

/// The blocked jobs of a queue when a server has started again, and those jobs and groups that can still end.
#[derive(Clone, Debug, Default)]
pub struct Blocked {
    pub jobs: BTreeMap<String, After>,
    pub held: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Record {
    pub events: Vec<Event>,
    pub blocked: Vec<Blocked>,
    /// Jobs that were still blocked when all others had ended.
    pub left: Vec<String>,
}

impl Record {
    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is(event)).count()
    }

    fn joins(&self) -> usize {
        self.count(|event| matches!(event, Event::Delivered(it) if it.results.len() > 1))
    }

    fn failures(&self) -> usize {
        self.count(|event| match event {
            Event::Ended(it) => matches!(it.how, How::Dead(_)),
            _ => false,
        })
    }

    /// Whether enough has happened to be judged.
    pub fn is_rich(&self) -> bool {
        let added = self.count(|event| matches!(event, Event::Added(_)));
        added > 500 && self.joins() > 80 && self.failures() > 10
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let blocked = self.blocked.iter().map(|it| it.jobs.len()).sum::<usize>();
        write!(
            f,
            "{} added, {} deliveries of joins, {} forks, {} failures, {} without an answer, {blocked} blocked at {} starts",
            self.count(|event| matches!(event, Event::Added(_))),
            self.joins(),
            self.count(|event| matches!(event, Event::Forked(_))),
            self.failures(),
            self.count(Event::is_unknown),
            self.blocked.len(),
        )
    }
}

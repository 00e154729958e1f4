//! What clients asked for and what they were told, and what must hold for all of it afterwards.
//!
//! Clients run side by side, so what the server did in between is only partly known: an entry took
//! effect somewhere between `sent` and `ended`, or, if the connection died before the answer,
//! perhaps never. The rules draw a conclusion only where every order that is possible leads to it. Two
//! things make that sharp: the payload of each job names the very ADD that it comes from, and a
//! token tells the server's clock at the delivery, and the order of deliveries.

mod bounds;
mod canaries;
mod canaries_of_bounds;
mod canaries_of_groups;
mod canaries_of_limits;
mod canaries_of_purges;
mod check;
mod due;
mod groups;
mod leases;
mod losses;
mod order;
mod pen;
mod places;
mod presence;
mod purges;
mod story;
mod tokens;
mod unexpected;
mod windows;
mod within;

pub use check::{check, Rule, Tally};
pub use story::Stories;

use std::collections::HashMap;

use crate::rng::Rng;

/// An instant, on the clock that only goes forward (since the run began) and on that of the wall, which
/// is the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub at_us: u64,
    pub wall_us: u64,
}

impl Stamp {
    pub fn wall_ms(self) -> u64 {
        self.wall_us / 1000
    }

    /// The next full millisecond: what a wait is counted from.
    pub fn wall_ms_up(self) -> u64 {
        self.wall_us.div_ceil(1000)
    }
}

/// None: the connection died before the answer.
pub type Answer<T> = Option<T>;

#[derive(Clone, Debug)]
pub struct Entry {
    pub client: usize,
    /// Which of the history's lives it was asked in.
    pub life: usize,
    pub sent: Stamp,
    /// Answered, or given up.
    pub ended: Stamp,
    /// Commands of one EXEC have the same number.
    pub unit: Option<u64>,
    /// WAIT said that a replica has it.
    pub confirmed: bool,
    pub queue: String,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Add(Add),
    Pop(Pop),
    Ack(Ack),
    Nack(Nack),
    Touch(Touch),
    Reschedule(Reschedule),
    Kick(Kick),
    Del(Del),
    Purge(Purge),
    /// The dead that are there at the end.
    Dead(Vec<Corpse>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    At(u64),
    In(u64),
}

#[derive(Clone, Debug)]
pub struct Add {
    /// Names this ADD; the payload follows from it.
    pub serial: u64,
    /// None: made by the server, which did not come to tell it.
    pub id: Option<String>,
    pub due: Due,
    pub priority: i32,
    pub max_attempts: u32,
    pub ttl_ms: Option<u64>,
    pub backoff: Vec<u64>,
    pub group: Option<String>,
    /// What a delivery of it counts for RATE.
    pub cost: u32,
    /// NX of an id that nobody else uses: cannot be refused.
    pub only: bool,
    /// Taken only where no live job has the id, and the queue does not remember it.
    pub nx: bool,
    pub answer: Answer<Taken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Added,
    /// By its condition.
    Refused,
    /// The queue is at its MAXLEN.
    Full,
}

impl Add {
    pub fn is_added(&self) -> bool {
        self.answer == Some(Taken::Added)
    }

    pub fn may_be_added(&self) -> bool {
        matches!(self.answer, None | Some(Taken::Added))
    }
}

#[derive(Clone, Debug)]
pub struct Pop {
    pub queues: Vec<String>,
    pub count: u64,
    pub noack: bool,
    /// Of one job, wherever it stands in line.
    pub by_id: bool,
    pub answer: Answer<Vec<Delivery>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub queue: String,
    pub id: String,
    pub payload: Vec<u8>,
    pub lease: Option<Lease>,
    pub attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub token: u64,
    pub deadline: u64,
}

/// Which job, and which delivery of it if told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub id: String,
    pub token: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Ack {
    pub claims: Vec<Claim>,
    pub answer: Answer<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fail,
    Silent,
    Fatal,
}

#[derive(Clone, Debug)]
pub struct Nack {
    pub claim: Claim,
    pub delay_ms: Option<u64>,
    pub kind: Kind,
    /// Whether the claim reached a job.
    pub answer: Answer<bool>,
}

#[derive(Clone, Debug)]
pub struct Touch {
    pub claim: Claim,
    pub ttr_ms: Option<u64>,
    /// What the delivery counts from then on.
    pub cost: Option<u32>,
    pub answer: Answer<Option<u64>>,
}

#[derive(Clone, Debug)]
pub struct Reschedule {
    pub due: Due,
    pub ids: Vec<String>,
    pub answer: Answer<u64>,
}

#[derive(Clone, Debug)]
pub struct Kick {
    /// None: the longest dead, whoever they are.
    pub ids: Option<Vec<String>>,
    pub answer: Answer<u64>,
}

#[derive(Clone, Debug)]
pub struct Del {
    pub ids: Vec<String>,
    /// UNRESERVED: it leaves reserved jobs alone.
    pub spares: bool,
    pub answer: Answer<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Delayed,
    Ready,
    Reserved,
    Dead,
    All,
}

#[derive(Clone, Debug)]
pub struct Purge {
    pub which: Which,
    /// How many jobs went.
    pub answer: Answer<u64>,
}

#[derive(Clone, Debug)]
pub struct Corpse {
    pub payload: Vec<u8>,
    pub attempts: u32,
}

/// What is promised of a life's entries after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All that was answered.
    All,
    /// What was answered before that instant (`at_us`), and what WAIT confirmed.
    Before(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Crash,
    Failover,
}

/// From a master's start, or promotion, to its end.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub kept: Kept,
    pub end: End,
}

/// Whose turn it is in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turns {
    /// Limits that come and go have a say in it.
    #[default]
    Unknown,
    /// Of the group that was served longest ago.
    Fair,
    /// With GROUPFIFO: within a group by the order of adding.
    Fifo,
}

/// What is set of a queue before the traffic begins, and stays. 0 is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub max_len: u64,
    pub dedupe_ms: u64,
    pub max_reserved: u64,
    pub group_max: u64,
    /// So much in so many milliseconds.
    pub rate: (u64, u64),
    pub turns: Turns,
}

#[derive(Clone, Debug, Default)]
pub struct History {
    pub entries: Vec<Entry>,
    /// Of queues that have any.
    pub bounds: HashMap<String, Bounds>,
    /// Those that have ended; the last one goes on.
    pub lives: Vec<Life>,
}

impl Entry {
    pub fn answered(&self) -> bool {
        match &self.what {
            What::Add(add) => add.answer.is_some(),
            What::Pop(pop) => pop.answer.is_some(),
            What::Ack(ack) => ack.answer.is_some(),
            What::Nack(nack) => nack.answer.is_some(),
            What::Touch(touch) => touch.answer.is_some(),
            What::Reschedule(reschedule) => reschedule.answer.is_some(),
            What::Kick(kick) => kick.answer.is_some(),
            What::Del(del) => del.answer.is_some(),
            What::Purge(purge) => purge.answer.is_some(),
            What::Dead(_) => true,
        }
    }

    /// Has it ended before the other began?
    pub fn is_before(&self, other: &Entry) -> bool {
        self.ended.at_us < other.sent.at_us
    }
}

impl History {
    /// Whether what was answered there must be known in that life (the same, or a later one).
    pub fn is_certain(&self, entry: &Entry, life: usize) -> bool {
        let kept = match self.lives.get(entry.life) {
            _ if entry.life >= life => true,
            Some(Life {
                kept: Kept::Before(at_us),
                ..
            }) => entry.confirmed || entry.ended.at_us <= *at_us,
            _ => true,
        };
        entry.answered() && kept
    }
}

/// The payload of the job that this ADD makes: its number, and bytes of all kinds that follow from it.
pub fn payload(serial: u64) -> Vec<u8> {
    let mut rng = Rng::new(serial);
    let length = rng.below(48);
    let mut bytes = format!("{serial}:").into_bytes();
    bytes.extend((0..length).map(|_| rng.next() as u8));
    bytes
}

/// The ADD that a payload comes from, if every byte is right.
pub fn serial_of(bytes: &[u8]) -> Option<u64> {
    let end = bytes.iter().position(|&byte| byte == b':')?;
    let serial = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    (payload(serial) == bytes).then_some(serial)
}

//! What clients asked for and what they were answered, and the rules that must hold for it.
//!
//! Clients run side by side, so what the server did is only partly known: an entry took effect some time between `sent`
//! and `ended`, or, if the connection died before the answer, perhaps never. The rules report a fault only if it
//! follows from every possible order. Two things make them sharp: the payload of each job names the ADD that it comes
//! from, and a token shows the server's clock at the delivery, and the order of deliveries.

mod bounds;
mod builder;
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
mod places;
mod presence;
mod purges;
mod settings;
mod story;
mod tokens;
mod unexpected;
mod windows;
mod within;

pub use check::{check, Rule, Tally};
pub use story::Stories;

use std::collections::HashMap;

use crate::rng::Rng;

/// An instant, by the monotonic clock (since the run began) and by the wall clock, which is the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub at_us: u64,
    pub wall_us: u64,
}

impl Stamp {
    pub fn wall_ms(self) -> u64 {
        self.wall_us / 1000
    }

    /// The next full millisecond, from which waits are counted.
    pub fn wall_ms_up(self) -> u64 {
        self.wall_us.div_ceil(1000)
    }
}

/// None: the connection died before the answer.
pub type Answer<T> = Option<T>;

#[derive(Clone, Debug)]
pub struct Entry {
    pub client: usize,
    /// The life (of the history's) in which it was sent.
    pub life: usize,
    pub sent: Stamp,
    /// When it was answered, or abandoned.
    pub ended: Stamp,
    /// Commands of one EXEC have the same number; None outside transactions.
    pub unit: Option<u64>,
    /// Whether WAIT said that a replica has it.
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
    /// GROUPSET of a group that nobody else sets, to values that grow.
    Set(Set),
    /// What a group has of its own at the end of the run, by its name.
    Own(String, u64),
    /// The dead jobs at the end of the run.
    Dead(Vec<Corpse>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    At(u64),
    In(u64),
}

#[derive(Clone, Debug)]
pub struct Add {
    /// Identifies this ADD; the payload follows from it.
    pub serial: u64,
    /// None: the server generated the id, and its reply never came.
    pub id: Option<String>,
    pub due: Due,
    pub priority: i32,
    pub max_attempts: u32,
    pub ttl_ms: Option<u64>,
    pub backoff: Vec<u64>,
    pub group: Option<String>,
    /// What a delivery counts for RATE.
    pub cost: u32,
    /// NX with an id that no other ADD uses: it cannot be refused.
    pub only: bool,
    /// NX: accepted only if no live job has the id, and it is not in the dedupe window.
    pub nx: bool,
    pub answer: Answer<Taken>,
}

impl Add {
    /// Without options, of an id that no other ADD uses.
    pub fn of(serial: u64, id: String, due: Due) -> Add {
        Add {
            serial,
            id: Some(id),
            due,
            priority: 0,
            max_attempts: 0,
            ttl_ms: None,
            backoff: Vec::new(),
            group: None,
            cost: 1,
            only: true,
            nx: true,
            answer: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Added,
    /// Refused by its condition.
    Refused,
    /// The queue is at its MAXLEN.
    Full,
    /// The group is at its MAXLEN.
    GroupFull,
}

/// What the server has for those who have no ladder; each of its waits is up to a tenth longer.
pub const SERVERS_LADDER: [u64; 2] = [20, 60];

impl Add {
    pub fn ladder(&self) -> &[u64] {
        match &self.backoff[..] {
            [] => &SERVERS_LADDER,
            own => own,
        }
    }

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
    /// POP of one job by its id, out of turn.
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

/// The job that is meant, and which delivery of it if there is a token.
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
    /// Whether the claim matched a job.
    pub answer: Answer<bool>,
}

#[derive(Clone, Debug)]
pub struct Touch {
    pub claim: Claim,
    pub ttr_ms: Option<u64>,
    /// What the delivery counts for RATE from then on.
    pub cost: Option<u32>,
    pub answer: Answer<Option<u64>>,
}

impl Touch {
    /// Without options.
    pub fn of(claim: Claim, answer: Answer<Option<u64>>) -> Touch {
        Touch {
            claim,
            ttr_ms: None,
            cost: None,
            answer,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Reschedule {
    pub due: Due,
    pub ids: Vec<String>,
    pub answer: Answer<u64>,
}

#[derive(Clone, Debug)]
pub struct Kick {
    /// None: the jobs that have been dead longest.
    pub ids: Option<Vec<String>>,
    pub answer: Answer<u64>,
}

#[derive(Clone, Debug)]
pub struct Del {
    pub ids: Vec<String>,
    /// UNRESERVED: reserved jobs are not deleted.
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
    /// How many jobs were removed.
    pub answer: Answer<u64>,
}

#[derive(Clone, Debug)]
pub struct Set {
    pub group: String,
    pub value: u64,
    pub answer: Answer<()>,
}

#[derive(Clone, Debug)]
pub struct Corpse {
    pub payload: Vec<u8>,
    pub attempts: u32,
}

/// Which entries of a life are guaranteed to survive its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All that were answered.
    All,
    /// Those that were answered before this instant (`at_us`), and those that WAIT confirmed.
    Before(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Crash,
    Failover,
}

/// A life: from a master's start, or promotion, to its end.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub kept: Kept,
    pub end: End,
}

/// In which order a queue serves groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turns {
    /// Unknown, as limits that change have an influence.
    #[default]
    Unknown,
    /// The group that was served longest ago is next.
    Fair,
    /// As `Fair`, and within a group in the order of adding (GROUPFIFO).
    Fifo,
}

/// Settings of a queue that are made before the traffic, and stay. 0 is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub max_len: u64,
    pub dedupe_ms: u64,
    pub max_reserved: u64,
    pub group_max: u64,
    /// RATE: a cost, and the milliseconds of its window.
    pub rate: (u64, u64),
    pub turns: Turns,
    pub own: Own,
}

/// What the group [`OWNER`] has of its own (GROUPSET). 0 is what the queue has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    pub weight: u64,
    pub max: u64,
    pub max_len: u64,
    pub rate: (u64, u64),
}

pub const OWNER: &str = "g1";

impl Bounds {
    /// What a group has of its own.
    pub fn own_of(&self, group: Option<&str>) -> Own {
        match group {
            Some(OWNER) => self.own,
            _ => Own::default(),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct History {
    pub entries: Vec<Entry>,
    /// The bounds of queues that have any.
    pub bounds: HashMap<String, Bounds>,
    /// The lives that have ended; the last entry's life is still running.
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
            What::Set(set) => set.answer.is_some(),
            What::Own(..) | What::Dead(_) => true,
        }
    }

    /// Whether this entry had ended before the other one was sent.
    pub fn is_before(&self, other: &Entry) -> bool {
        self.ended.at_us < other.sent.at_us
    }
}

impl History {
    /// Whether this answered entry must be known in that life (its own, or a later one).
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

/// The payload of this ADD's job: its serial, and bytes of all kinds that follow from it.
pub fn payload(serial: u64) -> Vec<u8> {
    let mut rng = Rng::new(serial);
    let length = rng.below(48);
    let mut bytes = format!("{serial}:").into_bytes();
    bytes.extend((0..length).map(|_| rng.next() as u8));
    bytes
}

/// The serial of the ADD that a payload comes from, if every byte is right.
pub fn serial_of(bytes: &[u8]) -> Option<u64> {
    let end = bytes.iter().position(|&byte| byte == b':')?;
    let serial = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    (payload(serial) == bytes).then_some(serial)
}

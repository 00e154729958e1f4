//! What a job is, and the limits on it.
//!
//! ```text
//!                 DELAY / AT in the future
//!   DQ.ADD ───────────────┬──────────────────► delayed
//!      │                  │                    │    ▲
//!      │ no delay         │  due time comes    │    │ NACK with a wait, RESCHEDULE
//!      ▼                  │                    ▼    │
//!    ready ◄──────────────┴──────────────────── ready
//!      │  ▲                                      
//!  POP │  │ lease ends, NACK without a wait      
//!      ▼  │                                      
//!   reserved ───── ACK ─────────────────────► gone
//!      │  attempts used up, NACK FATAL           ▲
//!      ▼                                         │ DEL, PURGE, TTL, DEADLEN
//!     dead ── KICK ──► ready                     │ (from every state)
//! ```
//!
//! Delayed and ready are one *place*, [`Place::Scheduled`]: which of the two a job is in follows
//! from `due <= now` and is never stored.

use super::after::Waits;
pub use super::after::{check_group_name, GROUP_MAX};
use super::attr::Attrs;
pub use super::attr::LADDER_MAX;
pub use super::instant::{INSTANT_MAX, TOKEN_MAX, TOKEN_MS_SHIFT};
use super::note::Notes;
pub use super::note::{PROGRESS_MAX, STEP_NAME_MAX};
use super::recurring::rule::{Occurrence, Rule};
use serde::{Deserialize, Serialize};

/// Bytes in an id, at most; at least one.
pub const ID_MAX: usize = 1024;
/// What a RATE or a GROUPRATE may allow in its window, at most.
pub const RATE_MAX: u64 = u32::MAX as u64;
/// A token also contains the microseconds within the millisecond, shifted by this many bits: the bits below number
/// the tokens of one microsecond.
pub const TOKEN_US_SHIFT: u32 = 10;
/// The largest number in the orders of adding and of dying; a queue that reaches it numbers its jobs anew.
pub const SEQ_MAX: u64 = (1 << 47) - 1;

/// Bytes of a REASON that are kept.
pub const REASON_MAX: usize = 1024;
/// Steps of a job, at most.
pub const STEPS_MAX: usize = 1000;
/// The reason of a failure by the end of a lease.
pub const LEASE_ENDED: &[u8] = b"lease ended";

/// Names a job in its queue's memory. Reused once the job is gone.
pub type Handle = u32;
/// Names a group in its queue's memory, as a handle names a job.
pub type GroupNumber = u32;

/// The state a client sees, at one instant.
#[allow(missing_docs, reason = "the type's comment describes them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    Delayed,
    Ready,
    Reserved,
    Dead,
    Done,
    Blocked,
}

impl State {
    /// All states, in the order in which they are listed.
    pub const ALL: [State; 6] = [
        State::Delayed,
        State::Ready,
        State::Reserved,
        State::Dead,
        State::Done,
        State::Blocked,
    ];

    /// As on the wire.
    pub fn name(self) -> &'static str {
        match self {
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Reserved => "reserved",
            State::Dead => "dead",
            State::Done => "done",
            State::Blocked => "blocked",
        }
    }
}

/// The list a job stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Delayed or ready, in the order of due times.
    Scheduled,
    /// Delivered, in the order of deadlines.
    Reserved,
    /// In the order of dying.
    Dead,
    /// On no list but that of TTLs: takes the place of the job with its id when that job is done or dies.
    Successor,
    /// In the order of adding: it is after other jobs. Its due time is the instant or the delay that its ADD named.
    Blocked,
}

/// A job's last failure: when, and why, if a reason was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Failure<'a> {
    /// Unix-ms.
    pub at: u64,
    /// At most [`REASON_MAX`] bytes.
    #[serde(with = "serde_bytes", borrow)]
    pub reason: Option<&'a [u8]>,
}

impl Failure<'static> {
    /// A failure by the end of a lease at `at`.
    pub fn of_lease(at: u64) -> Self {
        Failure {
            at,
            reason: Some(LEASE_ENDED),
        }
    }
}

/// What is decided when a job is added. It is mostly the same among the jobs of a queue, and stored once for all
/// that share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Terms<'a> {
    /// Lower is served first.
    pub priority: i32,
    /// Length of a lease.
    pub ttr_ms: u64,
    /// Deliveries allowed; 0 is without limit.
    pub max_attempts: u32,
    /// All else that was said.
    #[serde(borrow)]
    pub rest: Attrs<'a>,
}

// A queue of one job has one of them.
const _: () = assert!(size_of::<Terms<'_>>() <= 40);

/// What a worker needs to know of a job's terms.
#[allow(missing_docs, reason = "as in [`Terms`]")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermsShown {
    pub ttr_ms: u64,
    pub max_attempts: u32,
    /// Its own ladder's delay if this delivery fails; `None` where the server's holds.
    pub wait_ms: Option<u64>,
}

impl Terms<'_> {
    /// What the worker of the `attempts`-th delivery gets.
    pub fn shown(&self, attempts: u32) -> TermsShown {
        let wait_ms = self.rest.backoff().map(|ladder| ladder.after(attempts));
        TermsShown {
            ttr_ms: self.ttr_ms,
            max_attempts: self.max_attempts,
            wait_ms,
        }
    }

    /// Whether no delivery is left after `attempts`.
    pub fn exhausted_by(&self, attempts: u32) -> bool {
        self.max_attempts != 0 && attempts >= self.max_attempts
    }

    /// As `==`, but does not compare two empty strings. On processors with AVX-512, glibc's memcmp of zero bytes takes
    /// a tenth of a microsecond if the address is not mapped, as that of an empty slice may be.
    pub fn equals(&self, other: &Terms<'_>) -> bool {
        let fields = |terms: &Terms<'_>| {
            let rest = terms.rest.bytes().len();
            (terms.priority, terms.ttr_ms, terms.max_attempts, rest)
        };
        fields(self) == fields(other) && (self.rest.is_empty() || self.rest == other.rest)
    }

    /// With its rest copied.
    pub fn into_owned(self) -> Terms<'static> {
        Terms {
            rest: self.rest.into_owned(),
            ..self
        }
    }

    /// As a done job has them.
    pub(in crate::queue) fn when_done(&self) -> Terms<'_> {
        Terms {
            rest: self.rest.when_done(),
            ..*self
        }
    }

    /// Without copying its rest.
    pub fn borrowed(&self) -> Terms<'_> {
        Terms {
            rest: self.rest.borrowed(),
            ..*self
        }
    }
}

/// What only some jobs have: everything zero is a job that was never delivered and never expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// The instant at which the job expires; 0 is never.
    pub expires: u64,
    /// The token of the latest delivery, while it is current; 0 is none.
    pub token: u64,
    /// Reserved: the lease's end. Dead: the instant of death. Otherwise 0.
    pub at: u64,
    /// Length of the last lease in ms, for TOUCH.
    pub lease_ms: u64,
    /// Dead: the place in the order of dying. Otherwise 0.
    pub death: u64,
    /// Deliveries so far that count.
    pub attempts: u32,
}

/// All that DQ.GET shows of a job.
#[allow(missing_docs, reason = "called as in DQ.GET's reply")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView<'a> {
    pub id: &'a [u8],
    pub payload: &'a [u8],
    pub state: State,
    pub due: u64,
    pub terms: &'a Terms<'static>,
    pub life: Life,
    pub failure: Option<Failure<'a>>,
    /// Its rule, and how far the job has come with it.
    pub recurring: Option<(&'a Rule<'static>, Occurrence)>,
    /// The name of its group.
    pub group: Option<&'a [u8]>,
    /// The payload of its successor.
    pub next: Option<&'a [u8]>,
    /// What only some jobs have.
    pub notes: Notes<'a>,
    /// Whether `due` is an instant; of some blocked jobs it is a delay.
    pub has_due: bool,
    /// What it is after, or was. Only if a single job is asked for.
    pub waits: Option<Waits<'a>>,
    /// The instant of the latest delivery, of a reserved or a done job.
    pub started: Option<u64>,
    /// How a done job ended.
    pub done: Option<CompletionView<'a>>,
    /// The client to which a reserved job was delivered, if that is known here. Only if a single job is asked for.
    pub client: Option<u64>,
}

/// How a done job ended.
#[allow(missing_docs, reason = "called as in DQ.GET's reply")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionView<'a> {
    pub result: Option<&'a [u8]>,
    pub finished: u64,
}

impl<'a> JobView<'a> {
    /// The step that it waits for.
    pub fn awaits(&self) -> Option<&'a [u8]> {
        let waits = self.state == State::Delayed;
        self.notes.awaits().filter(|_| waits)
    }

    /// The instant by which the job's state is ordered: due, deadline or time of death.
    pub fn at(&self) -> u64 {
        match self.state {
            State::Delayed | State::Ready | State::Blocked => self.due,
            State::Reserved | State::Dead => self.life.at,
            State::Done => self.done.map_or(0, |finish| finish.finished),
        }
    }
}

//! What happened: the facts that a replica, the AOF, snapshots, events and totals are made of.
//!
//! Every instant in them is absolute, every id and token explicit. A queue is the fold of its
//! effects: what decides on a master emits them, and what carries them out is the same code on a
//! master, on a replica and in a replayed AOF.

use super::budget::OUT_OF_TURN;
use super::error::QueueError;
use super::job::{Failure, Life, Place, State, Terms};
use super::recurring::rule::{Next, Round, Rule, ZoneOf};
use super::settings::Settings;
use super::stats::Totals;
use serde::{Deserialize, Serialize};

/// The first byte of every encoded sequence of effects. Variants and fields are only ever appended;
/// what cannot be expressed so gets the next version, and the older ones stay readable.
/// Versions 2 and 3 know more variants than the one before, and are read like it.
pub const EFFECTS_VERSION: u8 = 3;
const OLDEST_VERSION: u8 = 1;

/// PAUSE without an end.
pub const FOREVER: u64 = u64::MAX;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect<'a> {
    /// A job came, in place of one of the same id if there was one.
    Added {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        due: u64,
        /// 0 is never.
        expires: u64,
        #[serde(borrow)]
        terms: Terms<'a>,
    },
    /// Something happened to one job.
    Job {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        change: Change,
    },
    /// The queue stays until DEL, also without jobs.
    Kept,
    /// And stays. A dedupe window of 0 forgets all ids.
    Configured(Settings),
    /// Until that instant, or [`FOREVER`]; and stays.
    Paused {
        until: u64,
    },
    Resumed,
    /// The id was finished, and NX refuses it until that instant.
    Remembered {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        until: u64,
    },
    ForgotId {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
    },
    /// All ids remembered until that instant or less.
    Forgot {
        until: u64,
    },
    /// A job as it stands: snapshots were made of these, and digests are.
    Stored {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        seq: u64,
        due: u64,
        place: Place,
        life: Life,
        #[serde(borrow)]
        terms: Terms<'a>,
    },
    /// Numbers that go on from there: order of adding, order of dying, tokens.
    Floors {
        seq: u64,
        death: u64,
        token: u64,
    },
    /// The key went with its last job.
    Dropped,
    /// All jobs of a state are gone, or all jobs: delayed is what is due after `cut`.
    Purged {
        state: Option<State>,
        cut: u64,
    },
    /// An id `<unix-ms>-<seq>` was made by the server, whose last token was that (0: not told).
    Minted {
        ms: u64,
        seq: u64,
        token: u64,
    },
    /// Jobs as they stand, as many [`super::rows`]: all of them come, or none.
    Rows {
        #[serde(with = "serde_bytes")]
        rows: &'a [u8],
    },
    /// All reserved jobs are gone whose leases end after `cut`.
    PurgedLeases {
        cut: u64,
    },
    /// So many of the longest dead are gone, by DEADLEN.
    Trimmed {
        count: u64,
    },
    /// Something happened to one job, and that was a failure. By a lease's end it fails without being told.
    Failed {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        change: Change,
        #[serde(borrow)]
        failure: Failure<'a>,
    },
    /// A job came that waits for the place of the one of its id, instead of another one that did.
    Followed {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        due: u64,
        /// 0 is never.
        expires: u64,
        #[serde(borrow)]
        terms: Terms<'a>,
    },
    /// MAXBYTES, which [`Effect::Configured`] leaves as it is.
    Bounded {
        max_bytes: u64,
    },
    /// A job with a rule came, in place of one of the same id if there was one.
    Recurs {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        #[serde(borrow)]
        terms: Terms<'a>,
        #[serde(borrow)]
        rule: Rule<'a>,
        first: Next,
    },
    /// A job with a rule was replaced by the same rule: what it has of its occurrence stays.
    Renewed {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        #[serde(with = "serde_bytes")]
        payload: &'a [u8],
        #[serde(borrow)]
        terms: Terms<'a>,
        #[serde(borrow)]
        rule: Rule<'a>,
    },
    /// An occurrence ended. Without a next one the job is gone.
    Recurred {
        #[serde(with = "serde_bytes")]
        id: &'a [u8],
        ended: Ended,
        next: Option<Next>,
        /// Of one that was nacked: what is noted of it.
        #[serde(borrow)]
        failure: Option<Failure<'a>>,
    },
    /// The rule of a job, and how far it has come: digests are made of these.
    Rules {
        #[serde(borrow)]
        rule: Rule<'a>,
        round: Round,
    },
}

/// How an occurrence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    Acked,
    Popped,
    /// GRACE was over.
    Missed,
    Expired,
    /// Its TTL was past when its lease ended.
    TimedOutExpired,
    /// Dead, by its lease's end or by NACK; whether it is kept as a job of its own.
    TimedOut {
        at: u64,
        kept: bool,
    },
    Nacked {
        at: u64,
        priority: i32,
        kept: bool,
    },
}

impl Ended {
    pub(super) fn events(self) -> &'static [Event] {
        match self {
            Ended::Acked => &[Event::Ack],
            Ended::Popped => &[Event::Pop],
            Ended::Missed => &[Event::Missed],
            Ended::Expired => &[Event::Expired],
            Ended::TimedOutExpired => &[Event::Timeout, Event::Expired],
            Ended::TimedOut { .. } => &[Event::Timeout, Event::Dead],
            Ended::Nacked { .. } => &[Event::Nack, Event::Dead],
        }
    }

    pub(super) fn count(self, totals: &mut Totals) {
        match self {
            Ended::Acked => totals.acked += 1,
            Ended::Popped => totals.delivered += 1,
            Ended::Missed => totals.missed += 1,
            Ended::Expired => totals.expired += 1,
            Ended::TimedOutExpired => {
                totals.timed_out += 1;
                totals.expired += 1;
            }
            Ended::TimedOut { kept, .. } => {
                totals.timed_out += 1;
                totals.died += 1;
                totals.deleted += u64::from(!kept);
            }
            Ended::Nacked { kept, .. } => {
                totals.nacked += 1;
                totals.died += 1;
                totals.deleted += u64::from(!kept);
            }
        }
    }

    /// Whether its occurrence stays in the dead list, and since when.
    pub(super) fn death(self) -> Option<u64> {
        match self {
            Ended::TimedOut { at, kept } | Ended::Nacked { at, kept, .. } => kept.then_some(at),
            _ => None,
        }
    }

    pub(super) fn died(self) -> bool {
        matches!(self, Ended::TimedOut { .. } | Ended::Nacked { .. })
    }
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    Reserved {
        token: u64,
        deadline: u64,
        lease_ms: u64,
    },
    /// A fresh lease.
    Touched {
        deadline: u64,
        lease_ms: u64,
    },
    /// The lease ended; the token stays current.
    TimedOut,
    Nacked {
        due: u64,
        priority: i32,
        attempts: u32,
    },
    /// The instant of death; a job that died of its lease's end keeps its token.
    Died {
        at: u64,
        cause: Death,
    },
    Rescheduled {
        due: u64,
    },
    Kicked {
        due: u64,
    },
    /// It is gone; NX refuses the id until that instant (0: does not).
    Removed {
        cause: Removal,
        remember: u64,
    },
    Prioritized {
        priority: i32,
    },
    /// It is gone as [`Change::Removed`] or dead, and its successor stands in its place; whether that was ready.
    Succeeded {
        end: End,
        remember: u64,
        ready: bool,
    },
    /// It has no successor any more, since that one's TTL is over.
    SuccessorExpired,
}

/// How a job went whose successor took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    Acked,
    Popped,
    /// Dead, but for its successor.
    TimedOut,
    Nacked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Death {
    TimedOut,
    Nacked { priority: i32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Removal {
    Acked,
    /// At delivery, by NOACK.
    Popped,
    /// DEL, PURGE and DEADLEN.
    Deleted,
    /// Its TTL is past.
    Expired,
    /// Its TTL was past when its lease ended.
    TimedOutExpired,
}

/// Keyspace events, by the order in which one command raises them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Add,
    Timeout,
    Nack,
    Ready,
    Pop,
    Ack,
    Dead,
    /// Add and Ready of a successor: behind the end of the job whose place it takes.
    SuccessorAdd,
    SuccessorReady,
    Del,
    Missed,
    Expired,
}

impl Event {
    pub const ALL: [Event; 12] = [
        Event::Add,
        Event::Timeout,
        Event::Nack,
        Event::Ready,
        Event::Pop,
        Event::Ack,
        Event::Dead,
        Event::SuccessorAdd,
        Event::SuccessorReady,
        Event::Del,
        Event::Missed,
        Event::Expired,
    ];
}

/// Which events were raised: each once, however many jobs raised it.
#[derive(Clone, Copy, Default)]
pub struct Events(u16);

impl Events {
    pub fn raise(&mut self, event: Event) {
        self.0 |= 1 << event as u16;
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of a successor are told instead of the same ones of other jobs.
    pub fn iter(self) -> impl Iterator<Item = Event> {
        let is_raised = move |event: Event| self.0 & 1 << event as u16 != 0;
        Event::ALL.into_iter().filter(move |&event| {
            is_raised(event)
                && match event {
                    Event::Add => !is_raised(Event::SuccessorAdd),
                    Event::Ready => !is_raised(Event::SuccessorReady),
                    _ => true,
                }
        })
    }
}

impl Effect<'_> {
    /// Whether jobs must be found by their ids to carry it out. Not so what snapshots are made of.
    pub(super) fn looks_for_jobs(&self) -> bool {
        !matches!(
            self,
            Effect::Rows { .. }
                | Effect::Floors { .. }
                | Effect::Configured(_)
                | Effect::Paused { .. }
                | Effect::Kept
                | Effect::Remembered { .. }
                | Effect::Minted { .. }
        )
    }

    /// Whether a snapshot may hold it, of this version or an older one.
    pub fn stands_in_snapshots(&self) -> bool {
        !self.looks_for_jobs() || matches!(self, Effect::Stored { .. } | Effect::Bounded { .. })
    }

    /// Whether those who watch the key see a change in it: not in an id's being forgotten.
    pub fn touches(&self) -> bool {
        !matches!(self, Effect::Forgot { .. } | Effect::ForgotId { .. })
    }

    /// What it raises wherever it is carried out.
    pub fn events(&self) -> &'static [Event] {
        match self {
            Effect::Added { .. } | Effect::Recurs { .. } | Effect::Renewed { .. } => &[Event::Add],
            Effect::Recurred { ended, .. } => ended.events(),
            Effect::Job { change, .. } | Effect::Failed { change, .. } => change.events(),
            Effect::Purged { .. } | Effect::PurgedLeases { .. } | Effect::Trimmed { .. } => {
                &[Event::Del]
            }
            _ => &[],
        }
    }
}

impl Change {
    pub(super) fn events(self) -> &'static [Event] {
        match self {
            Change::Reserved { .. } => &[Event::Pop],
            Change::Touched { .. } => &[],
            Change::TimedOut => &[Event::Timeout],
            Change::Nacked { .. } => &[Event::Nack],
            Change::Died { cause, .. } => match cause {
                Death::TimedOut => &[Event::Timeout, Event::Dead],
                Death::Nacked { .. } => &[Event::Nack, Event::Dead],
            },
            Change::Rescheduled { .. } => &[],
            Change::Kicked { .. } => &[Event::Ready],
            Change::Removed { cause, .. } => match cause {
                Removal::Acked => &[Event::Ack],
                Removal::Popped => &[Event::Pop],
                Removal::Deleted => &[Event::Del],
                Removal::Expired => &[Event::Expired],
                Removal::TimedOutExpired => &[Event::Timeout, Event::Expired],
            },
            Change::Prioritized { .. } => &[],
            Change::Succeeded { end, ready, .. } => {
                use Event::{Ack, Dead, Nack, Pop, SuccessorAdd, SuccessorReady, Timeout};
                // What is raised where the successor is ready stands last.
                let events: &[Event] = match end {
                    End::Acked => &[Ack, SuccessorAdd, SuccessorReady],
                    End::Popped => &[Pop, SuccessorAdd, SuccessorReady],
                    End::TimedOut => &[Timeout, Dead, SuccessorAdd, SuccessorReady],
                    End::Nacked => &[Nack, Dead, SuccessorAdd, SuccessorReady],
                };
                let others = events.len() - usize::from(!ready);
                &events[..others]
            }
            Change::SuccessorExpired => &[Event::Expired],
        }
    }

    /// Whether a consumer gets the job by it.
    pub(super) fn is_delivery(self) -> bool {
        let popped = |cause| cause == Removal::Popped;
        match self {
            Change::Reserved { .. } => true,
            Change::Removed { cause, .. } => popped(cause),
            Change::Succeeded { end, .. } => end == End::Popped,
            _ => false,
        }
    }

    pub(super) fn count(self, totals: &mut Totals) {
        match self {
            Change::Reserved { .. } => totals.delivered += 1,
            Change::Touched { .. }
            | Change::Rescheduled { .. }
            | Change::Prioritized { .. }
            | Change::Kicked { .. } => {}
            Change::Succeeded { end, .. } => end.count(totals),
            Change::SuccessorExpired => totals.expired += 1,
            Change::TimedOut => totals.timed_out += 1,
            Change::Nacked { .. } => totals.nacked += 1,
            Change::Died { cause, .. } => {
                totals.died += 1;
                match cause {
                    Death::TimedOut => totals.timed_out += 1,
                    Death::Nacked { .. } => totals.nacked += 1,
                }
            }
            Change::Removed { cause, .. } => match cause {
                Removal::Acked => totals.acked += 1,
                Removal::Popped => totals.delivered += 1,
                Removal::Deleted => totals.deleted += 1,
                Removal::Expired => totals.expired += 1,
                Removal::TimedOutExpired => {
                    totals.timed_out += 1;
                    totals.expired += 1;
                }
            },
        }
    }
}

impl End {
    /// The job's end, and the coming of its successor. One that dies is replaced at once.
    fn count(self, totals: &mut Totals) {
        totals.added += 1;
        match self {
            End::Acked => totals.acked += 1,
            End::Popped => totals.delivered += 1,
            End::TimedOut | End::Nacked => {
                totals.died += 1;
                totals.deleted += 1;
            }
        }
        match self {
            End::TimedOut => totals.timed_out += 1,
            End::Nacked => totals.nacked += 1,
            End::Acked | End::Popped => {}
        }
    }
}

/// The effects of one command or of one step of the timer, already encoded, with what they raise.
#[derive(Default)]
pub struct Effects {
    bytes: Vec<u8>,
    /// Nobody reads the bytes, and there are none.
    unheard: bool,
    /// Whether anything happened at all; whether something did that a WATCH is touched by.
    any: bool,
    touching: bool,
    events: Events,
    /// Steps taken for what is past: see [`Effects::allow`].
    settled: usize,
    /// Where rules find their zones; none is known without.
    zone_of: Option<ZoneOf>,
    /// One that was not known.
    missed_zone: Option<Vec<u8>>,
    /// Over all that went through here: never cleared.
    pub totals: Totals,
}

/// A buffer that one large payload has grown is not kept.
const BUFFER_KEPT: usize = 64 * 1024;

impl Effects {
    /// In line, so that what nobody hears of is not even put together.
    #[inline]
    pub fn push(&mut self, effect: &Effect<'_>) {
        self.touching = true;
        self.push_quietly(effect);
    }

    /// The same for what only frees memory of what has ended: no change to those who watch the key.
    #[inline]
    pub(super) fn push_quietly(&mut self, effect: &Effect<'_>) {
        self.any = true;
        if !self.unheard {
            self.append(effect);
        }
    }

    fn append(&mut self, effect: &Effect<'_>) {
        if self.bytes.is_empty() {
            self.bytes.push(EFFECTS_VERSION);
        }
        encode(effect, &mut self.bytes);
    }

    /// How many steps of those wanted one command may yet take for what is past, whatever number of jobs
    /// it names.
    pub(super) fn allow(&self, wanted: usize) -> usize {
        wanted.min(OUT_OF_TURN.saturating_sub(self.settled))
    }

    pub(super) fn took(&mut self, steps: usize) {
        self.settled += steps;
    }

    pub fn raise(&mut self, event: Event) {
        self.events.raise(event);
    }

    pub fn is_empty(&self) -> bool {
        !self.any
    }

    pub fn touches(&self) -> bool {
        self.touching
    }

    /// From here on rules find their zones so.
    pub fn know_zones(&mut self, zone_of: ZoneOf) {
        self.zone_of = Some(zone_of);
    }

    pub fn zone_of(&self) -> ZoneOf {
        self.zone_of.unwrap_or(|_| None)
    }

    /// Notes the name of a zone that a rule has, and nobody knows.
    pub(super) fn miss_zone(&mut self, name: Option<&[u8]>) {
        if let Some(name) = name {
            self.missed_zone = Some(name.to_vec());
        }
    }

    pub fn take_missed_zone(&mut self) -> Option<Vec<u8>> {
        self.missed_zone.take()
    }

    /// Readable by [`decode`], unless nobody was to hear of them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Those that follow need not be encoded: nobody will read them.
    pub fn leave_unheard(&mut self) {
        self.unheard = true;
    }

    pub fn is_unheard(&self) -> bool {
        self.unheard
    }

    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.events.iter()
    }

    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_KEPT);
        self.unheard = false;
        self.any = false;
        self.touching = false;
        self.events = Events::default();
        self.settled = 0;
    }
}

/// Appends to a Vec without the detour over an iterator of bytes.
struct Append<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Appends one effect; the version byte that begins a sequence is the caller's.
pub fn encode(effect: &Effect<'_>, bytes: &mut Vec<u8>) {
    append(effect, bytes);
}

pub(super) fn append<T: Serialize>(value: &T, bytes: &mut Vec<u8>) {
    let encoded = postcard::serialize_with_flavor(value, Append(bytes));
    debug_assert!(encoded.is_ok(), "a Vec takes everything");
}

/// Reads a sequence of effects from its version byte on. The bytes may be anybody's.
pub fn decode(bytes: &[u8]) -> impl Iterator<Item = Result<Effect<'_>, QueueError>> {
    let (version, mut rest) = match bytes.split_first() {
        Some((&version, rest)) => (Some(version), rest),
        None => (None, bytes),
    };
    let mut refused = match version {
        Some(OLDEST_VERSION..=EFFECTS_VERSION) => None,
        Some(_) => Some("effects of a version that this module does not know"),
        None => Some("no effects at all"),
    };
    let mut broken = false;
    std::iter::from_fn(move || {
        if broken {
            return None;
        }
        if let Some(why) = refused.take() {
            broken = true;
            return Some(Err(QueueError::Malformed(why)));
        }
        if rest.is_empty() {
            return None;
        }
        match postcard::take_from_bytes::<Effect<'_>>(rest) {
            Ok((effect, behind)) => {
                rest = behind;
                Some(Ok(effect))
            }
            Err(_) => {
                broken = true;
                Some(Err(QueueError::Malformed("an effect that does not decode")))
            }
        }
    })
}

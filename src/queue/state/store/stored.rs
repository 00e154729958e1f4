//! A job that is to be stored, and a stored job: the two words before its id, and what follows where; how they are read,
//! and changed with the job's rare part. The diagram is in `store.rs`.

use super::extra::{Extra, Parts, Recurring};
use super::{Rare, Store, NO_JOB, NO_RARE, NO_RULE, OUT_OF_BOUNDS};
use crate::queue::effect::{Came, How};
use crate::queue::job::{Failure, Handle, Life, Place, Terms, ID_MAX, INSTANT_MAX};
use crate::queue::recurring::rule::{Occurrence, Rule};
use crate::queue::state::terms::{TermsRef, POOL_MAX};
use crate::storage::arena::HEAD_BITS;
use crate::storage::broken::{must, there};
use crate::storage::slab::Slab;
use ahash::RandomState;
use serde::Serialize;

pub(super) const HEADER: usize = 16;
pub(super) const DUE_BITS: u64 = INSTANT_MAX;
pub(super) const ID_LEN_SHIFT: u32 = 42;
const PLACE_SHIFT: u32 = 52;
pub(super) const PLACE_BITS: u64 = 7 << PLACE_SHIFT;
pub(super) const HAS_RARE: u64 = 1 << 55;
/// There is a group: its number, 4 bytes, comes last.
pub(super) const GROUPED: u64 = 1 << 57;
const _: () = assert!(GROUPED < HEAD_BITS);
pub(super) const NO_GROUP: u32 = u32::MAX;
pub(super) const NO_TRAILER: &str = "a job without the number of its group";
pub(super) const SEQ_BITS: u64 = (1 << 47) - 1;
const TERMS_SHIFT: u32 = 48;
/// In the place of a number of shared terms: the rare part has the job's own.
const OWN_TERMS: TermsRef = TermsRef::MAX;
const _: () = assert!(POOL_MAX < OWN_TERMS as usize);

/// Bytes of id and payload of one job.
pub(super) fn content(bytes: &[u8]) -> u64 {
    let apart = match bytes.first_chunk() {
        Some(word0) => HEADER + trailer_of(u64::from_le_bytes(*word0)),
        None => HEADER,
    };
    bytes.len().saturating_sub(apart) as u64
}

/// Bytes behind the payload.
#[inline]
pub(super) fn trailer_of(word0: u64) -> usize {
    if word0 & GROUPED == 0 {
        0
    } else {
        size_of::<u32>()
    }
}

pub(super) fn group_of(bytes: &[u8]) -> Option<u32> {
    bytes.last_chunk().map(|&number| u32::from_le_bytes(number))
}

pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes[at..].first_chunk::<8>();
    u64::from_le_bytes(*there(word, "a job without its head"))
}

pub(super) fn place_of(bytes: &[u8]) -> Place {
    match word(bytes, 0) >> PLACE_SHIFT & 7 {
        0 => Place::Scheduled,
        1 => Place::Reserved,
        2 => Place::Dead,
        3 => Place::Successor,
        _ => Place::Blocked,
    }
}

/// A place, as bits of word 0.
pub(super) fn bits_of(place: Place) -> u64 {
    (place as u64) << PLACE_SHIFT
}

/// The number of the terms that the job shares with others; `None` if it has its own.
#[inline]
pub(super) fn terms_of(bytes: &[u8]) -> Option<TermsRef> {
    let number = (word(bytes, 8) >> TERMS_SHIFT) as TermsRef;
    (number != OWN_TERMS).then_some(number)
}

/// The same, as bits of word 1.
pub(super) fn bits_of_terms(shared: Option<TermsRef>) -> u64 {
    u64::from(shared.unwrap_or(OWN_TERMS)) << TERMS_SHIFT
}

pub(super) fn id_len(bytes: &[u8]) -> usize {
    ((word(bytes, 0) >> ID_LEN_SHIFT) as usize & (ID_MAX - 1)) + 1
}

pub(super) fn id_of(bytes: &[u8]) -> &[u8] {
    &bytes[HEADER..HEADER + id_len(bytes)]
}

/// What changes while a job lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub place: Place,
    pub due: u64,
    pub life: Life,
}

/// The id of a job, hashed once, by the store of its queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Id<'a> {
    pub bytes: &'a [u8],
    pub(super) hash: u64,
}

impl<'a> Id<'a> {
    /// The id as a store with this hasher has it.
    pub fn of(bytes: &'a [u8], hasher: &RandomState) -> Self {
        let hash = hasher.hash_one(bytes);
        Id { bytes, hash }
    }

    /// The cursor at which a scan finds this id.
    pub fn cursor(self) -> u64 {
        crate::storage::table::rank_of(self.hash).into()
    }

    pub fn hash(self) -> u64 {
        self.hash
    }
}

/// A job about to be stored. No stored job may have its id, unless it is the successor of that job.
#[allow(missing_docs, reason = "called as in DQ.GET's reply")]
#[derive(Clone, Debug, Serialize)]
pub struct NewJob<'a> {
    #[serde(with = "serde_bytes")]
    pub id: &'a [u8],
    #[serde(with = "serde_bytes")]
    pub payload: &'a [u8],
    pub seq: u64,
    pub due: u64,
    pub place: Place,
    pub terms: &'a Terms<'a>,
    pub life: Life,
    pub failure: Option<Failure<'a>>,
    pub recurring: Option<(Rule<'a>, Occurrence)>,
    /// The name of its group.
    pub group: Option<&'a [u8]>,
    /// In a snapshot: the turn of its group, or of the jobs without one.
    pub turn: Option<u64>,
}

/// A job in the store: found once, then read.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) store: &'a Store,
}

impl<'a> NewJob<'a> {
    /// A job that came, with its due time and expiry.
    pub fn of(came: &'a Came<'_>, instants: (u64, u64)) -> Self {
        NewJob {
            group: came.group,
            ..NewJob::scheduled(came.id, came.payload, instants, &came.terms)
        }
    }

    /// How it is recorded.
    #[inline]
    pub(in crate::queue) fn came(&self, how: How<'a>) -> Came<'a> {
        Came {
            id: self.id,
            payload: self.payload,
            terms: self.terms.borrowed(),
            group: self.group,
            how,
        }
    }

    /// A job that was never delivered, with its due time and expiry. The queue sets its number in
    /// the order of adding.
    pub fn scheduled(
        id: &'a [u8],
        payload: &'a [u8],
        (due, expires): (u64, u64),
        terms: &'a Terms<'a>,
    ) -> Self {
        NewJob {
            id,
            payload,
            seq: 0,
            due,
            place: Place::Scheduled,
            terms,
            life: Life {
                expires,
                ..Life::default()
            },
            failure: None,
            recurring: None,
            group: None,
            turn: None,
        }
    }
}

impl NewJob<'_> {
    /// As [`Job::grace_ms`].
    pub fn grace_ms(&self) -> u64 {
        match &self.recurring {
            Some((rule, occurrence)) if !occurrence.delivered => rule.grace_ms,
            _ => 0,
        }
    }
}

impl<'a> Job<'a> {
    pub(super) fn word0(self) -> u64 {
        word(self.bytes, 0)
    }

    pub fn id(self) -> &'a [u8] {
        id_of(self.bytes)
    }

    pub fn payload(self) -> &'a [u8] {
        let end = self.bytes.len() - trailer_of(self.word0());
        &self.bytes[HEADER + id_len(self.bytes)..end]
    }

    /// The number of its group.
    #[inline]
    pub fn group(self) -> Option<u32> {
        let number = (trailer_of(self.word0()) > 0).then(|| group_of(self.bytes))?;
        Some(there(number, NO_TRAILER)).filter(|&number| number != NO_GROUP)
    }

    pub fn seq(self) -> u64 {
        word(self.bytes, 8) & SEQ_BITS
    }

    pub fn place(self) -> Place {
        place_of(self.bytes)
    }

    // Every command needs a part of it: where this is inlined, the rest is not computed.
    #[inline(always)]
    pub fn status(self) -> Status {
        let word0 = self.word0();
        let (due, life) = match self.store.rare(word0) {
            Some(rare) => (rare.due, rare.life()),
            None => (word0 & DUE_BITS, Life::default()),
        };
        Status {
            place: place_of(self.bytes),
            due,
            life,
        }
    }

    pub fn due(self) -> u64 {
        self.status().due
    }

    pub fn life(self) -> Life {
        self.status().life
    }

    pub fn failure(self) -> Option<Failure<'a>> {
        self.store.rare(self.word0())?.extra.as_ref()?.failure()
    }

    pub fn recurring(self) -> Option<&'a Recurring> {
        self.store.rare(self.word0())?.extra.as_ref()?.recurring()
    }

    /// How long after its due time an undelivered occurrence is skipped; 0 means never.
    pub fn grace_ms(self) -> u64 {
        self.recurring().map_or(0, Recurring::grace_ms)
    }

    pub fn terms(self) -> &'a Terms<'static> {
        match terms_of(self.bytes) {
            Some(shared) => self.store.terms.get(shared),
            None => self.own_terms(),
        }
    }

    #[cold]
    fn own_terms(self) -> &'a Terms<'static> {
        let rare = self.store.rare(self.word0());
        let own = rare.and_then(|rare| rare.extra.as_ref()?.terms());
        there(own, "a job without its own terms")
    }
}

impl Store {
    /// Overwrites the number of the group that a purged job has left.
    pub fn leave_group(&mut self, handle: Handle) {
        let bytes = there(self.slots.get_mut(handle), NO_JOB);
        let number = bytes.last_chunk_mut::<{ size_of::<u32>() }>();
        *there(number, NO_TRAILER) = NO_GROUP.to_le_bytes();
    }

    /// A job has a rare part exactly if there is something to keep in it.
    pub fn set_status(&mut self, handle: Handle, status: Status) {
        let Status { place, due, life } = status;
        must(due <= INSTANT_MAX, OUT_OF_BOUNDS);
        let bytes = there(self.slots.get_mut(handle), NO_JOB);
        let word0 = word(bytes, 0);
        let rare = (word0 & HAS_RARE != 0).then_some((word0 & DUE_BITS) as u32);
        let part = rare.map(|rare| there(self.rares.get_mut(rare), NO_RARE));
        let changed = match (rare, part) {
            (Some(rare), Some(part)) if life == Life::default() && part.extra.is_none() => {
                self.rares.remove(rare);
                word0 & !(DUE_BITS | HAS_RARE) | due
            }
            (_, Some(part)) => {
                part.due = due;
                part.set_life(life);
                if place == Place::Reserved && word0 & PLACE_BITS != bits_of(place) {
                    part.client = std::mem::take(&mut self.client);
                }
                word0
            }
            _ if life != Life::default() => {
                let client = std::mem::take(&mut self.client);
                with_rare(&mut self.rares, word0, Rare::new(due, life, client, None))
            }
            _ => word0 & !DUE_BITS | due,
        };
        let changed = changed & !PLACE_BITS | bits_of(place);
        bytes[..8].copy_from_slice(&changed.to_le_bytes());
    }

    /// Names the client of the next job that becomes reserved.
    #[inline]
    pub fn deliver_to(&mut self, client: u64) {
        self.client = client;
    }

    /// Names the client to which this reserved job was delivered.
    pub fn set_client(&mut self, handle: Handle, client: u64) {
        let word0 = word(self.bytes(handle), 0);
        there(self.rare_mut(word0), NO_RARE).client = client;
    }

    pub fn set_seq(&mut self, handle: Handle, seq: u64) {
        self.edit(handle, 8, |word| word & !SEQ_BITS | seq);
    }

    pub fn set_priority(&mut self, handle: Handle, priority: i32) {
        let Some(old) = terms_of(self.bytes(handle)) else {
            return self.edit_extra(handle, |parts| {
                there(parts.terms.as_mut(), NO_RARE).priority = priority;
            });
        };
        let terms = Terms {
            priority,
            ..self.terms.get(old).clone()
        };
        let new = self.terms.acquire(&terms, &*self.hasher);
        if new.is_none() {
            self.edit_extra(handle, |parts| parts.terms = Some(terms));
        }
        self.edit(handle, 8, |word1| word1 & SEQ_BITS | bits_of_terms(new));
        self.terms.release(old, &*self.hasher);
    }

    pub fn set_failure(&mut self, handle: Handle, failure: Failure<'_>) {
        self.edit_extra(handle, |parts| parts.failed = Some(failure.into()));
    }

    pub fn clear_failure(&mut self, handle: Handle) {
        if self.job(handle).failure().is_some() {
            self.edit_extra(handle, |parts| parts.failed = None);
        }
    }

    /// The job must have a rule.
    pub fn set_occurrence(&mut self, handle: Handle, occurrence: Occurrence) {
        let word0 = word(self.bytes(handle), 0);
        let extra = self.rare_mut(word0).and_then(|rare| rare.extra.as_mut());
        let recurring = extra.and_then(|extra| extra.recurring_mut());
        there(recurring, NO_RULE).occurrence = occurrence;
    }

    /// Notes that the current occurrence was delivered.
    pub fn note_delivered(&mut self, handle: Handle) {
        let occurrence = self.job(handle).recurring().map(|it| it.occurrence);
        if let Some(occurrence) = occurrence.filter(|occurrence| !occurrence.delivered) {
            let delivered = true;
            self.set_occurrence(
                handle,
                Occurrence {
                    delivered,
                    ..occurrence
                },
            );
        }
    }

    fn edit_extra(&mut self, handle: Handle, change: impl FnOnce(&mut Parts)) {
        let mut word0 = word(self.bytes(handle), 0);
        if word0 & HAS_RARE == 0 {
            let rare = Rare::new(word0 & DUE_BITS, Life::default(), 0, None);
            word0 = with_rare(&mut self.rares, word0, rare);
            self.edit(handle, 0, |_| word0);
        }
        let rare = there(self.rare_mut(word0), NO_RARE);
        let old = rare.extra.take();
        let before = old.as_ref().map_or(0, |extra| extra.heap_bytes());
        let mut parts = old.map_or(Parts::default(), |extra| extra.into_parts());
        change(&mut parts);
        rare.extra = Extra::of(parts);
        let after = rare.extra.as_ref().map_or(0, |extra| extra.heap_bytes());
        self.extra_bytes = self.extra_bytes + after - before;
    }

    pub(super) fn edit(&mut self, handle: Handle, at: usize, change: impl FnOnce(u64) -> u64) {
        let bytes = there(self.slots.get_mut(handle), NO_JOB);
        let changed = change(word(bytes, at));
        bytes[at..at + 8].copy_from_slice(&changed.to_le_bytes());
    }
}

/// The first word of a job that gets a rare part.
fn with_rare(rares: &mut Slab<Rare>, word0: u64, rare: Rare) -> u64 {
    let rare = rares.insert(rare);
    word0 & !DUE_BITS | u64::from(rare) | HAS_RARE
}

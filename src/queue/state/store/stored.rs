//! A job that is to be stored, and a stored job.

use super::head::{group_of, id_len, id_of, place_of, terms_of, trailer_of, word};
use super::head::{DUE_BITS, HEADER, NO_GROUP, NO_TRAILER, SEQ_BITS};
use super::rules::Recurring;
use super::Store;
use crate::queue::effect::{Came, How};
use crate::queue::job::{Failure, Life, Place, Terms};
use crate::queue::recurring::rule::{Occurrence, Rule};
use crate::storage::broken::there;
use ahash::RandomState;
use serde::Serialize;

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

//! Jobs in memory, found by id or by handle.
//!
//! ```text
//!   id ──hash──► IdTable ──► handle ──► slots[handle] ──► one allocation per job:
//!
//!      byte 0        8        16         16 + id length
//!        ├─────┬─────┼────────┼──────────┼───────────────┐
//!        │  word 0   │ word 1 │    id    │    payload    │
//!        └───────────┴────────┴──────────┴───────────────┘
//!   word 0: bits 0-41 due, or the number of the job's rare part; 42-51 id length - 1;
//!           52-53 place; 54 there is a rare part; 55 the rare part holds the terms
//!   word 1: bits 0-47 sequence (the order of adding); 48-63 terms
//!
//!   rares[number]: due, Life, and terms of its own where the pool is full
//! ```
//!
//! Most jobs are never in need of a rare part until they are delivered: 16 bytes beside id and
//! payload say all about them.

mod loading;
mod stored;

use super::job::{Handle, Life, Place, Terms, ID_MAX, INSTANT_MAX};
use super::relocate::{move_boxed, Mover};
use super::slab::Slab;
use super::table::bulk::Entries;
use super::table::IdTable;
use super::terms::TermsPool;
use crate::prefetch::prefetch_all;
use ahash::RandomState;
pub use stored::{Course, Id, Job, NewJob};

const HEADER: usize = 16;
/// Of what is longer the processor itself notices that it is read in turn.
const USUAL: usize = 192;
const DUE_BITS: u64 = INSTANT_MAX;
const ID_LEN_SHIFT: u32 = 42;
const PLACE_SHIFT: u32 = 52;
const HAS_RARE: u64 = 1 << 54;
const OWN_TERMS: u64 = 1 << 55;
const SEQ_BITS: u64 = (1 << 48) - 1;
const TERMS_SHIFT: u32 = 48;

#[derive(Clone, Debug)]
struct Rare {
    due: u64,
    life: Life,
    terms: Option<Box<Terms<'static>>>,
}

#[derive(Clone)]
pub struct Store {
    slots: Slab<Box<[u8]>>,
    rares: Slab<Rare>,
    table: IdTable,
    /// While there is no index yet: what will stand in it.
    unindexed: Option<Entries>,
    terms: TermsPool,
    hasher: RandomState,
    /// What the allocator gives for the jobs' own allocations.
    job_bytes: usize,
}

impl Store {
    pub fn new(hasher: RandomState) -> Self {
        Store {
            slots: Slab::new(),
            rares: Slab::new(),
            table: IdTable::new(),
            unindexed: None,
            terms: TermsPool::new(),
            hasher,
            job_bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn hasher(&self) -> &RandomState {
        &self.hasher
    }

    pub fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    pub fn hashed<'i>(&self, id: &'i [u8]) -> Id<'i> {
        Id {
            bytes: id,
            hash: self.hasher.hash_one(id),
        }
    }

    pub fn find(&self, id: Id<'_>) -> Option<Handle> {
        self.table
            .find(id.hash, |handle| self.job(handle).id() == id.bytes)
    }

    /// Has the index's memory on its way, in two steps, of which the second reads what the first
    /// has asked for.
    pub fn prefetch_shard(&self, id: Id<'_>) {
        self.table.prefetch_shard(id.hash);
    }

    pub fn prefetch_index(&self, id: Id<'_>) {
        self.table.prefetch_slots(id.hash);
    }

    /// The same for a job, as far as most are long.
    pub fn prefetch_slot(&self, handle: Handle) {
        self.slots.prefetch(handle);
    }

    pub fn prefetch_job(&self, handle: Handle) {
        let bytes = self.bytes(handle);
        prefetch_all(&bytes[..bytes.len().min(USUAL)]);
    }

    /// The caller has made sure of room, of the id's length and that it is not there.
    pub fn insert(&mut self, job: &NewJob<'_>, id: Id<'_>) -> Handle {
        debug_assert!((1..=ID_MAX).contains(&job.id.len()));
        debug_assert!(job.due <= INSTANT_MAX && job.seq <= SEQ_BITS);
        let shared = self.terms.acquire(job.terms, &self.hasher);
        let mut word0 =
            job.due | (job.id.len() as u64 - 1) << ID_LEN_SHIFT | (job.place as u64) << PLACE_SHIFT;
        let word1 = job.seq | u64::from(shared.unwrap_or(0)) << TERMS_SHIFT;
        if shared.is_none() || job.life != Life::default() {
            let rare = self.rares.insert(Rare {
                due: job.due,
                life: job.life,
                terms: shared
                    .is_none()
                    .then(|| Box::new(job.terms.clone().into_owned())),
            });
            let own = if shared.is_none() { OWN_TERMS } else { 0 };
            word0 = word0 & !DUE_BITS | u64::from(rare) | HAS_RARE | own;
        }
        let mut bytes = Vec::with_capacity(HEADER + job.id.len() + job.payload.len());
        bytes.extend_from_slice(&word0.to_le_bytes());
        bytes.extend_from_slice(&word1.to_le_bytes());
        bytes.extend_from_slice(job.id);
        bytes.extend_from_slice(job.payload);
        self.job_bytes += allocated(bytes.len());
        if shared.is_none() {
            self.job_bytes += own_bytes(job.terms);
        }
        let handle = self.slots.insert(bytes.into_boxed_slice());
        self.enter(id.hash, handle);
        handle
    }

    pub fn remove(&mut self, handle: Handle) {
        let Some(bytes) = self.slots.get(handle) else {
            debug_assert!(false, "a handle without a job");
            return;
        };
        let word0 = word(bytes, 0);
        let shared = (word(bytes, 8) >> TERMS_SHIFT) as u16;
        self.job_bytes -= allocated(bytes.len());
        let hash = self.hasher.hash_one(id_of(bytes));
        let indexed = self.table.remove(hash, handle);
        debug_assert!(indexed);
        if word0 & HAS_RARE != 0 {
            let rare = self.rares.remove((word0 & DUE_BITS) as u32);
            let own = rare.and_then(|rare| rare.terms);
            self.job_bytes -= own.map_or(0, |own| own_bytes(&own));
        }
        if word0 & OWN_TERMS == 0 {
            self.terms.release(shared);
        }
        self.slots.remove(handle);
    }

    fn bytes(&self, handle: Handle) -> &[u8] {
        self.slots.get(handle).map_or(&[], |bytes| bytes)
    }

    pub fn contains(&self, handle: Handle) -> bool {
        self.slots.get(handle).is_some()
    }

    pub fn job(&self, handle: Handle) -> Job<'_> {
        Job {
            bytes: self.bytes(handle),
            store: self,
        }
    }

    fn rare(&self, word0: u64) -> Option<&Rare> {
        (word0 & HAS_RARE != 0)
            .then(|| self.rares.get((word0 & DUE_BITS) as u32))
            .flatten()
    }

    fn rare_mut(&mut self, word0: u64) -> Option<&mut Rare> {
        (word0 & HAS_RARE != 0)
            .then(|| self.rares.get_mut((word0 & DUE_BITS) as u32))
            .flatten()
    }

    /// Keeps a rare part exactly where there is something to keep in it.
    pub fn set_course(&mut self, handle: Handle, course: Course) {
        let Course { place, due, life } = course;
        debug_assert!(due <= INSTANT_MAX);
        let mut word0 = word(self.bytes(handle), 0);
        if word0 & HAS_RARE != 0 && life == Life::default() && word0 & OWN_TERMS == 0 {
            self.rares.remove((word0 & DUE_BITS) as u32);
            word0 = word0 & !(DUE_BITS | HAS_RARE) | due;
        } else if let Some(rare) = self.rare_mut(word0) {
            (rare.due, rare.life) = (due, life);
        } else if life != Life::default() {
            word0 = self.with_rare(word0, due, life);
        } else {
            word0 = word0 & !DUE_BITS | due;
        }
        let word0 = word0 & !(3 << PLACE_SHIFT) | (place as u64) << PLACE_SHIFT;
        self.edit(handle, 0, |_| word0);
    }

    fn with_rare(&mut self, word0: u64, due: u64, life: Life) -> u64 {
        let rare = self.rares.insert(Rare {
            due,
            life,
            terms: None,
        });
        word0 & !DUE_BITS | u64::from(rare) | HAS_RARE
    }

    pub fn set_priority(&mut self, handle: Handle, priority: i32) {
        let bytes = self.bytes(handle);
        let (word0, old) = (word(bytes, 0), (word(bytes, 8) >> TERMS_SHIFT) as u16);
        if let Some(Rare {
            terms: Some(own), ..
        }) = self.rare_mut(word0)
        {
            own.priority = priority;
            return;
        }
        let terms = Terms {
            priority,
            ..self.terms.get(old).clone()
        };
        match self.terms.acquire(&terms, &self.hasher) {
            Some(new) => self.edit(handle, 8, |w| w & SEQ_BITS | u64::from(new) << TERMS_SHIFT),
            None => self.own_terms(handle, terms),
        }
        self.terms.release(old);
    }

    fn own_terms(&mut self, handle: Handle, terms: Terms<'static>) {
        let mut word0 = word(self.bytes(handle), 0);
        if word0 & HAS_RARE == 0 {
            word0 = self.with_rare(word0, word0 & DUE_BITS, Life::default());
        }
        self.job_bytes += own_bytes(&terms);
        if let Some(rare) = self.rare_mut(word0) {
            rare.terms = Some(Box::new(terms));
        }
        self.edit(handle, 0, |_| word0 | OWN_TERMS);
    }

    fn edit(&mut self, handle: Handle, at: usize, change: impl FnOnce(u64) -> u64) {
        if let Some(bytes) = self.slots.get_mut(handle) {
            let changed = change(word(bytes, at));
            bytes[at..at + 8].copy_from_slice(&changed.to_le_bytes());
        }
    }

    /// A job as it stands, for another store.
    pub fn as_new(&self, handle: Handle) -> NewJob<'_> {
        let job = self.job(handle);
        let Course { place, due, life } = job.course();
        NewJob {
            id: job.id(),
            payload: job.payload(),
            seq: job.seq(),
            due,
            place,
            terms: job.terms(),
            life,
        }
    }

    /// Frees about `count` jobs of a store that is not used any more; false at the end.
    pub fn shed(&mut self, count: usize) -> bool {
        self.slots.shed(count) || self.rares.shed(count) || self.table.shed(count)
    }

    /// See [`super::relocate`].
    pub fn relocate_jobs(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        self.slots.relocate(from, mover, move_boxed)
    }

    pub fn relocate_index(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        self.table.relocate(from, mover)
    }

    /// One step of a scan over all jobs: see [`IdTable::scan`].
    pub fn scan(&self, cursor: u64, visit: impl FnMut(Handle)) -> u64 {
        self.table.scan(cursor, visit)
    }

    pub fn memory_bytes(&self) -> usize {
        self.job_bytes
            + self.slots.memory_bytes()
            + self.rares.memory_bytes()
            + self.table.memory_bytes()
            + self.terms.memory_bytes()
    }

    pub fn check_invariants(&self) -> Result<(), String> {
        self.table
            .check_invariants(|handle| self.hasher.hash_one(self.job(handle).id()))?;
        if self.table.len() != self.slots.len() {
            return Err(format!(
                "{} ids for {} jobs",
                self.table.len(),
                self.slots.len()
            ));
        }
        let own = |handle| {
            let own = self
                .rare(word(self.bytes(handle), 0))
                .and_then(|rare| rare.terms.as_ref());
            own.map_or(0, |own| own_bytes(own))
        };
        let handles = self.table.handles();
        let bytes: usize = handles
            .map(|handle| allocated(self.bytes(handle).len()) + own(handle))
            .sum();
        if bytes != self.job_bytes {
            return Err(format!("{} bytes counted, {bytes} there", self.job_bytes));
        }
        if self.slots.len() == 0 && (self.job_bytes != 0 || self.rares.len() != 0) {
            return Err("an empty store that counts memory".into());
        }
        Ok(())
    }
}

/// What a usual size-class allocator spends on `len` bytes: steps of an eighth of the next power of
/// two, at least 16 bytes (jemalloc's classes; glibc's differ by a few bytes).
pub fn allocated(len: usize) -> usize {
    match len {
        0 => 0,
        1..=8 => 8,
        9..=128 => len.next_multiple_of(16),
        _ => len.next_multiple_of(len.next_power_of_two() >> 3),
    }
}

/// Terms that a job does not share.
fn own_bytes(terms: &Terms<'_>) -> usize {
    allocated(size_of::<Terms<'_>>()) + allocated(size_of_val(&*terms.backoff_ms))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|word| word.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

fn place_of(word0: u64) -> Place {
    match word0 >> PLACE_SHIFT & 3 {
        0 => Place::Scheduled,
        1 => Place::Reserved,
        _ => Place::Dead,
    }
}

fn id_len(bytes: &[u8]) -> usize {
    ((word(bytes, 0) >> ID_LEN_SHIFT) as usize & (ID_MAX - 1)) + 1
}

fn id_of(bytes: &[u8]) -> &[u8] {
    bytes.get(HEADER..HEADER + id_len(bytes)).unwrap_or(&[])
}

#[cfg(test)]
mod tests;

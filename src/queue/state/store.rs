//! Jobs in memory, found by id or by handle.
//!
//! ```text
//!   id ──hash──► IdTable ──► handle ──► its place in an arena:
//!
//!      byte 0        8        16         16 + id length
//!        ├─────┬─────┼────────┼──────────┼───────────────┬─────────┐
//!        │  word 0   │ word 1 │    id    │    payload    │ [group] │
//!        └───────────┴────────┴──────────┴───────────────┴─────────┘
//!   word 0: bits 0-41 due, or the number of the job's rare part; 42-51 id length - 1;
//!           52-54 place; 55 there is a rare part; 56 there is a successor; 57 there is a group,
//!           whose number stands behind the payload; 58-63 the arena's
//!   word 1: bits 0-46 sequence (the order of adding); 48-63 shared terms, all set: the rare part has own ones
//!
//!   rares[number]: due, Life, and what few jobs have: terms of its own where the pool is full, a failure, a rule
//! ```
//!
//! Most jobs need no rare part before they are delivered: 16 bytes beside id and payload say all about them.

mod extra;
mod noted;
mod prefetch;
mod stored;
mod successors;

use super::notes::NotesTable;
use super::terms::TermsPool;
use crate::queue::job::{Handle, Life, Place, ID_MAX, INSTANT_MAX};
pub use crate::storage::allocated::allocated;
use crate::storage::arena::Arena;
use crate::storage::broken::{must, there};
use crate::storage::lazy::{Lazy, Unused};
use crate::storage::relocate::Mover;
use crate::storage::slab::Slab;
use crate::storage::table::bulk::Entries;
use crate::storage::table::{IdTable, Near};
use ahash::RandomState;
use extra::{Extra, Parts, Rare, RulesPool};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use stored::{bits_of, bits_of_terms, content, id_of, place_of, terms_of, word};
pub use stored::{Id, Job, NewJob, Status};
use stored::{DUE_BITS, GROUPED, HAS_RARE, HEADER, ID_LEN_SHIFT, SEQ_BITS};

const NO_JOB: &str = "a handle without a job";
pub(super) const NO_RULE: &str = "a recurring job without its rule";
const NO_RARE: &str = "a job without its rare part";
const OUT_OF_BOUNDS: &str = "a number that leaves its bits";

#[derive(Clone)]
pub struct Store {
    slots: Arena,
    rares: Slab<Rare>,
    table: IdTable,
    /// Where the last search of the index ended: usually an insert or a removal follows there.
    near: Cell<Near>,
    /// While there is no index yet: its future entries.
    unindexed: Option<Box<Entries>>,
    /// The client to which a job is about to be delivered; 0 if none is, and by other servers.
    client: u64,
    terms: TermsPool,
    hasher: Arc<RandomState>,
    /// Bytes that the allocator gives for the `extra` of rare parts.
    extra_bytes: usize,
    /// Bytes of ids, payloads and steps.
    content_bytes: u64,
    cold: Lazy<Cold>,
}

/// What the jobs of few queues have.
#[derive(Clone, Default)]
struct Cold {
    successors: BTreeMap<Handle, Handle>,
    rules: RulesPool,
    notes: Lazy<NotesTable>,
}

impl Unused for Cold {
    const UNUSED: &'static Self = &Cold {
        successors: BTreeMap::new(),
        rules: RulesPool::new(),
        notes: Lazy::new(),
    };
}

impl Store {
    pub fn new(hasher: Arc<RandomState>) -> Self {
        Store {
            slots: Arena::new(),
            rares: Slab::new(),
            table: IdTable::new(),
            near: Cell::default(),
            unindexed: None,
            client: 0,
            terms: TermsPool::new(),
            hasher,
            extra_bytes: 0,
            content_bytes: 0,
            cold: Lazy::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn hasher(&self) -> &Arc<RandomState> {
        &self.hasher
    }

    pub fn has_room_for(&self, count: usize) -> bool {
        self.slots.has_room_for(count) && self.rares.has_room_for(count)
    }

    #[inline]
    fn enter(&mut self, hash: u64, handle: Handle) {
        match &mut self.unindexed {
            None => (self.table).insert_near(hash, handle, self.near.get()),
            Some(entries) => entries.push(hash, handle),
        }
    }

    /// Leaves an empty store without an index until [`Store::index`]: until then jobs are only inserted, not looked up
    /// or removed.
    pub fn leave_unindexed(&mut self) {
        debug_assert!(self.len() == 0);
        self.unindexed = Some(Box::default());
    }

    pub fn is_unindexed(&self) -> bool {
        self.unindexed.is_some()
    }

    /// Makes the index, once. False if two jobs have the same id: the store cannot be used then.
    pub fn index(&mut self) -> bool {
        let Some(entries) = self.unindexed.take() else {
            return true;
        };
        let table = entries.into_table(|a, b| self.job(a).id() == self.job(b).id());
        table.map(|table| self.table = table).is_some()
    }

    pub fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    /// Whether any job says a KEEP, or said one once.
    #[inline]
    pub fn says_keep(&self) -> bool {
        self.terms.says_keep
    }

    /// As [`Store::says_keep`], of a weight.
    #[inline]
    pub fn says_weight(&self) -> bool {
        self.terms.says_weight
    }

    /// What a delivery of this job counts.
    #[inline]
    pub fn weight_of(&self, handle: Handle) -> u32 {
        match self.says_weight() {
            true => self.job(handle).terms().rest.weight(),
            false => 1,
        }
    }

    pub fn hashed<'i>(&self, id: &'i [u8]) -> Id<'i> {
        Id {
            bytes: id,
            hash: self.hasher.hash_one(id),
        }
    }

    pub fn find(&self, id: Id<'_>) -> Option<Handle> {
        let is_it = |handle| self.job(handle).id() == id.bytes;
        let (found, at) = self.table.search(id.hash, is_it);
        self.near.set(at);
        found
    }

    /// The caller has checked that there is room, that the id's length is allowed and that no job has the id, unless
    /// this one is its successor.
    pub fn insert(&mut self, job: &NewJob<'_>, id: Id<'_>, group: Option<u32>) -> Handle {
        let fits = (1..=ID_MAX).contains(&job.id.len()) && job.due <= INSTANT_MAX;
        must(fits && job.seq <= SEQ_BITS, OUT_OF_BOUNDS);
        let shared = self.terms.acquire(job.terms, &*self.hasher);
        let id_len = (job.id.len() as u64 - 1) << ID_LEN_SHIFT;
        let mut word0 = job.due | id_len | bits_of(job.place);
        let word1 = job.seq | bits_of_terms(shared);
        let recurring = job.recurring.as_ref().map(|(rule, occurrence)| {
            self.cold
                .make()
                .rules
                .acquire(rule, *occurrence, &*self.hasher)
        });
        let has_more = job.failure.is_some() || recurring.is_some();
        if shared.is_none() || job.life != Life::default() || has_more {
            let extra = Extra::of(Parts {
                terms: shared.is_none().then(|| job.terms.clone().into_owned()),
                failed: job.failure.map(Into::into),
                recurring,
            });
            self.extra_bytes += extra.as_ref().map_or(0, |extra| extra.heap_bytes());
            let rare = self.rares.insert(Rare::new(job.due, job.life, 0, extra));
            word0 = word0 & !DUE_BITS | u64::from(rare) | HAS_RARE;
        }
        if group.is_some() {
            word0 |= GROUPED;
        }
        self.content_bytes += (job.id.len() + job.payload.len()) as u64;
        let mut head = [0; HEADER];
        head[..8].copy_from_slice(&word0.to_le_bytes());
        head[8..].copy_from_slice(&word1.to_le_bytes());
        let group = group.map(u32::to_le_bytes);
        let trailer = group.as_ref().map_or(&[][..], |group| &group[..]);
        let handle = (self.slots).insert([&head, job.id, job.payload, trailer]);
        if job.place != Place::Successor {
            self.enter(id.hash, handle);
        }
        handle
    }

    /// The job must have no successor: that is up to the caller.
    pub fn remove(&mut self, handle: Handle) {
        debug_assert!(self.successor(handle).is_none());
        if self.has_notes() {
            self.drop_notes(handle);
        }
        let bytes = there(self.slots.get(handle), NO_JOB);
        let word0 = word(bytes, 0);
        let shared = terms_of(bytes);
        self.content_bytes -= content(bytes);
        if place_of(bytes) != Place::Successor {
            // Usually the command has found it by its id.
            let indexed = self.table.remove_at(self.near.get(), handle)
                || (self.table).remove(self.hasher.hash_one(id_of(bytes)), handle);
            must(indexed, "a job that the index does not know");
        }
        if word0 & HAS_RARE != 0 {
            let rare = there(self.rares.remove((word0 & DUE_BITS) as u32), NO_RARE);
            let extra = rare.extra;
            self.extra_bytes -= extra.as_ref().map_or(0, |extra| extra.heap_bytes());
            if let Some(recurring) = extra.as_ref().and_then(|extra| extra.recurring()) {
                let cold = self.cold.make();
                cold.rules.release(&recurring.rule, &*self.hasher);
            }
        }
        if let Some(shared) = shared {
            self.terms.release(shared, &*self.hasher);
        }
        self.slots.remove(handle);
    }

    /// For tests: frees the job's memory, and leaves all that refers to it.
    #[cfg(any(test, feature = "breakable"))]
    pub fn lose(&mut self, handle: Handle) {
        self.slots.lose(handle);
    }

    fn bytes(&self, handle: Handle) -> &[u8] {
        there(self.slots.get(handle), NO_JOB)
    }

    /// Bytes of all ids, payloads and steps.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Whether jobs or notes lie so scattered that they should move. [`Store::misplaced`] names the jobs one by one.
    #[inline]
    pub fn is_scattered(&self) -> bool {
        self.slots.is_scattered()
            || self
                .cold
                .if_made()
                .is_some_and(|it| it.notes.is_scattered())
    }

    /// A job that should be moved; none once they lie densely again.
    pub fn misplaced(&mut self) -> Option<Handle> {
        self.slots.misplaced()
    }

    /// Moves a job that [`Store::misplaced`] named, and returns its new handle. The job must be on no list of its
    /// queue.
    pub fn move_misplaced(&mut self, old: Handle) -> Handle {
        let successor = self.take_successor(old);
        let is_successor = self.job(old).place() == Place::Successor;
        let hash = self.hasher.hash_one(self.job(old).id());
        let new = self.slots.move_misplaced(old);
        if self.has_notes() {
            self.move_notes(old, new);
        }
        if is_successor {
            let before = self.table.find(hash, |it| self.successor(it) == Some(old));
            let before = there(before, "a successor of no job");
            self.cold.make().successors.insert(before, new);
        } else {
            let indexed = self.table.remove(hash, old);
            must(indexed, "a job that the index does not know");
            self.table.insert(hash, new);
        }
        if let Some(successor) = successor {
            self.set_successor(new, successor);
        }
        new
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

    /// The client to which this reserved job was delivered, if that is known here.
    pub fn client_of(&self, handle: Handle) -> Option<u64> {
        let job = self.job(handle);
        let rare = self.rare(job.word0())?;
        (job.place() == Place::Reserved && rare.client != 0).then_some(rare.client)
    }

    fn rare(&self, word0: u64) -> Option<&Rare> {
        (word0 & HAS_RARE != 0).then(|| there(self.rares.get((word0 & DUE_BITS) as u32), NO_RARE))
    }

    fn rare_mut(&mut self, word0: u64) -> Option<&mut Rare> {
        (word0 & HAS_RARE != 0)
            .then(|| there(self.rares.get_mut((word0 & DUE_BITS) as u32), NO_RARE))
    }

    /// All jobs and successors, in no order.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        let successors = self.successors().map(|(_, next)| next);
        self.table.handles().chain(successors)
    }

    /// Jobs with a rule. After a purge of very many jobs, some are counted until they are freed.
    pub fn recurring_len(&self) -> usize {
        self.cold.rules.users()
    }

    pub fn recurs(&self, handle: Handle) -> bool {
        self.recurring_len() > 0 && self.job(handle).recurring().is_some()
    }

    /// A copy of a job for another store, without the name of its group, which is not known here.
    pub fn as_new(&self, handle: Handle) -> NewJob<'_> {
        let job = self.job(handle);
        let Status { place, due, life } = job.status();
        NewJob {
            id: job.id(),
            payload: job.payload(),
            seq: job.seq(),
            due,
            place,
            terms: job.terms(),
            life,
            failure: job.failure(),
            recurring: job
                .recurring()
                .map(|it| (it.rule.rule.borrowed(), it.occurrence)),
            group: None,
            turn: None,
        }
    }

    /// Frees about `count` jobs of a store that is not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        let successors = self.cold.made().map_or(0, |cold| {
            let gone = (0..count).map_while(|_| cold.successors.pop_first());
            gone.count()
        });
        successors > 0
            || (self.cold.made()).is_some_and(|cold| cold.free_some_notes(count))
            || self.slots.free_some(count)
            || self.rares.free_some(count)
            || self.table.free_some(count)
    }

    /// See [`crate::storage::relocate`].
    pub fn relocate_jobs(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        self.slots.relocate_pages(from, mover)
    }

    pub fn relocate_long_jobs(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        self.slots.relocate_long(from, mover)
    }

    pub fn relocate_extras(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        let visit = |rare: &mut Rare, mover: &mut _| {
            if let Some(extra) = &mut rare.extra {
                extra.relocate(mover);
            }
        };
        self.rares.relocate(from, mover, visit)
    }

    pub fn relocate_index(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        self.table.relocate(from, mover)
    }

    /// One step of a scan over all jobs: see [`IdTable::scan`].
    pub fn scan(&self, cursor: u64, visit: impl FnMut(Handle)) -> u64 {
        self.table.scan(cursor, visit)
    }

    /// The bytes that grow with the jobs, as known without a look at each.
    pub fn heap_bytes(&self) -> usize {
        self.extra_bytes
            + self.slots.memory_bytes()
            + self.table.memory_bytes()
            + NotesTable::memory_bytes(&self.cold.notes)
    }

    pub fn memory_bytes(&self) -> usize {
        self.heap_bytes()
            + self.rares.memory_bytes()
            + self.terms.memory_bytes()
            + self.cold.memory_bytes()
            + self.cold.rules.memory_bytes()
            + self.cold.notes.memory_bytes()
            // A node of this map holds up to eleven entries, and is at least half full.
            + self.successors_len() * 2 * size_of::<(Handle, Handle)>()
    }

    pub fn check_invariants(&self) -> Result<(), String> {
        self.table
            .check_invariants(|handle| self.hasher.hash_one(self.job(handle).id()))?;
        self.slots.check_invariants()?;
        self.check_successors()?;
        let rules = self.handles().filter_map(|it| self.job(it).recurring());
        self.cold.rules.check(rules, &*self.hasher)?;
        self.check_notes()?;
        if self.table.len() + self.successors_len() != self.slots.len() {
            return Err(format!(
                "{} ids for {} jobs, successors among them",
                self.table.len(),
                self.slots.len()
            ));
        }
        let extra = |handle| {
            let rare = self.rare(word(self.bytes(handle), 0));
            let extra = rare.and_then(|rare| rare.extra.as_ref());
            extra.map_or(0, |extra| extra.heap_bytes())
        };
        let successors = self.successors().map(|(_, next)| next);
        let (mut bytes, mut contents) = (0, 0);
        for handle in self.table.handles().chain(successors) {
            bytes += extra(handle);
            contents += content(self.bytes(handle)) + self.notes(handle).counted();
        }
        if (bytes, contents) != (self.extra_bytes, self.content_bytes) {
            return Err(format!(
                "{} bytes counted, {bytes} there; {} of content counted, {contents} there",
                self.extra_bytes, self.content_bytes
            ));
        }
        if self.slots.len() == 0 && (self.extra_bytes != 0 || self.rares.len() != 0) {
            return Err("an empty store that counts memory".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

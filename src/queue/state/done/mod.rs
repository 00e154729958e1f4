//! Jobs that are done and kept, apart from all others: a queue without them pays nothing for them, and whatever
//! orders, counts and serves jobs knows nothing of them.
//!
//! ```text
//!   id ──hash──► IdTable ──► handle ──► its bytes in an arena (slot.rs), which name what many share (interned.rs)
//!   by_end:    all handles, by the instant of their end, then in the order of ending
//!   by_until:  those that have a time, by the instant at which they go
//! ```
//!
//! Handles are valid here alone, not in the store of the other jobs. An id is in one of the two.

mod interned;
mod slot;

use super::bounds::{check_instant, malformed, CONTRADICTION};
use super::jobs::Jobs;
use super::store::Id;
use crate::queue::effect::{Completion, DoneJob, Effect, OfDone};
use crate::queue::error::QueueError;
use crate::queue::instant::NEVER;
use crate::queue::settings::DoneLimits;
use crate::storage::arena::Arena;
use crate::storage::broken::{must, there};
use crate::storage::lazy::Unused;
use crate::storage::ordered::Ordered;
use crate::storage::relocate::Mover;
use crate::storage::table::IdTable;
use ahash::RandomState;
use interned::{Interned, Shared};

pub use slot::DoneView;

/// How many jobs are moved closer together with each job that is removed.
const MOVED_WITH_EACH: usize = 2;
const NO_JOB: &str = "a handle without a done job";
const UNLISTED: &str = "a done job that is not where its bytes say";

/// See the picture above.
#[derive(Clone, Debug)]
pub struct Done {
    slots: Arena,
    table: IdTable,
    by_end: Ordered,
    by_until: Ordered,
    interned: Interned,
    /// Bytes of ids, payloads, results and progress.
    bytes: u64,
    /// Jobs without a KEEP.
    unkept: usize,
    /// How many of the longest done jobs are known to have a KEEP, all of them: the search for jobs without one goes on
    /// behind them.
    swept: usize,
    /// When the next job is to be removed, by its time or by a limit of the queue.
    pub wakes: u64,
}

impl std::fmt::Debug for IdTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ids", self.len())
    }
}

impl Default for Done {
    fn default() -> Self {
        Done::new()
    }
}

impl Unused for Done {
    const UNUSED: &'static Self = &Done::new();
}

impl Done {
    const fn new() -> Self {
        Done {
            slots: Arena::fine(),
            table: IdTable::new(),
            by_end: Ordered::new(),
            by_until: Ordered::new(),
            interned: Interned::new(),
            bytes: 0,
            unkept: 0,
            swept: 0,
            wakes: NEVER,
        }
    }

    pub fn len(&self) -> usize {
        self.by_end.len()
    }

    /// Bytes of ids, payloads, results and progress.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn has_room(&self) -> bool {
        self.slots.has_room_for(1) && self.interned.has_room()
    }

    /// Whether the longest done job is to be removed by DONELEN or DONEBYTES.
    pub fn exceeds(&self, limits: DoneLimits) -> bool {
        let (len, bytes) = (self.len() as u64, self.bytes);
        (limits.len != 0 && len > limits.len) || (limits.bytes != 0 && bytes > limits.bytes)
    }

    /// How many of the longest done jobs are beyond DONELEN or DONEBYTES, counted up to `most`.
    pub fn beyond(&self, limits: DoneLimits, most: usize) -> usize {
        let (mut len, mut bytes) = (self.len() as u64, self.bytes);
        let is_beyond = |&handle: &u32| {
            let is_beyond = (limits.len != 0 && len > limits.len)
                || (limits.bytes != 0 && bytes > limits.bytes);
            (len, bytes) = (len - 1, bytes - self.get(handle).bytes());
            is_beyond
        };
        self.iter().take(most).take_while(is_beyond).count()
    }

    /// Whether a done job is to be removed at once, whatever its time.
    pub fn has_surplus(&self, limits: DoneLimits) -> bool {
        self.exceeds(limits) || (!limits.any() && self.unkept > 0)
    }

    /// When the next job is to be removed, by its time or by a limit.
    pub fn wakes_at(&self, limits: DoneLimits) -> u64 {
        match self.has_surplus(limits) {
            true => 0,
            false => self.first_until().map_or(NEVER, |(at, _)| at),
        }
    }

    /// Whether a job may be kept that ends so.
    pub fn check_end(&self, end: &Completion<'_>) -> Result<(), QueueError> {
        check_instant(end.finished)?;
        check_instant(end.until)?;
        if end.until != 0 && end.until < end.finished {
            return Err(malformed("a done job that goes before its end"));
        }
        match self.has_room() {
            true => Ok(()),
            false => Err(QueueError::TooManyJobs),
        }
    }

    /// Whether no job has the id of another one, where that could not be checked before.
    pub fn check_apart(&self, jobs: &Jobs) -> Result<(), QueueError> {
        let is_elsewhere = |it| jobs.find(jobs.hashed(self.get(it).id)).is_some();
        match self.iter().any(is_elsewhere) {
            true => Err(malformed(CONTRADICTION)),
            false => Ok(()),
        }
    }

    pub fn find(&self, id: Id<'_>) -> Option<u32> {
        let is_it = |handle| slot::id_of(self.slot(handle)) == id.bytes;
        self.table.find(id.hash(), is_it)
    }

    fn slot(&self, handle: u32) -> &[u8] {
        there(self.slots.get(handle), NO_JOB)
    }

    pub fn get(&self, handle: u32) -> DoneView<'_> {
        slot::read(self.slot(handle), &self.interned)
    }

    fn finished(&self, handle: u32) -> u64 {
        slot::finished(self.slot(handle))
    }

    fn until(&self, handle: u32) -> u64 {
        until_in(&self.slots, &self.interned, handle)
    }

    /// The job that has been done longest.
    pub fn first(&self) -> Option<u32> {
        self.by_end.first()
    }

    /// When the next job is removed by its time, and its handle.
    pub fn first_until(&self) -> Option<(u64, u32)> {
        let first = self.by_until.first()?;
        Some((self.until(first), first))
    }

    /// How many jobs have outlived their time at this instant.
    pub fn over_by(&self, instant: u64) -> usize {
        self.by_until.count_up_to(instant, |it| self.until(it))
    }

    /// All jobs in the order of ending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_end.iter()
    }

    /// All jobs in the order of ending, as a snapshot has them, with numbers that `seq_of` makes of theirs.
    pub fn effects<'a>(
        &'a self,
        seq_of: impl Fn(u64) -> u64 + 'a,
    ) -> impl Iterator<Item = Effect<'a>> {
        let stored = move |it| {
            let mut job = self.get(it).stored();
            job.seq = seq_of(job.seq);
            Effect::Done(OfDone::Stored(job))
        };
        self.iter().map(stored)
    }

    /// Jobs that ended at this instant or later, in the order of ending.
    pub fn iter_from(&self, instant: u64) -> impl Iterator<Item = u32> + '_ {
        self.by_end.iter_from(instant, |it| self.finished(it))
    }

    /// The caller has checked that there is room, that the job is within bounds, and that its id is nowhere in the
    /// queue.
    pub fn insert(&mut self, job: &DoneJob<'_>, id: Id<'_>, hasher: &RandomState) {
        debug_assert!(self.find(id).is_none());
        let shared = Shared {
            terms: job.terms.clone().into_owned(),
            group: job.group.map(Box::from),
            stay: (job.until != 0).then(|| job.until - job.finished),
        };
        let has_until = shared.stay.is_some();
        let shared = self.interned.acquire(shared, hasher);
        let mut head = Vec::with_capacity(48);
        slot::head(job, shared, &mut head);
        let handle = self.slots.insert([
            &head[..],
            job.id,
            job.payload,
            job.result.unwrap_or_default(),
            job.notes,
        ]);
        self.bytes += job.bytes();
        if job.terms.rest.keep_ms().is_none() {
            self.unkept += 1;
            self.swept = 0;
        }
        self.table.insert(id.hash(), handle);
        let (slots, interned) = (&self.slots, &self.interned);
        self.by_end.insert(handle, |it| finished_in(slots, it));
        if has_until {
            let until = |it| until_in(slots, interned, it);
            self.by_until.insert(handle, until);
        }
    }

    pub fn remove(&mut self, handle: u32, hasher: &RandomState) {
        let job = self.get(handle);
        let hash = hasher.hash_one(job.id);
        let (has_until, is_kept) = (
            job.shared.stay.is_some(),
            job.shared.terms.rest.keep_ms().is_some(),
        );
        let bytes = job.bytes();
        let shared = slot::shared_of(self.slot(handle));
        let (slots, interned) = (&self.slots, &self.interned);
        let mut listed = self.by_end.remove(handle, |it| finished_in(slots, it));
        if has_until {
            let until = |it| until_in(slots, interned, it);
            listed &= self.by_until.remove(handle, until);
        }
        must(listed & self.table.remove(hash, handle), UNLISTED);
        self.bytes -= bytes;
        match is_kept {
            true => self.swept = self.swept.saturating_sub(1),
            false => self.unkept -= 1,
        }
        self.interned.release(shared, hasher);
        self.slots.remove(handle);
        self.gather(hasher);
    }

    /// Moves a few jobs of nearly empty pages together. Their handles change: nobody holds one.
    fn gather(&mut self, hasher: &RandomState) {
        for _ in 0..MOVED_WITH_EACH {
            let Some(old) = self.slots.misplaced() else {
                return;
            };
            let hash = hasher.hash_one(self.get(old).id);
            let new = self.slots.move_misplaced(old);
            // The old handle has no job now: the lists read the keys of the new one instead.
            let slots = &self.slots;
            let now_at = |it| if it == old { new } else { it };
            let finished = |it| finished_in(slots, now_at(it));
            let mut listed = self.by_end.renumber(old, new, finished);
            if self.get(new).shared.stay.is_some() {
                let (slots, interned) = (&self.slots, &self.interned);
                let until = |it| until_in(slots, interned, now_at(it));
                listed &= self.by_until.renumber(old, new, until);
            }
            must(listed & self.table.remove(hash, old), UNLISTED);
            self.table.insert(hash, new);
        }
    }

    /// The longest done job without a KEEP, if it is found within `looks` jobs; and how many were looked at.
    pub fn next_unkept(&mut self, looks: usize) -> (Option<u32>, usize) {
        let from = self.by_end.iter_at(self.swept).take(looks);
        let (mut found, mut looked_at) = (None, 0);
        for handle in from {
            looked_at += 1;
            if self.get(handle).shared.terms.rest.keep_ms().is_none() {
                found = Some(handle);
                break;
            }
        }
        self.swept += looked_at - usize::from(found.is_some());
        (found, looked_at.max(1))
    }

    /// One step of a scan: see [`IdTable::scan`].
    pub fn scan(&self, cursor: u64, visit: impl FnMut(u32)) -> u64 {
        self.table.scan(cursor, visit)
    }

    /// Gives the jobs other numbers in the order of adding.
    pub fn number_anew(&mut self, rank: impl Fn(u64) -> u64, hasher: &RandomState) {
        let mut anew = Done::new();
        for handle in self.by_end.iter() {
            let job = self.get(handle).stored();
            let id = Id::of(job.id, hasher);
            let seq = rank(job.seq);
            anew.insert(&DoneJob { seq, ..job }, id, hasher);
        }
        anew.wakes = self.wakes;
        *self = anew;
    }

    /// Frees about `count` jobs that are not used any more; false at the end.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.slots.free_some(count)
            || self.table.free_some(count)
            || self.by_end.free_some(count)
            || self.by_until.free_some(count)
            || self.interned.free_some(count)
    }

    /// See [`crate::storage::relocate`].
    pub fn relocate(&mut self, part: u64, from: u32, mover: &mut impl Mover) -> Option<u32> {
        match part {
            0 => self.slots.relocate_pages(from, mover),
            1 => self.slots.relocate_long(from, mover),
            2 => self.table.relocate(from, mover),
            3 => self.by_end.relocate(from, mover),
            _ => self.by_until.relocate(from, mover),
        }
    }

    /// Without the lists, and what jobs share.
    pub fn heap_bytes(&self) -> usize {
        self.slots.memory_bytes() + self.table.memory_bytes()
    }

    pub fn memory_bytes(&self) -> usize {
        self.heap_bytes()
            + self.by_end.memory_bytes()
            + self.by_until.memory_bytes()
            + self.interned.memory_bytes()
    }

    pub fn check_invariants(&self, hasher: &RandomState) -> Result<(), String> {
        self.slots.check_invariants()?;
        let hash_of = |it| hasher.hash_one(self.get(it).id);
        self.table.check_invariants(hash_of)?;
        self.by_end.check_invariants(|it| self.finished(it))?;
        self.by_until.check_invariants(|it| self.until(it))?;
        let (mut bytes, mut unkept, mut timed) = (0, 0, 0);
        for handle in self.by_end.iter() {
            let job = self.get(handle);
            bytes += job.bytes();
            unkept += usize::from(job.shared.terms.rest.keep_ms().is_none());
            timed += usize::from(job.shared.stay.is_some());
        }
        let swept = self.by_end.iter().take(self.swept);
        if swept
            .map(|it| self.get(it))
            .any(|it| it.shared.terms.rest.keep_ms().is_none())
        {
            return Err("a done job without KEEP that nobody looks for".into());
        }
        let counted = (self.bytes, self.unkept, self.by_until.len());
        if (bytes, unkept, timed) != counted || self.slots.len() != self.len() {
            return Err(format!(
                "{bytes} bytes of done jobs, counted are {counted:?}"
            ));
        }
        self.interned.check_users(self.len())
    }
}

fn finished_in(slots: &Arena, handle: u32) -> u64 {
    slot::finished(there(slots.get(handle), NO_JOB))
}

fn until_in(slots: &Arena, interned: &Interned, handle: u32) -> u64 {
    let bytes = there(slots.get(handle), NO_JOB);
    let stay = interned.get(slot::shared_of(bytes)).stay;
    stay.map_or(0, |stay| slot::finished(bytes) + stay)
}

//! The jobs: what the store keeps of each, and on which lists they stand. All other parts know them; they know none.
//!
//! ```text
//!   store       every job, by its id                                       store.rs
//!   schedule    delayed and ready ones                                     schedule.rs
//!   reserved    by (deadline, order of adding), a list for each Fate       split.rs, position.rs
//!   dead        by (instant of death, order of dying)
//!   blocked     in the order of adding
//!   expiring    by TTL or GRACE, a list for each Expiry
//!   late        those whose TTL expires before they are due, by their due times
//!   followed    those that have a successor                                followed.rs
//!   purges      purged jobs, until they are freed                          purged.rs
//! ```
//!
//! What the store says of one job, the jobs say: they deref to it. At the end: what is prefetched of jobs that come next.

mod check;
mod free;
mod noted;
mod places;
mod purges;

use super::followed::Followed;
use super::position::{end_of, Position};
use super::purged::PurgedJobs;
use super::schedule::{OrderKey, Schedule};
use super::split::Split;
use super::store::{Id, Job, Status, Store};
use crate::queue::clock::Now;
use crate::queue::job::{Handle, Place, INSTANT_MAX};
use crate::storage::lazy::{Lazy, Unused};
use crate::storage::skiplist::{InsertHint, Skiplist};
use ahash::RandomState;
pub use places::Moving;
pub use purges::Freed;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// See the picture above.
pub struct Jobs {
    store: Store,
    schedule: Schedule,
    reserved: Split<3>,
    dead: Lazy<Skiplist<u64>>,
    /// A reserved job ends its lease first; one that expires with its lease is on none of these lists.
    expiring: Split<4>,
    cold: Lazy<Cold>,
    pub(super) numbers: Numbers,
}

/// The last numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// In the order of adding.
    pub seq: u64,
    /// In the order of dying.
    pub deaths: u64,
    /// The largest token.
    pub token: u64,
}

impl Numbers {
    pub fn raise_to(&mut self, seq: u64, death: u64, token: u64) {
        self.seq = self.seq.max(seq);
        self.deaths = self.deaths.max(death);
        self.token = self.token.max(token);
    }
}

/// What few queues have.
#[derive(Default)]
struct Cold {
    blocked: Skiplist<u64>,
    late: Skiplist<u64>,
    followed: Followed,
    /// Purged, and not yet freed.
    purges: Vec<PurgedJobs>,
    /// Bytes of the ids and payloads of purged jobs, as far as they were counted.
    purged_bytes: u64,
}

impl Unused for Cold {
    const UNUSED: &'static Self = &Cold {
        blocked: Skiplist::new(),
        late: Skiplist::new(),
        followed: Followed::new(),
        purges: Vec::new(),
        purged_bytes: 0,
    };
}

impl Deref for Jobs {
    type Target = Store;
    #[inline(always)]
    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for Jobs {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl Jobs {
    pub fn new(hasher: Arc<RandomState>) -> Self {
        Jobs {
            store: Store::new(hasher),
            schedule: Schedule::default(),
            reserved: Split::new(),
            dead: Lazy::new(),
            expiring: Split::new(),
            cold: Lazy::new(),
            numbers: Numbers::default(),
        }
    }

    /// Whether they are delayed, ready, reserved and dead ones alone, without successors, and none are purged.
    #[inline(always)]
    pub fn are_plain(&self) -> bool {
        !self.cold.is_made()
    }

    /// All jobs, and none of those that were purged; the numbers go on.
    pub fn copied(&self) -> Self {
        debug_assert!(!self.has_purged());
        let mut copy = Jobs {
            store: self.store.clone(),
            schedule: self.schedule.clone(),
            reserved: self.reserved.clone(),
            dead: self.dead.clone(),
            expiring: self.expiring.clone(),
            cold: Lazy::new(),
            numbers: self.numbers,
        };
        if !self.late().is_empty() {
            copy.cold.make().late = self.late().clone();
        }
        if !self.blocked().is_empty() {
            copy.cold.make().blocked = self.blocked().clone();
        }
        if self.followed().len() > 0 {
            copy.cold.make().followed = self.followed().clone();
        }
        copy
    }

    /// Takes out all of them, as if there had never been any. The numbers go on.
    pub fn take(&mut self) -> Self {
        let mut none = Jobs::new(self.hasher().clone());
        none.numbers = self.numbers;
        std::mem::replace(self, none)
    }

    /// All jobs except successors, list by list in their orders.
    pub fn in_order(&self) -> impl Iterator<Item = Handle> + '_ {
        let scheduled = self.schedule.by_due(0, |it| self.seq(it));
        let lists = scheduled
            .chain(self.leases_from(0))
            .chain(self.dead.iter())
            .chain(self.blocked().iter());
        lists.map(|(_, handle)| handle)
    }

    /// The job with this id, in any state, unless it was purged.
    pub fn find(&self, id: Id<'_>) -> Option<Handle> {
        let found = self.store.find(id);
        found.filter(|&handle| !self.is_purged(handle))
    }

    /// The job with this id, even a purged one.
    pub fn find_any(&self, id: Id<'_>) -> Option<Handle> {
        self.store.find(id)
    }

    /// Whether there is a purged job left to free.
    #[inline]
    pub fn has_purged(&self) -> bool {
        self.cold.if_made().is_some_and(|it| !it.purges.is_empty())
    }

    pub fn is_purged(&self, handle: Handle) -> bool {
        self.has_purged() && self.purge_of(handle).is_some()
    }

    /// A job's number in the order of adding.
    #[inline]
    pub fn seq(&self, handle: Handle) -> u64 {
        self.store.job(handle).seq()
    }

    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub fn reserved(&self) -> &Split<3> {
        &self.reserved
    }

    /// Leases by (deadline, order of adding), from the instant `from` on.
    pub fn leases_from(&self, from: u64) -> impl Iterator<Item = (u64, Handle)> + '_ {
        self.reserved.iter_from(from, |it| self.seq(it))
    }

    pub fn first_lease(&self) -> Option<(u64, Handle)> {
        self.reserved.first(|it| self.seq(it))
    }

    pub fn first_ttl(&self) -> Option<(u64, Handle)> {
        self.expiring.first(|it| self.seq(it))
    }

    pub fn dead(&self) -> &Skiplist<u64> {
        &self.dead
    }

    pub fn expiring(&self) -> &Split<4> {
        &self.expiring
    }

    /// Jobs whose TTL expires before they are due, by their due times.
    pub fn late(&self) -> &Skiplist<u64> {
        &self.cold.late
    }

    pub fn followed(&self) -> &Followed {
        &self.cold.followed
    }

    pub fn blocked(&self) -> &Skiplist<u64> {
        &self.cold.blocked
    }

    /// How many jobs are blocked.
    #[inline]
    pub fn blocked_len(&self) -> usize {
        self.cold.if_made().map_or(0, |cold| cold.blocked.len())
    }

    /// Blocked, delayed, ready and reserved jobs: what MAXLEN limits.
    pub fn live_len(&self) -> usize {
        self.schedule.len() + self.reserved.len() + self.blocked_len()
    }

    /// How many stand on a list.
    pub fn listed_len(&self) -> usize {
        self.live_len() + self.dead.len()
    }

    /// Bytes of ids, payloads and steps; of purged jobs those that were not counted yet.
    pub fn bytes(&self) -> u64 {
        self.store
            .content_bytes()
            .saturating_sub(self.cold.purged_bytes)
    }

    /// Bytes of purged jobs that are not freed yet, as far as they are known.
    pub fn purged_bytes(&self) -> u64 {
        self.cold.purged_bytes
    }

    pub fn position(&self, handle: Handle) -> Position {
        self.position_of(self.store.job(handle))
    }

    #[inline]
    pub fn position_of(&self, job: Job<'_>) -> Position {
        let (terms, recurring) = (job.terms(), job.recurring());
        Position {
            status: job.status(),
            priority: terms.priority,
            grace_ms: recurring.map_or(0, |recurring| recurring.grace_ms()),
            recurs: recurring.is_some(),
            max_attempts: terms.max_attempts,
        }
    }

    fn order_key(&self, handle: Handle) -> (OrderKey, bool) {
        let job = self.store.job(handle);
        let order_key = OrderKey {
            priority: job.terms().priority,
            due: job.due(),
        };
        (order_key, job.group().is_some())
    }

    pub fn is_ready(&self, handle: Handle, now: Now) -> bool {
        let job = self.store.job(handle);
        job.place() == Place::Scheduled && job.due() <= now.ms()
    }

    pub fn is_blocked(&self, handle: Handle) -> bool {
        self.store.job(handle).place() == Place::Blocked
    }

    /// When the job expires, or its occurrence ends, by TTL or GRACE, unless it is reserved; 0 means never.
    pub fn end_of(&self, handle: Handle) -> u64 {
        let job = self.store.job(handle);
        let Status { due, life, .. } = job.status();
        end_of(due, life.expires, job.grace_ms())
    }

    /// When GRACE ends an occurrence that was never delivered.
    pub fn skipped_at(&self, handle: Handle) -> Option<u64> {
        let job = self.store.job(handle);
        let grace_ms = job.grace_ms();
        (grace_ms != 0).then(|| (job.due() + grace_ms).min(INSTANT_MAX))
    }

    /// The next due time that has not come yet; not the last instant, which means never. The timer must fire then if a
    /// client subscribes to dq.ready.
    pub fn next_due(&self, now: Now) -> Option<u64> {
        let due = self.schedule.next_due(now.ms());
        due.filter(|&due| due < INSTANT_MAX)
    }

    /// Whether a due time came after `since_ms` and has come by now.
    pub fn became_ready(&self, since_ms: u64, now: Now) -> bool {
        let ready = |at| self.schedule.ready_len(at);
        ready(now.ms()) > ready(since_ms)
    }

    /// The ready jobs, and until when their number stays: see [`Schedule::count_ready`].
    #[inline]
    pub fn count_ready(&mut self, now: Now) -> (usize, u64) {
        self.schedule.count_ready(now.ms())
    }

    /// The largest token that the queue has seen.
    pub fn token_floor(&self) -> u64 {
        self.numbers.token
    }

    /// The largest number in the orders of adding and of dying.
    pub fn order_floor(&self) -> u64 {
        self.numbers.seq.max(self.numbers.deaths)
    }

    /// Gives all jobs the numbers that `seq` and `death` make of theirs, in the same orders.
    pub fn number_anew(&mut self, seq: impl Fn(u64) -> u64, death: impl Fn(u64) -> u64) {
        let handles: Vec<Handle> = self.store.handles().collect();
        for handle in handles {
            let mut status = self.store.job(handle).status();
            if status.place == Place::Dead {
                status.life.death = death(status.life.death);
                self.store.set_status(handle, status);
            }
            self.store.set_seq(handle, seq(self.seq(handle)));
        }
        if self.blocked_len() > 0 {
            self.list_blocked_anew();
        }
    }

    /// Heap bytes.
    pub fn memory_bytes(&self) -> usize {
        let purges = self.cold.purges.iter().map(PurgedJobs::memory_bytes);
        self.store.memory_bytes()
            + self.schedule.memory_bytes()
            + self.reserved.memory_bytes()
            + self.dead.memory_bytes()
            + Skiplist::memory_bytes(&self.dead)
            + self.expiring.memory_bytes()
            + self.cold.memory_bytes()
            + self.cold.blocked.memory_bytes()
            + self.cold.late.memory_bytes()
            + self.cold.followed.memory_bytes()
            + purges.sum::<usize>()
    }
}

// For each job a command reads places scattered over the memory, each of which leads to the next: the shard of the
// index and its slots; the nodes of the schedule; the slot of the handle and the job. In a large queue each read
// waits for memory, as long as hundreds of instructions take. Two of these chains are followed here in turns: what
// one has prefetched arrives during a step of the other.

/// Fewer jobs, some 10 MB, are in the processor's cache anyway. Tests prefetch with almost any number.
const MANY: usize = if cfg!(debug_assertions) { 3 } else { 65_536 };

impl Jobs {
    #[inline(always)]
    fn are_many(&self) -> bool {
        self.len() >= MANY
    }

    /// For a job about to be added, as soon as its id is known.
    #[inline(always)]
    pub fn prefetch_id(&self, id: &[u8]) {
        if self.are_many() {
            self.prefetch_shard_of(id);
        }
    }

    #[inline(never)]
    fn prefetch_shard_of(&self, id: &[u8]) {
        self.prefetch_shard(self.hashed(id));
    }

    /// For jobs that will be added soon: `far` is one whose turn is far, `near` one that was `far` before, so that its
    /// shard has been prefetched.
    pub(in crate::queue) fn prefetch_ids(&self, far: Option<Id<'_>>, near: Option<Id<'_>>) {
        let jobs = self;
        if jobs.are_many() {
            far.into_iter().for_each(|id| jobs.prefetch_shard(id));
            near.into_iter().for_each(|id| jobs.prefetch_index(id));
        }
    }

    /// For a job about to be added, as soon as its due time is known: prefetches and returns its insert hint for the
    /// schedule, and prefetches its part of the index.
    #[inline(always)]
    pub(in crate::queue) fn prefetch_added(
        &self,
        id: Option<Id<'_>>,
        at: OrderKey,
        is_grouped: bool,
    ) -> Option<InsertHint<u64>> {
        match self.are_many() {
            true => self.prefetch_place(id, at, is_grouped),
            false => None,
        }
    }

    #[inline(never)]
    fn prefetch_place(
        &self,
        id: Option<Id<'_>>,
        at: OrderKey,
        is_grouped: bool,
    ) -> Option<InsertHint<u64>> {
        let hint = self.schedule().insert_hint(at, is_grouped);
        id.inspect(|&id| self.prefetch_index(id));
        hint
    }

    /// For reserved jobs that a command names. Each step is done for all jobs before the next step, which reads what
    /// the step before has prefetched.
    pub(in crate::queue) fn prefetch_named<'i>(&self, ids: impl Iterator<Item = Id<'i>> + Clone) {
        let jobs = self;
        if !jobs.are_many() {
            return;
        }
        ids.clone().for_each(|id| jobs.prefetch_shard(id));
        ids.clone().for_each(|id| jobs.prefetch_find(id));
        let handles: Vec<Handle> = ids.filter_map(|id| jobs.likely(id)).collect();
        handles.iter().for_each(|&job| jobs.prefetch_slot(job));
        handles.iter().for_each(|&job| jobs.prefetch_head(job));
        handles.iter().for_each(|&job| jobs.prefetch_rare(job));
    }

    /// For the deliveries after this one: the next job, and the slot of the job behind it.
    #[inline(always)]
    pub(in crate::queue) fn prefetch_following(&self) {
        if self.are_many() {
            self.prefetch_leading();
        }
    }

    #[inline(never)]
    fn prefetch_leading(&self) {
        if let [next, behind, ..] = *self.schedule().leading() {
            self.prefetch_slot(behind);
            self.prefetch_job(next);
        }
    }
}

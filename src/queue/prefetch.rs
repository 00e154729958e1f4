//! Prefetching the memory of jobs.
//!
//! For each job a command reads places scattered over the memory, each of which leads to the next: the shard of the
//! index and its slots; the nodes of the schedule; the slot of the handle and the job. In a large queue each read
//! waits for memory, as long as hundreds of instructions take. Two of these chains are followed here in turns: what
//! one has prefetched arrives during a step of the other.

use super::job::Handle;
use super::state::jobs::Jobs;
use super::state::schedule::OrderKey;
use super::state::store::Id;
use crate::storage::skiplist::InsertHint;

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
    pub(super) fn prefetch_ids(&self, far: Option<Id<'_>>, near: Option<Id<'_>>) {
        let jobs = self;
        if jobs.are_many() {
            far.into_iter().for_each(|id| jobs.prefetch_shard(id));
            near.into_iter().for_each(|id| jobs.prefetch_index(id));
        }
    }

    /// For a job about to be added, as soon as its due time is known: prefetches and returns its insert hint for the
    /// schedule, and prefetches its part of the index.
    #[inline(always)]
    pub(super) fn prefetch_added(
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
    pub(super) fn prefetch_named<'i>(&self, ids: impl Iterator<Item = Id<'i>> + Clone) {
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
    pub(super) fn prefetch_following(&self) {
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

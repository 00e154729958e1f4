//! What is left of a removed queue, or of the part of a queue that was purged. It is freed in small steps, because a
//! million jobs at once would hold up the server for a tenth of a second.

use super::dedupe::DedupeWindow;
use super::done::Done;
use super::flows::Flows;
use super::groups::Groups;
use super::jobs::Jobs;
use super::purged::LISTED_BYTES;
use super::rate::group::GroupRates;
use crate::storage::lazy::Lazy;
use ahash::RandomState;
use std::sync::Arc;

/// Nothing refers to it any more.
pub struct Garbage {
    pub(super) jobs: Jobs,
    pub(super) dedupe: Lazy<DedupeWindow>,
    pub(super) done: Lazy<Done>,
    pub(super) groups: Option<Box<Groups>>,
    pub(super) group_rates: Option<Box<GroupRates>>,
    pub(super) flows: Option<Box<Flows>>,
    /// Garbage that the queue had set aside itself.
    pub(super) older: Vec<Garbage>,
}

impl Garbage {
    pub(super) fn none(hasher: Arc<RandomState>) -> Self {
        Garbage {
            jobs: Jobs::new(hasher),
            dedupe: Lazy::new(),
            done: Lazy::new(),
            groups: None,
            group_rates: None,
            flows: None,
            older: Vec::new(),
        }
    }

    /// How many jobs and ids are left.
    pub fn left(&self) -> usize {
        let older: usize = self.older.iter().map(Garbage::left).sum();
        let windows = self.group_rates.as_ref().map_or(0, |rates| rates.len());
        let flows = self.flows.as_ref().map_or(0, |flows| flows.left());
        self.jobs.left() + self.dedupe.len() + self.done.len() + windows + flows + older
    }

    /// About the heap bytes that are left. Asked for with each step, so lists are not looked at, only their lengths.
    pub fn heap_bytes(&self) -> usize {
        let others = self.left() - self.jobs.left();
        self.jobs.left_bytes()
            + others * LISTED_BYTES
            + self.dedupe.heap_bytes()
            + self.done.heap_bytes()
            + self.groups.as_ref().map_or(0, |it| it.heap_bytes())
            + self.group_rates.as_ref().map_or(0, |it| it.memory_bytes())
            + self.flows.as_ref().map_or(0, |it| it.heap_bytes())
            + self.older.iter().map(Garbage::heap_bytes).sum::<usize>()
    }

    /// Frees about `count` things; false once nothing is left.
    pub fn free_some(&mut self, count: usize) -> bool {
        if let Some(older) = self.older.last_mut() {
            if !older.free_some(count) {
                self.older.pop();
            }
            return true;
        }
        self.jobs.free_some(count)
            || self.dedupe.made().is_some_and(|it| it.free_some(count))
            || self.done.made().is_some_and(|it| it.free_some(count))
            || self.groups.as_mut().is_some_and(|it| it.free_some(count))
            || (self.group_rates.as_mut()).is_some_and(|it| it.free_some(count))
            || self.flows.as_mut().is_some_and(|it| it.free_some(count))
    }
}

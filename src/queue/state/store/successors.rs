//! Successors in the store: jobs that take the place of another job with their id when it ends.
//!
//! A successor has an allocation and a handle like any job, but the index finds only the job before it. A map leads
//! from that job to its successor; it is empty if NEXT is not used.

use super::stored::word;
use super::{Job, Store};
use crate::queue::job::{Handle, Place};
use crate::storage::broken::{must, there};

/// In word 0: there is a successor.
const SUCCEEDED: u64 = 1 << 56;

const NO_SUCCESSOR: &str = "a job without the successor that it has";

impl Job<'_> {
    pub fn is_followed(self) -> bool {
        self.word0() & SUCCEEDED != 0
    }
}

impl Store {
    // Out of line: the jobs ask only where there may be one.
    #[inline(never)]
    pub fn successor(&self, handle: Handle) -> Option<Handle> {
        let word0 = word(self.bytes(handle), 0);
        (word0 & SUCCEEDED != 0).then(|| *there(self.cold.successors.get(&handle), NO_SUCCESSOR))
    }

    /// The job must have no successor.
    pub fn set_successor(&mut self, handle: Handle, successor: Handle) {
        must(
            self.job(successor).place() == Place::Successor,
            "a successor that is none",
        );
        self.edit(handle, 0, |word0| word0 | SUCCEEDED);
        self.cold.make().successors.insert(handle, successor);
    }

    pub fn take_successor(&mut self, handle: Handle) -> Option<Handle> {
        let successor = self.successor(handle)?;
        self.edit(handle, 0, |word0| word0 & !SUCCEEDED);
        must(
            self.cold.make().successors.remove(&handle) == Some(successor),
            NO_SUCCESSOR,
        );
        Some(successor)
    }

    #[inline]
    pub fn successors_len(&self) -> usize {
        self.cold.if_made().map_or(0, |it| it.successors.len())
    }

    /// (job, its successor)
    pub fn successors(&self) -> impl Iterator<Item = (Handle, Handle)> + '_ {
        self.cold.successors.iter().map(|(&job, &next)| (job, next))
    }

    /// Successors of blocked jobs, counted one by one, as there are few.
    pub fn blocked_successors(&self) -> usize {
        let blocked = |&(job, _): &(Handle, Handle)| self.job(job).place() == Place::Blocked;
        self.successors().filter(blocked).count()
    }

    /// Enters a successor into the index, once the job before it is gone.
    pub fn index_successor(&mut self, handle: Handle) {
        let hash = self.hasher.hash_one(self.job(handle).id());
        self.enter(hash, handle);
    }

    /// Bytes of ids, payloads and steps, of a job and its successor.
    pub fn content_of(&self, handle: Handle) -> u64 {
        let own = super::content(self.bytes(handle)) + self.notes(handle).counted();
        let next = self.successor(handle);
        own + next.map_or(0, |next| super::content(self.bytes(next)))
    }

    pub(super) fn check_successors(&self) -> Result<(), String> {
        for (job, next) in self.successors() {
            let (job, next) = (self.job(job), self.job(next));
            let fits = next.place() == Place::Successor
                && matches!(
                    job.place(),
                    Place::Scheduled | Place::Reserved | Place::Blocked
                )
                && job.id() == next.id();
            if !fits {
                return Err(format!(
                    "a successor of another job, or of none: {:?}",
                    next.id()
                ));
            }
        }
        Ok(())
    }
}

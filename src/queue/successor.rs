//! Successors, which NEXT adds: a job that waits until the job with its id ends, and takes its place.
//!
//! It is on no list except that of TTLs. If the job before it is finished or dead, the successor takes its place
//! ([`Queue::end`]); if that job is removed in any other way, the successor is removed with it.

use super::clock::Now;
use super::effect::{Change, End};
use super::effects::Effects;
use super::job::Handle;
use super::Queue;
use crate::storage::broken::there;

impl Queue {
    /// How a job goes that ends so at an instant up to which successors' TTLs have been carried out: as said, unless
    /// it has a successor.
    pub(super) fn succeeded_at(
        &self,
        handle: Handle,
        otherwise: Change,
        end: End,
        at: u64,
    ) -> Change {
        let Some(successor) = self.jobs().successor(handle) else {
            return otherwise;
        };
        let remember = match otherwise {
            Change::Removed { remember, .. } => remember,
            _ => 0,
        };
        let ready = self.jobs().job(successor).due() <= at;
        Change::Succeeded {
            end,
            remember,
            ready,
        }
    }

    /// Carries out that a successor's TTL ended before that instant.
    #[inline]
    pub(super) fn expire_successor(
        &mut self,
        handle: Handle,
        before: u64,
        now: Now,
        out: &mut Effects,
    ) {
        let Some(successor) = self.jobs().successor(handle) else {
            return;
        };
        let expires = self.jobs().job(successor).life().expires;
        if expires != 0 && expires < before {
            self.commit_job(handle, Change::SuccessorExpired, now, out);
        }
    }

    /// The same for a successor that was found in the list of TTLs.
    pub(super) fn expire_as_successor(&mut self, successor: Handle, now: Now, out: &mut Effects) {
        let id = self.jobs().hashed(self.jobs().job(successor).id());
        let handle = there(self.jobs().find(id), "a successor of nobody");
        if self.is_purged(handle) {
            self.free_purged_successor(handle);
        } else {
            self.commit_job(handle, Change::SuccessorExpired, now, out);
        }
    }
}

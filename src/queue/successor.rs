//! Successors, which NEXT adds: a job that waits until the job with its id ends, and takes its place.
//!
//! It is on no list except that of TTLs. If the job before it is finished or dead, the successor takes its place
//! ([`Queue::end`]); if that job is removed in any other way, the successor is removed with it.

use super::clock::Now;
use super::effect::{Change, EndCause};
use super::effects::Effects;
use super::job::Handle;
use super::state::jobs::Jobs;
use super::Queue;
use crate::storage::broken::there;

impl Jobs {
    /// The change by which a job ends at `at`: `otherwise`, or its successor takes its place. The successor's TTL must
    /// have been carried out up to `at`.
    pub(super) fn succeeded_at<'a>(
        &self,
        handle: Handle,
        otherwise: Change<'a>,
        end: EndCause,
        at: u64,
    ) -> Change<'a> {
        let Some(successor) = self.successor(handle) else {
            return otherwise;
        };
        let remember = match otherwise {
            Change::Removed { remember, .. } => remember,
            _ => 0,
        };
        let ready = self.job(successor).due() <= at;
        Change::Succeeded {
            end,
            remember,
            ready,
        }
    }
}

impl Queue {
    /// Removes the job's successor, if the TTL of that successor expired before the instant `before`.
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

    /// Removes a successor that was found in the list of TTLs, as its TTL has expired.
    pub(super) fn expire_as_successor(&mut self, successor: Handle, now: Now, out: &mut Effects) {
        let id = self.jobs().hashed(self.jobs().job(successor).id());
        let handle = there(self.jobs().find_any(id), "a successor of nobody");
        if self.jobs().is_purged(handle) {
            self.free_purged_successor(handle);
        } else {
            self.commit_job(handle, Change::SuccessorExpired, now, out);
        }
    }
}

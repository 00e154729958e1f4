//! What one queue contributes to the figures over all queues. What they consist of is kept up to date with each change, so
//! that asking for them costs little however many jobs there are.

use super::Queue;
use crate::queue::clock::Now;

/// How many purged jobs are freed before their bytes are looked at again.
const STEP: usize = 64;

/// Counts that may be added up over queues. A new one is a field here, its line in [`Queue::figures`] and
/// in [`Figures::each`].
#[allow(missing_docs, reason = "states are called as DQ.STATS calls them")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub delayed: u64,
    pub ready: u64,
    pub reserved: u64,
    pub dead: u64,
    pub blocked: u64,
    /// Purged jobs that are not freed yet.
    pub unfreed: u64,
    /// About their bytes: entered where there are any, as few queues have them.
    pub unfreed_bytes: u64,
    /// Bytes of ids, payloads and all else that MAXBYTES counts.
    pub bytes: u64,
    /// Jobs with a rule.
    pub recurring: u64,
    /// Groups that hold jobs.
    pub groups: u64,
    /// Done jobs, and what DONEBYTES counts of them.
    pub done: u64,
    pub done_bytes: u64,
    /// The earliest due time of all jobs. Over queues it is not added up: the least counts.
    pub first_due: Option<u64>,
}

impl Figures {
    fn each(&mut self) -> [&mut u64; 9] {
        [
            &mut self.delayed,
            &mut self.ready,
            &mut self.reserved,
            &mut self.dead,
            &mut self.blocked,
            &mut self.unfreed,
            &mut self.bytes,
            &mut self.recurring,
            &mut self.groups,
        ]
    }

    /// Puts new figures of a queue in the place of its old ones.
    pub fn exchange(&mut self, mut old: Figures, mut new: Figures) {
        let parts = old.each().into_iter().zip(new.each());
        for (sum, (old, new)) in self.each().into_iter().zip(parts) {
            *sum = sum.wrapping_sub(*old).wrapping_add(*new);
        }
    }
}

impl Queue {
    /// Frees purged jobs until about so many bytes of them are left.
    pub fn free_purged_to(&mut self, bytes: u64) {
        while self.jobs.has_purged() && self.jobs.unfreed_bytes(self.jobs.unfreed_len()) > bytes {
            self.parts.free_purged(&mut self.jobs, STEP);
        }
    }

    /// The figures at this instant; and an instant until which they hold if nothing else happens: the next due time, or
    /// an earlier one.
    pub fn figures(&mut self, now: Now) -> (Figures, u64) {
        let (ready, until) = self.jobs.count_ready(now);
        let unfreed = self.jobs.unfreed_len();
        let figures = Figures {
            delayed: (self.jobs.schedule().len() - ready) as u64,
            ready: ready as u64,
            reserved: self.jobs.reserved().len() as u64,
            dead: self.jobs.dead().len() as u64,
            blocked: self.jobs.blocked_len() as u64,
            unfreed: unfreed as u64,
            unfreed_bytes: match unfreed {
                0 => 0,
                _ => self.jobs.unfreed_bytes(unfreed),
            },
            bytes: self.bytes(),
            recurring: self.jobs.recurring_len() as u64,
            groups: self.parts.groups().map_or(0, |it| it.len(&self.jobs)) as u64,
            done: self.parts.done.len() as u64,
            done_bytes: self.parts.done.bytes(),
            first_due: self.jobs.schedule().least_due(),
        };
        (figures, until)
    }
}

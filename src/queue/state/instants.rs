//! When time alone does something to a queue: what the timer must fire for.

use super::Queue;
use crate::queue::clock::Now;
use crate::queue::effect::FOREVER;
use crate::queue::instant::NEVER;
use crate::queue::job::INSTANT_MAX;

impl Queue {
    /// When the timer must fire next even if no client waits: a lease or a TTL expires, an id leaves the dedupe window,
    /// a done job is to be removed, dead jobs are beyond DEADLEN, or ends are to be carried out. In the past if
    /// [`Queue::expire_overdue`] has work left.
    #[inline]
    pub fn next_event(&self) -> Option<u64> {
        let next = self.wakes_first();
        (next != NEVER).then_some(next)
    }

    /// As [`Queue::next_event`], without ends that are to be carried out.
    pub(in crate::queue) fn next_in_time(&self) -> Option<u64> {
        let next = self.wakes_first_in_time();
        (next != NEVER).then_some(next)
    }

    /// The earliest instant at which a delivery may succeed if nothing else happens: when the timer must fire while
    /// clients wait. In the past if a delivery would succeed now.
    pub fn next_delivery(&self, now: Now, noack: bool) -> Option<u64> {
        if self.paused_until == FOREVER || (!noack && self.reserved_is_full()) {
            return None;
        }
        let due = self.next_turn_at(noack)?;
        let pause = if self.is_paused(now) {
            self.paused_until
        } else {
            0
        };
        let opens = due.max(pause).max(self.rate_opens_ms(1, now));
        if opens > now.ms() || !self.jobs.says_cost() {
            return Some(opens);
        }
        Some(self.first_costing_opens(now, noack).unwrap_or(opens))
    }

    /// Whether nothing can be delivered now except to a client that pops with NOACK. MAXRESERVED, or the GROUPMAX of
    /// all groups that have a ready job, holds the others back.
    #[inline]
    pub fn serves_only_noack(&self, now: Now) -> bool {
        let next = self.next_delivery(now, false);
        next.is_none_or(|instant| instant > now.ms())
    }

    /// The next due time that has not come yet; not the last instant, which means never. The timer must fire then if a
    /// client subscribes to dq.ready.
    pub fn next_due(&self, now: Now) -> Option<u64> {
        let due = self.jobs.schedule().next_due(now.ms());
        due.filter(|&due| due < INSTANT_MAX)
    }

    /// The earliest instant after now at which time alone does something: a due time, the end of a lease, of a TTL, of
    /// a pause, of a dedupe or a rate window.
    pub fn next_instant(&self, now: Now) -> Option<u64> {
        let pause = (self.paused_until != FOREVER).then_some(self.paused_until);
        let rate = self.next_rate_instant(now);
        let of_group = self.group_rates.as_ref();
        let of_group = of_group.and_then(|rates| rates.next_opens_ms(now));
        let instants = [self.next_event(), self.next_due(now), pause, rate, of_group];
        // At the last instant nothing happens.
        let to_come = now.ms() + 1..INSTANT_MAX;
        let instants = instants.into_iter().flatten();
        instants.filter(|at| to_come.contains(at)).min()
    }

    /// Whether a due time came after `since_ms` and has come by now.
    pub fn became_ready(&self, since_ms: u64, now: Now) -> bool {
        self.jobs.schedule().ready_len(now.ms()) > self.jobs.schedule().ready_len(since_ms)
    }
}

//! Why a queue needs attention though no command names it, and when.

use super::Queue;
use crate::queue::clock::Now;
use crate::queue::instant::NEVER;

/// Every reason that lies in the queue itself. Others, which the server knows, are on its agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Dead jobs are beyond DEADLEN.
    Trim,
    /// A lease expires.
    Lease,
    /// A TTL or a GRACE expires.
    Ttl,
    /// An id leaves the dedupe window.
    Forget,
    /// A done job is to be removed.
    Done,
    /// Ends are to be carried out for jobs that are after them.
    Flow,
    /// Clients wait, and a job can be delivered to one of them.
    Deliver {
        /// Whether that client pops with NOACK.
        noack: bool,
    },
}

impl Queue {
    /// When this reason comes; in the past if it has come; or [`NEVER`].
    #[inline]
    pub fn wakes_at(&self, wake: Wake, now: Now) -> u64 {
        match wake {
            Wake::Deliver { noack } => self.next_delivery(now, noack).unwrap_or(NEVER),
            of_time => self.wakes_in_time(of_time),
        }
    }

    /// When time alone brings the next event, whether or not clients wait or subscribe. Each command asks: no loop over
    /// reasons, which costs 100 instructions more.
    #[inline]
    pub(super) fn wakes_first(&self) -> u64 {
        let at = |wake| self.wakes_in_time(wake);
        self.wakes_first_in_time().min(at(Wake::Flow))
    }

    /// As [`Queue::wakes_first`], without ends that are to be carried out.
    #[inline]
    pub(super) fn wakes_first_in_time(&self) -> u64 {
        let at = |wake| self.wakes_in_time(wake);
        at(Wake::Trim)
            .min(at(Wake::Lease))
            .min(at(Wake::Ttl))
            .min(at(Wake::Forget))
            .min(at(Wake::Done))
    }

    #[inline(always)]
    fn wakes_in_time(&self, wake: Wake) -> u64 {
        // Each command asks: a plain minimum, where "never" is later than any instant.
        match wake {
            Wake::Trim if self.surplus_dead() > 0 => 0,
            Wake::Lease => self.jobs.reserved().first_at(),
            Wake::Ttl => self.jobs.expiring().first_at(),
            Wake::Forget => {
                let next = self.dedupe.if_made().and_then(|it| it.next());
                next.unwrap_or(NEVER)
            }
            Wake::Done => self.done.if_made().map_or(NEVER, |it| it.wakes),
            Wake::Flow if self.has_flow_work() => 0,
            Wake::Trim | Wake::Flow | Wake::Deliver { .. } => NEVER,
        }
    }
}

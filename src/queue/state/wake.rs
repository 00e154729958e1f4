//! What time, or a limit, brings about though no command names the queue: one table, by which the timer is armed, and by
//! which what is overdue is carried out in its order.

use super::groups::Groups;
use super::Queue;
use crate::queue::clock::Now;
use crate::queue::effect::FOREVER;
use crate::queue::instant::NEVER;
use crate::queue::job::INSTANT_MAX;

/// What comes by itself, in the order in which it is carried out where several come at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) enum Comes {
    /// A done job is to be removed, by its time or a limit: before all else, whenever that is.
    Done,
    /// Dead jobs are beyond DEADLEN: before all else, but after the TTLs that expired before the last death.
    Trim,
    /// A lease expires.
    Lease,
    /// A TTL or a GRACE expires.
    Ttl,
    /// An id leaves the dedupe window.
    Forget,
    /// The pause of a group ends.
    Resume,
    /// Ends are to be carried out for jobs that are after them. See [`Queue::next_in_time`].
    Flow,
}

impl Comes {
    /// In the order of time.
    const TIMED: [Comes; 4] = [Comes::Lease, Comes::Ttl, Comes::Forget, Comes::Resume];
}

impl Queue {
    /// When it comes; in the past if it has come; or [`NEVER`].
    // Each command asks: a plain minimum, where "never" is later than any instant.
    #[inline(always)]
    fn comes_at(&self, what: Comes) -> u64 {
        match what {
            Comes::Done => self.parts.done.if_made().map_or(NEVER, |it| it.wakes),
            Comes::Trim if self.surplus_dead() > 0 => 0,
            Comes::Lease => self.jobs.reserved().first_at(),
            Comes::Ttl => self.jobs.expiring().first_at(),
            Comes::Forget => {
                let next = self.parts.dedupe.if_made().and_then(|it| it.next());
                next.unwrap_or(NEVER)
            }
            Comes::Resume => self.parts.groups().map_or(NEVER, Groups::first_pause_end),
            Comes::Flow if self.parts.has_flow_work() => 0,
            Comes::Trim | Comes::Flow => NEVER,
        }
    }

    /// As [`Queue::next_event`], without ends that are to be carried out.
    // No loop over what comes, which costs 100 instructions more.
    #[inline]
    fn first_in_time(&self) -> u64 {
        let at = |what| self.comes_at(what);
        at(Comes::Done)
            .min(at(Comes::Trim))
            .min(at(Comes::Lease))
            .min(at(Comes::Ttl))
            .min(at(Comes::Forget))
            .min(at(Comes::Resume))
    }

    /// What is overdue and to be carried out first. `None` exactly if [`Queue::next_in_time`] is later than now.
    pub(in crate::queue) fn first_overdue(&self, now: Now) -> Option<Comes> {
        if self.comes_at(Comes::Done) <= now.ms() {
            return Some(Comes::Done);
        }
        if self.comes_at(Comes::Trim) <= now.ms() {
            let last_death = self.jobs.dead().last().map_or(0, |(at, _)| at);
            if self.comes_at(Comes::Ttl) >= last_death.min(now.ms()) {
                return Some(Comes::Trim);
            }
        }
        let first = Comes::TIMED
            .into_iter()
            .min_by_key(|&it| self.comes_at(it))?;
        (self.comes_at(first) <= now.ms()).then_some(first)
    }

    /// When the timer must fire next even if no client waits. In the past if [`Queue::expire_overdue`] has work left.
    #[inline]
    pub fn next_event(&self) -> Option<u64> {
        let next = self.first_in_time().min(self.comes_at(Comes::Flow));
        (next != NEVER).then_some(next)
    }

    /// As [`Queue::next_event`], without ends that are to be carried out.
    pub(in crate::queue) fn next_in_time(&self) -> Option<u64> {
        let next = self.first_in_time();
        (next != NEVER).then_some(next)
    }

    /// The earliest instant after now at which time alone does something: what the table above has, a due time, the end
    /// of a pause or of a rate window.
    pub fn next_instant(&self, now: Now) -> Option<u64> {
        let pause = (self.paused_until != FOREVER).then_some(self.paused_until);
        let rate = self.serving().next_rate_instant(now);
        let of_group = self.parts.group_rates.as_ref();
        let of_group = of_group.and_then(|rates| rates.next_opens_ms(now));
        let instants = [
            self.next_event(),
            self.jobs.next_due(now),
            pause,
            rate,
            of_group,
        ];
        // At the last instant nothing happens.
        let to_come = now.ms() + 1..INSTANT_MAX;
        let instants = instants.into_iter().flatten();
        instants.filter(|at| to_come.contains(at)).min()
    }
}

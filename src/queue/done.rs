//! Done jobs: which of them are kept, for how long, and what commands do with them. A queue that keeps none pays for
//! a few checks only.

use super::budget::steps_of_bytes;
use super::clock::Now;
use super::effect::{Completion, Effect, OfDone, Purge};
use super::effects::Effects;
use super::event::Event;
use super::job::{Handle, State};
use super::settings::DoneLimits;
use super::state::id_of_occurrence;
use super::state::jobs::Jobs;
use super::state::parts::Parts;
use super::state::store::Id;
use super::Queue;

/// Done jobs that one command removes beyond the limits, at most; the timer removes the rest.
const TRIM_BUDGET: usize = 1000;

impl Parts {
    /// How a job, or its occurrence, that is acked now is kept as done; `None` if it is not kept.
    fn done_end<'a>(
        &self,
        jobs: &Jobs,
        (handle, result): (Handle, Option<&'a [u8]>),
        limits: DoneLimits,
        now: Now,
    ) -> Option<Completion<'a>> {
        let job = jobs.job(handle);
        let stays_ms = match job.terms().rest.keep_ms() {
            Some(0) => return None,
            Some(ms) => ms,
            None if !limits.any() => return None,
            None => limits.ttl_ms,
        };
        if job.is_followed() || !self.done().has_room() {
            return None;
        }
        if job.recurring().is_some() && !self.has_room_for_occurrence(jobs, handle) {
            return None;
        }
        let id_len = match job.recurring() {
            Some(recurring) => id_of_occurrence(job.id(), recurring.occurrence.at).len(),
            None => job.id().len(),
        };
        let len = id_len + job.payload().len();
        let notes = jobs.notes(handle).counted_when_done();
        let len = len + result.map_or(0, <[u8]>::len) + notes;
        if limits.bytes != 0 && len as u64 > limits.bytes {
            return None;
        }
        let until = match stays_ms {
            0 => 0,
            ms => now.after_capped(ms),
        };
        Some(Completion {
            finished: now.ms(),
            until,
            result,
        })
    }
}

impl Queue {
    /// Ends a job that is acked, or its occurrence, as done, if it is to be kept; returns whether it is.
    #[cold]
    #[inline(never)]
    pub(super) fn end_as_done(
        &mut self,
        handle: Handle,
        result: Option<&[u8]>,
        now: Now,
        out: &mut Effects,
    ) -> bool {
        self.expire_successor(handle, now.ms() + 1, now, out);
        if self.parts().done().wakes <= now.ms() {
            self.expire_done(now, TRIM_BUDGET, out);
        }
        let (limits, ended) = (self.settings().done_limits, (handle, result));
        let Some(end) = self.parts().done_end(self.jobs(), ended, limits, now) else {
            return false;
        };
        let id = &self.jobs().job(handle).id().to_vec()[..];
        let occurs = self.jobs().recurs(handle);
        let effect = if occurs {
            let next = self.jobs().next_occurrence(handle, now, out);
            OfDone::OccurrenceKept { id, next, end }
        } else {
            let remember = self.settings().remember_until(now);
            OfDone::Kept { id, remember, end }
        };
        self.commit_kept(&Effect::Done(effect), out);
        self.trim_done_now(out);
        true
    }

    /// Removes up to `budget` done jobs that are beyond a limit, or that nothing keeps any more; returns how much of
    /// the budget is left.
    #[cold]
    #[inline(never)]
    pub(super) fn trim_done(&mut self, mut budget: usize, out: &mut Effects) -> usize {
        let done = self.parts().done();
        let steps_of_each = 1 + steps_of_bytes(done.bytes() / done.len().max(1) as u64);
        let count = done.beyond(self.settings().done_limits, budget.div_ceil(steps_of_each));
        budget = budget.saturating_sub(count * steps_of_each);
        if count > 0 {
            let count = count as u64;
            self.commit(&Effect::Done(OfDone::Trimmed { count }), out);
        }
        while budget > 0
            && self.parts().done().has_surplus(self.settings().done_limits)
            && !self.parts().done().exceeds(self.settings().done_limits)
        {
            let (found, looked_at) = self.next_unkept_done(budget);
            budget = budget.saturating_sub(looked_at);
            if let Some(id) = found {
                self.commit(&Effect::Done(OfDone::Gone { id: &id }), out);
            }
        }
        budget
    }

    /// Trims done jobs at once, within the budget of one command.
    pub(super) fn trim_done_now(&mut self, out: &mut Effects) {
        if self.parts().done().has_surplus(self.settings().done_limits) {
            self.trim_done(TRIM_BUDGET, out);
        }
    }

    /// Removes done jobs by time and by limits, at most `budget`; returns how much of the budget that took.
    #[cold]
    #[inline(never)]
    pub(super) fn expire_done(&mut self, now: Now, budget: usize, out: &mut Effects) -> usize {
        let mut left = budget;
        while left > 0 {
            let first = self
                .parts()
                .done()
                .first_until()
                .filter(|&(at, _)| at <= now.ms());
            let Some((_, handle)) = first else {
                break;
            };
            let before = self.parts().done().bytes();
            self.let_done_go(handle, out);
            let freed = before - self.parts().done().bytes();
            left = left.saturating_sub(1 + steps_of_bytes(freed));
        }
        left = self.trim_done(left, out);
        (budget - left).max(1)
    }

    fn let_done_go(&mut self, handle: u32, out: &mut Effects) {
        let id = self.parts().done().get(handle).id.to_vec();
        self.commit(&Effect::Done(OfDone::Gone { id: &id }), out);
    }

    /// The done job with this id. If its time is over, it is removed instead.
    #[inline]
    pub(super) fn find_done_unexpired(
        &mut self,
        id: Id<'_>,
        now: Now,
        out: &mut Effects,
    ) -> Option<u32> {
        if !self.parts().has_done() {
            return None;
        }
        self.find_done_in_time(id, now, out)
    }

    #[cold]
    #[inline(never)]
    fn find_done_in_time(&mut self, id: Id<'_>, now: Now, out: &mut Effects) -> Option<u32> {
        let handle = self.parts().done().find(id)?;
        let until = self.parts().done().get(handle).until();
        if until != 0 && until <= now.ms() {
            self.let_done_go(handle, out);
            return None;
        }
        Some(handle)
    }

    /// DEL of a done job; returns whether there was one.
    pub(super) fn delete_done(&mut self, id: Id<'_>, now: Now, out: &mut Effects) -> bool {
        let found = self.find_done_unexpired(id, now, out);
        if found.is_some() {
            let id = id.bytes;
            self.commit(&Effect::Done(OfDone::Deleted { id }), out);
            self.count_deleted(1, &[Event::Del], out);
        }
        found.is_some()
    }

    /// Removes all done jobs; returns how many, not counting those whose time is over.
    pub(super) fn purge_done(&mut self, now: Now, out: &mut Effects) -> usize {
        let count = self.parts().done().len() - self.parts().done().over_by(now.ms());
        if count > 0 {
            let purge = Purge::State {
                state: Some(State::Done),
                cut: now.ms(),
            };
            self.commit_purge(purge, count, out);
        }
        count
    }

    /// Makes a done job ready again; returns whether there was one, and room for it.
    pub(super) fn kick_done(&mut self, id: Id<'_>, now: Now, out: &mut Effects) -> bool {
        let found = self.find_done_unexpired(id, now, out);
        if found.is_none() || !self.jobs().has_room() || !self.jobs().has_room_for_note() {
            return false;
        }
        let (id, due) = (id.bytes, now.ms());
        self.commit(&Effect::Done(OfDone::Kicked { id, due }), out);
        out.raise(Event::Ready);
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::queue::add::Add;
    use crate::queue::claim::Claim;
    use crate::queue::clock::{Mint, Now};
    use crate::queue::deliver::Pop;
    use crate::queue::effects::Effects;
    use crate::queue::settings::SettingsChange;
    use crate::queue::{HashSeed, Queue};

    const MS: u64 = 1_790_000_000_000;

    /// Ids of 16 bytes and payloads of 64, as elsewhere; results of 10 to 49, attempts of half a second.
    fn bytes_beside(jobs: u64, change: &SettingsChange) -> f64 {
        let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        let (mut mint, mut out) = (Mint::new(), Effects::default());
        let now = |number: u64| Now::from_ms(MS + number);
        queue.configure_with(change, now(0), &mut out).unwrap();
        let (before, mut content) = (queue.memory_bytes(), 0);
        for number in 0..jobs {
            let id = format!("{number:016}");
            let add = Add::new(Some(id.as_bytes()), &[b'p'; 64]);
            let at = now(number * 3);
            queue.add(&add, at, &mut mint, &mut out).unwrap();
            let pop = Pop {
                count: 1,
                ..Pop::default()
            };
            queue.pop(&pop, now(number * 3 + 1), &mut mint, &mut out, |_| ());
            let result = vec![b'r'; 10 + (number * 7 % 40) as usize];
            let end = now(number * 3 + 500);
            let acked = queue.ack(id.as_bytes(), Claim::Current, Some(&result), end, &mut out);
            assert!(acked);
            content += 16 + 64 + result.len();
            out.clear();
        }
        assert_eq!(queue.parts().done().bytes(), content as u64);
        let taken = queue.memory_bytes() - before - content;
        taken as f64 / jobs as f64
    }

    #[test]
    fn done_jobs_take_little() {
        let jobs = match std::env::var("DQ_DONE_JOBS") {
            Ok(jobs) => jobs.parse().unwrap(),
            Err(_) => 50_000,
        };
        let by_len = SettingsChange {
            done_len: Some(u64::MAX / 2),
            ..SettingsChange::default()
        };
        let by_time = SettingsChange {
            done_ttl_ms: Some(86_400_000),
            ..SettingsChange::default()
        };
        for (name, change, most) in [("DONELEN", by_len, 40.0), ("DONETTL", by_time, 48.0)] {
            let bytes = bytes_beside(jobs, &change);
            println!("{name}: {bytes:.1} bytes beside id, payload and result");
            assert!(bytes <= most, "{name}: {bytes} bytes");
        }
    }
}

//! What a queue sets aside, to be freed in small steps.

use super::garbage::Garbage;
use super::purged::MANY;
use super::rate::group::GroupRates;
use super::Queue;

impl From<Queue> for Garbage {
    fn from(queue: Queue) -> Self {
        let mut queue = queue;
        let older = queue
            .cold
            .made()
            .map(|cold| std::mem::take(&mut cold.garbage));
        let older = older.unwrap_or_default();
        Garbage {
            jobs: queue.jobs,
            dedupe: queue.dedupe,
            done: queue.done,
            groups: queue.groups,
            group_rates: queue.group_rates,
            flows: queue.flows,
            older,
        }
    }
}

impl Queue {
    /// Whether anything may have been set aside, or departures are noted.
    #[inline]
    pub fn has_set_aside(&self) -> bool {
        self.cold.is_made()
    }

    /// What was set aside since the last call, to be freed in steps.
    pub fn take_garbage(&mut self) -> Option<Vec<Garbage>> {
        let garbage = &mut self.cold.made()?.garbage;
        (!garbage.is_empty()).then(|| std::mem::take(garbage))
    }

    /// Little garbage is freed at once: to keep it would cost more.
    fn set_aside(&mut self, garbage: Garbage) {
        if garbage.left() > MANY {
            self.cold.make().garbage.push(garbage);
        }
    }

    /// Sets all jobs aside, as if there had never been any.
    pub(super) fn set_jobs_aside(&mut self) {
        let hasher = self.jobs.hasher().clone();
        let garbage = Garbage {
            jobs: self.jobs.take(),
            groups: self.groups.take(),
            flows: self.flows.take(),
            ..Garbage::none(hasher)
        };
        self.set_aside(garbage);
    }

    /// Sets aside what blocked jobs wait for: all of them are about to be purged.
    pub(super) fn set_waits_aside(&mut self) {
        let flows = self.flows.as_mut().map(|flows| flows.end_all().into());
        let garbage = Garbage {
            flows,
            ..Garbage::none(self.jobs.hasher().clone())
        };
        self.set_aside(garbage);
    }

    /// Begins the windows of GROUPRATE anew.
    pub(super) fn set_group_rates_aside(&mut self) {
        let rate = self.settings.group_limits.rate;
        let new = |rate| GroupRates::new(rate, self.jobs.numbers.token, self.jobs.hasher().clone());
        let new = rate.map(|rate| Box::new(new(rate)));
        let old = std::mem::replace(&mut self.group_rates, new);
        if old.is_none() {
            return;
        }
        let garbage = Garbage {
            group_rates: old,
            ..Garbage::none(self.jobs.hasher().clone())
        };
        self.set_aside(garbage);
    }

    /// Forgets all ids that DEDUPE remembers.
    pub(super) fn set_dedupe_aside(&mut self) {
        let hasher = self.jobs.hasher().clone();
        let garbage = Garbage {
            dedupe: std::mem::take(&mut self.dedupe),
            ..Garbage::none(hasher)
        };
        self.set_aside(garbage);
    }

    /// Forgets all done jobs.
    pub(super) fn set_done_aside(&mut self) {
        let garbage = Garbage {
            done: std::mem::take(&mut self.done),
            ..Garbage::none(self.jobs.hasher().clone())
        };
        self.set_aside(garbage);
        // Stays made once there were any: what follows asks how many there are.
        self.done.make();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::state::defrag::tests::queue;

    const STEP: usize = 100;

    fn steps(mut free_some: impl FnMut(usize) -> bool) -> usize {
        (0..100_000).take_while(|_| free_some(STEP)).count()
    }

    #[test]
    fn all_is_freed_and_little_at_a_time() {
        let mut parts = Garbage::from(queue());
        let jobs = &parts.jobs;
        let lens = [
            2 * jobs.len() // and their index
                + jobs.schedule().len() + jobs.reserved().len() + jobs.expiring().len(),
            parts.dedupe.len(),
        ];
        let counts = [
            steps(|count| parts.jobs.free_some(count)),
            steps(|count| parts.dedupe.make().free_some(count)),
        ];
        for (len, count) in lens.into_iter().zip(counts) {
            let expected = len.div_ceil(STEP);
            assert!(expected > 20);
            assert!(
                (expected * 3 / 4..=4 * expected).contains(&count),
                "{len} in {count}"
            );
        }
        // The same for a whole queue, a part of which was set aside before: one more step finds that this part is
        // freed.
        let mut queue = queue();
        queue.set_jobs_aside();
        let mut whole = Garbage::from(queue);
        let all: usize = counts.iter().sum();
        assert_eq!(steps(|count| whole.free_some(count)), all + 1);
    }
}

//! What a queue sets aside, to be freed in small steps.

use super::jobs::Jobs;
use super::parts::{Garbage, Parts};
use super::purged::MANY;
use super::rate::group::GroupRates;
use super::Queue;
use crate::queue::settings::Rate;

impl From<Queue> for Garbage {
    fn from(queue: Queue) -> Self {
        let mut queue = queue;
        let older = queue.parts.take_garbage();
        Garbage {
            older,
            ..Garbage::of(queue.jobs, queue.parts)
        }
    }
}

impl Parts {
    /// Little garbage is freed at once: to keep it would cost more.
    fn set_aside(&mut self, garbage: Garbage) {
        if garbage.left() > MANY {
            self.cold.make().garbage.push(garbage);
        }
    }

    fn set_parts_aside(&mut self, parts: Parts, jobs: &Jobs) {
        let jobs = Jobs::new(jobs.hasher().clone());
        self.set_aside(Garbage::of(jobs, parts));
    }

    /// Sets aside what blocked jobs wait for: all of them are about to be purged.
    pub(super) fn set_waits_aside(&mut self, jobs: &Jobs) {
        let parts = Parts {
            flows: self.flows.as_mut().map(|flows| flows.end_all().into()),
            ..Parts::default()
        };
        self.set_parts_aside(parts, jobs);
    }

    /// Begins the windows of GROUPRATE anew.
    pub(super) fn set_group_rates_aside(&mut self, rate: Option<Rate>, jobs: &Jobs) {
        if let Some(rates) = &mut self.group_rates {
            let parts = Parts {
                group_rates: Some(rates.renew(rate).into()),
                ..Parts::default()
            };
            self.set_parts_aside(parts, jobs);
        }
        self.fit_group_rates(rate, jobs);
    }

    /// Makes what holds windows if there may be any, and drops it if there are none.
    pub(super) fn fit_group_rates(&mut self, rate: Option<Rate>, jobs: &Jobs) {
        let has_rated = self.groups.as_ref().is_some_and(|it| it.has_rated());
        if rate.is_some() || has_rated {
            let new = || Box::new(GroupRates::new(rate, jobs.hasher().clone()));
            self.group_rates.get_or_insert_with(new);
        } else {
            self.group_rates.take_if(|rates| rates.len() == 0);
        }
    }

    /// Forgets all ids that DEDUPE remembers.
    pub(super) fn set_dedupe_aside(&mut self, jobs: &Jobs) {
        let parts = Parts {
            dedupe: std::mem::take(&mut self.dedupe),
            ..Parts::default()
        };
        self.set_parts_aside(parts, jobs);
    }

    /// Forgets all done jobs.
    pub(super) fn set_done_aside(&mut self, jobs: &Jobs) {
        let parts = Parts {
            done: std::mem::take(&mut self.done),
            ..Parts::default()
        };
        self.set_parts_aside(parts, jobs);
        // Stays made once there were any: what follows asks how many there are.
        self.done.make();
    }

    /// Sets all jobs aside, as if there had never been any.
    pub(super) fn set_jobs_aside(&mut self, jobs: &mut Jobs) {
        let parts = Parts {
            groups: self.groups.take(),
            flows: self.flows.take(),
            ..Parts::default()
        };
        let garbage = Garbage::of(jobs.take(), parts);
        self.set_aside(garbage);
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
        let mut all = Garbage::from(queue());
        let jobs = &all.jobs;
        let lens = [
            2 * jobs.len() // and their index
                + jobs.schedule().len() + jobs.reserved().len() + jobs.expiring().len(),
            all.parts.dedupe.len(),
        ];
        let counts = [
            steps(|count| all.jobs.free_some(count)),
            steps(|count| all.parts.dedupe.make().free_some(count)),
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
        queue.parts.set_jobs_aside(&mut queue.jobs);
        let mut whole = Garbage::from(queue);
        let all: usize = counts.iter().sum();
        assert_eq!(steps(|count| whole.free_some(count)), all + 1);
    }
}

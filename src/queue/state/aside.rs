//! What a queue sets aside, to be freed in small steps.

use super::jobs::Jobs;
use super::parts::{Garbage, Parts};
use super::purged::{MANY, MANY_BYTES};
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
        if garbage.left() > MANY || garbage.heap_bytes() as u64 > MANY_BYTES {
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
    use crate::queue::add::Add;
    use crate::queue::budget::STEP_BYTES;
    use crate::queue::claim::Claim;
    use crate::queue::clock::{Mint, Now, When};
    use crate::queue::deliver::Pop;
    use crate::queue::effects::Effects;
    use crate::queue::job::State;
    use crate::queue::settings::SettingsChange;
    use crate::queue::state::defrag::tests::queue;
    use crate::queue::HashSeed;

    const STEP: usize = 100;
    fn now() -> Now {
        Now::from_ms(1_000_000)
    }

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
        // A whole queue, a part of which was set aside before, takes fewer: whole pages and nodes go for what they take.
        let mut queue = queue();
        queue.parts.set_jobs_aside(&mut queue.jobs);
        let mut whole = Garbage::from(queue);
        let all: usize = counts.iter().sum();
        let whole = steps(|count| whole.free_some(count));
        assert!((all / 10..=all + 1).contains(&whole), "{whole}, not {all}");
    }

    const LONG: usize = 64 * 1024;

    /// 150 ready jobs with long payloads that expire after a minute, and a delayed one. Those that are acknowledged are kept
    /// for as long.
    fn long_jobs(mint: &mut Mint, out: &mut Effects) -> Queue {
        let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        let change = SettingsChange {
            done_ttl_ms: Some(60_000),
            ..SettingsChange::default()
        };
        queue.configure_with(&change, now(), out).unwrap();
        let payload = vec![b'p'; LONG];
        for number in 0..=150u64 {
            let id = number.to_string();
            let add = Add {
                when: When::Delay(number / 150 * 120_000),
                ttl_ms: (number < 150).then_some(60_000),
                ..Add::new(Some(id.as_bytes()), &payload)
            };
            queue.add(&add, now(), mint, out).unwrap();
        }
        queue
    }

    /// A step of a hundred may free a few payloads more than its bytes allow.
    fn assert_bounded(way: &str, left: impl IntoIterator<Item = usize>) {
        let left = Vec::from_iter(left);
        let freed: Vec<usize> = left
            .windows(2)
            .map(|it| it[0].saturating_sub(it[1]))
            .collect();
        assert!(
            freed.iter().sum::<usize>() >= 150 * LONG,
            "{way}: {freed:?}"
        );
        assert!(
            freed.iter().all(|&it| it <= STEP * STEP_BYTES + 20 * LONG),
            "{way}: {freed:?}"
        );
    }

    #[test]
    fn long_payloads_are_freed_a_few_at_a_time() {
        let (mut mint, mut out) = (Mint::new(), Effects::default());
        let later = Now::from_ms(now().ms() + 60_000);

        let mut removed = Garbage::from(long_jobs(&mut mint, &mut out));
        let step = |_| {
            removed.free_some(STEP);
            removed.heap_bytes()
        };
        assert_bounded("removed", (0..50).map(step));

        let mut queue = long_jobs(&mut mint, &mut out);
        queue.purge(Some(State::Ready), now(), &mut out);
        let step = |_| {
            queue.work_off(STEP);
            queue.memory_bytes()
        };
        assert_bounded("purged", (0..50).map(step));

        let mut queue = long_jobs(&mut mint, &mut out);
        let step = |_| {
            queue.expire_overdue(later, STEP, &mut out);
            queue.memory_bytes()
        };
        assert_bounded("expired", (0..50).map(step));

        let mut queue = long_jobs(&mut mint, &mut out);
        let pop = Pop {
            count: 1,
            ..Pop::default()
        };
        let step = |_| {
            let mut budget = STEP;
            queue.take(&pop, later, &mut mint, &mut out, &mut budget, &mut |_| ());
            queue.memory_bytes()
        };
        assert_bounded("passed over", (0..50).map(step));

        let mut queue = long_jobs(&mut mint, &mut out);
        let pop = Pop {
            count: 150,
            ..Pop::default()
        };
        queue.pop(&pop, now(), &mut mint, &mut out, |_| ());
        for number in 0..150 {
            queue.ack(
                number.to_string().as_bytes(),
                Claim::Current,
                None,
                now(),
                &mut out,
            );
        }
        let step = |_| {
            queue.expire_overdue(later, STEP, &mut out);
            queue.memory_bytes()
        };
        assert_bounded("done", (0..50).map(step));
    }

    #[test]
    fn a_few_long_payloads_are_not_freed_at_once() {
        let (mut mint, mut out) = (Mint::new(), Effects::default());
        let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        for (id, when) in [(b"a", 0), (b"b", 60_000)] {
            let add = Add {
                when: When::Delay(when),
                ..Add::new(Some(id), &[b'p'; 1 << 20])
            };
            queue.add(&add, now(), &mut mint, &mut out).unwrap();
        }
        queue.purge(Some(State::Ready), now(), &mut out);
        assert!(queue.has_leftovers());
        queue.purge(None, now(), &mut out);
        assert!(queue.take_garbage().is_some());
    }
}

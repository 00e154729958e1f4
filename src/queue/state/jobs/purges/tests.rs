use super::*;
use crate::queue::add::{Add, Condition};
use crate::queue::claim::{Claim, Nack, NackKind};
use crate::queue::clock::{Mint, Now, When};
use crate::queue::deliver::Pop;
use crate::queue::effects::Effects;
use crate::queue::job::State;
use crate::queue::state::Queue;
use crate::queue::HashSeed;

const STATES: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

/// A queue, and all that is needed to work on it. What happens to it follows from the seed alone, except when purged
/// jobs are freed, which no command shows.
struct Stage {
    queue: Queue,
    mint: Mint,
    out: Effects,
    dice: u64,
    now_ms: u64,
}

impl Stage {
    fn new(seed: u64) -> Self {
        Stage {
            queue: Queue::new(&HashSeed::new([1, 2, 3, 4])),
            mint: Mint::new(),
            out: Effects::default(),
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            now_ms: 1_000_000,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        (self.dice >> 33) % n
    }

    fn now(&self) -> Now {
        Now::from_ms(self.now_ms)
    }

    fn add(&mut self) {
        let id = self.below(20_000).to_string();
        let when = match self.below(3) {
            0 => When::At(self.below(self.now_ms)),
            1 => When::Delay(0),
            _ => When::Delay(1 + self.below(10_000)),
        };
        let add = Add {
            when,
            condition: Condition::Replace,
            priority: [0, 0, 0, 0, -3, 1, 2, i32::MAX][self.below(8) as usize],
            ttl_ms: (self.below(10) == 0).then_some(60_000),
            ..Add::new(Some(id.as_bytes()), b"payload")
        };
        let now = self.now();
        let added = self.queue.add(&add, now, &mut self.mint, &mut self.out);
        added.unwrap();
    }

    /// Delivers some jobs, and gives a few of them back or up.
    fn deliver(&mut self) {
        let (count, now) = (1 + self.below(600), self.now());
        let pop = Pop {
            count,
            ..Pop::default()
        };
        let mut ids = Vec::new();
        self.queue
            .pop(&pop, now, &mut self.mint, &mut self.out, |job| {
                ids.push(job.id.to_vec());
            });
        for id in ids {
            if self.below(3) == 0 {
                let next = Add {
                    condition: Condition::Next,
                    when: When::Delay(self.below(5000)),
                    ttl_ms: (self.below(10) == 0).then_some(60_000),
                    ..Add::new(Some(&id), b"successor")
                };
                let added = self.queue.add(&next, now, &mut self.mint, &mut self.out);
                added.unwrap();
            }
            let nack = Nack {
                id: &id,
                claim: Claim::Current,
                delay_ms: Some(self.below(5000)),
                priority: None,
                kind: if self.below(2) == 0 {
                    NackKind::Fail
                } else {
                    NackKind::Fatal
                },
                reason: None,
                awaits: None,
                default_backoff: &[],
            };
            if self.below(2) == 0 {
                self.queue.nack(&nack, now, &mut self.out).unwrap();
            }
        }
    }

    fn lens(&self) -> [usize; 4] {
        STATES.map(|state| self.queue.at(self.now()).len(Some(state)))
    }

    /// All jobs of one state are removed, and nothing else.
    fn purge(&mut self) {
        let (number, now) = (self.below(4) as usize, self.now());
        self.queue.expire_overdue(now, usize::MAX, &mut self.out);
        let mut expected = self.lens();
        let state = Some(STATES[number]);
        let queue = &self.queue;
        let goes = |job| !queue.jobs.is_purged(job) && Some(queue.jobs.state_of(job, now)) == state;
        let successors = queue.jobs.successors().filter(|&(job, _)| goes(job));
        let successors = successors.count() as u64;
        let deleted = queue.totals.deleted;
        let count = self.queue.purge(state, now, &mut self.out);
        assert_eq!(self.queue.totals.deleted - deleted, count + successors);
        assert_eq!(count, std::mem::take(&mut expected[number]) as u64);
        assert_eq!(self.lens(), expected);
    }

    fn round(&mut self) {
        for _ in 0..self.below(3000) {
            self.add();
        }
        self.deliver();
        for _ in 0..1 + self.below(3) {
            self.purge();
        }
        self.now_ms += self.below(3000);
        self.out.clear();
    }

    fn digest(&self) -> Vec<u8> {
        let mut all = Vec::new();
        self.queue.digest(&mut |bytes| all.extend(bytes));
        all
    }
}

fn free(queue: &mut Queue, budget: usize) {
    queue.parts.free_purged(&mut queue.jobs, budget);
}

#[test]
fn it_is_all_the_same_when_they_are_buried() {
    for seed in 1..=5 {
        let (mut late, mut soon) = (Stage::new(seed), Stage::new(seed));
        let (mut budget, mut most) = (seed, 0);
        for _ in 0..40 {
            late.round();
            soon.round();
            most = most.max(late.queue.jobs.cold.make().purges.len());
            budget = budget.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            free(&mut late.queue, (budget >> 33) as usize % 4000);
            free(&mut soon.queue, usize::MAX);
            assert!(!soon.queue.jobs.has_purged());
            for stage in [&late, &soon] {
                stage.queue.check_invariants().unwrap();
            }
            assert!(late.digest() == soon.digest());
            assert!(late.queue.copied().check_invariants().is_ok());
        }
        assert!((3..=6).contains(&most), "{most} purges at a time");
        free(&mut late.queue, usize::MAX);
        assert_eq!(late.queue.jobs.len(), soon.queue.jobs.len());
    }
}

/// However many successors a purge removes with their jobs, it does not visit each.
#[test]
fn successors_cost_a_purge_nothing() {
    const JOBS: u64 = 60_000;
    let took = |followed: bool| {
        let mut stage = Stage::new(1);
        let now = stage.now();
        let mut add = |id: &str, condition| {
            let add = Add {
                condition,
                when: When::Delay(if id == "stays" { 1000 } else { 0 }),
                ..Add::new(Some(id.as_bytes()), b"payload")
            };
            let added = stage.queue.add(&add, now, &mut stage.mint, &mut stage.out);
            added.unwrap();
        };
        add("stays", Condition::New);
        (0..JOBS).for_each(|id| add(&id.to_string(), Condition::New));
        let pop = Pop {
            count: JOBS,
            ..Pop::default()
        };
        let (queue, out) = (&mut stage.queue, &mut stage.out);
        while queue.pop(&pop, now, &mut stage.mint, out, |_| ()) > 0 {}
        if followed {
            let mut next = |id: u64| {
                let id = id.to_string();
                let add = Add {
                    condition: Condition::Next,
                    ..Add::new(Some(id.as_bytes()), b"payload")
                };
                queue.add(&add, now, &mut stage.mint, out).unwrap();
            };
            (0..JOBS).for_each(&mut next);
        }
        let began = std::time::Instant::now();
        assert_eq!(queue.purge(Some(State::Reserved), now, out), JOBS);
        let took = began.elapsed();
        assert_eq!(queue.totals.deleted, JOBS * (1 + u64::from(followed)));
        took
    };
    let shortest = |followed| (0..5).map(|_| took(followed)).min().unwrap();
    let (plain, followed) = (shortest(false), shortest(true));
    println!("{plain:?} without, {followed:?} with successors");
    assert!(followed < 10 * plain, "{followed:?} instead of {plain:?}");
}

#[test]
fn purged_jobs_that_are_miscounted_are_found_out() {
    type Corruption = fn(&mut Queue);
    let corruptions: [Corruption; 5] = [
        |queue| queue.jobs.cold.make().purges[0].scheduled = Detached::default(),
        |queue| queue.jobs.cold.make().purges.clear(),
        |queue| queue.jobs.cold.make().purges[0].purged = Purged::Dues(0..=1),
        |queue| {
            let mut detached = queue.jobs.cold.make().purges[0].scheduled;
            queue.jobs.schedule.pop_detached(&mut detached);
        },
        |queue| queue.jobs.cold.make().purges[0].followed += 1,
    ];
    for (number, corrupt) in corruptions.into_iter().enumerate() {
        let mut stage = Stage::new(7);
        (0..1000).for_each(|_| stage.add());
        let now = stage.now();
        let state = Some(State::Delayed);
        assert!(stage.queue.purge(state, now, &mut stage.out) > 100);
        stage.queue.check_invariants().unwrap();
        corrupt(&mut stage.queue);
        let checked = stage.queue.check_invariants();
        assert!(checked.is_err(), "corruption {number} passed");
    }
}

//! Moving jobs of nearly empty pages together, so that these pages can be freed. This changes the handles of jobs, so
//! it is done only while nobody holds one.

use super::jobs::Jobs;
use super::parts::Parts;

impl Parts {
    /// Moves up to `budget` jobs; returns the unused budget. Not an effect: no command shows a difference.
    pub(super) fn gather(&mut self, jobs: &mut Jobs, budget: usize) -> usize {
        // Purged jobs, and a pass over groups, refer to handles that are not updated here.
        if jobs.has_purged() || self.is_passing() {
            return budget;
        }
        for left in (1..=budget).rev() {
            let Some(old) = jobs.misplaced() else {
                return jobs.gather_notes(left);
            };
            let at = jobs.position(old);
            self.unlink(jobs, old, &at);
            let new = jobs.move_misplaced(old);
            if let Some(flows) = &mut self.flows {
                flows.rename(old, new, jobs);
            }
            self.link(jobs, new, &at);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use crate::queue::add::{Add, Condition, Recur};
    use crate::queue::claim::{Claim, Nack, NackKind};
    use crate::queue::clock::{Mint, Now, When};
    use crate::queue::deliver::Pop;
    use crate::queue::effects::Effects;
    use crate::queue::recurring::rule::{Pattern, Rule};
    use crate::queue::state::defrag::tests::digest;
    use crate::queue::{HashSeed, Queue};

    const JOBS: u64 = 8_000;

    fn rule() -> Rule<'static> {
        Rule {
            pattern: Pattern::Every { ms: 5_000 },
            until: 0,
            times: 0,
            grace_ms: 0,
            jitter_ms: 0,
            ttl_ms: 0,
        }
    }

    /// Jobs in every state, some with groups, rules, TTLs, successors.
    fn queue(now: Now, mint: &mut Mint, out: &mut Effects) -> Queue {
        let mut queue = Queue::new(&HashSeed::new([1, 2, 3, 4]));
        for number in 0..JOBS {
            let id = number.to_string();
            let payload = vec![b'p'; (number % 5 * 90) as usize];
            let group = format!("group-{}", number % 70);
            let add = Add {
                when: When::Delay(number % 3 * (number % 5000)),
                priority: (number % 4) as i32 / 3,
                ttl_ms: number.is_multiple_of(7).then_some(90_000),
                max_attempts: Some(1),
                group: number.is_multiple_of(2).then_some(group.as_bytes()),
                recur: number.is_multiple_of(11).then_some(Recur {
                    rule: rule(),
                    is_timed: true,
                }),
                ..Add::new(Some(id.as_bytes()), &payload)
            };
            queue.add(&add, now, mint, out).unwrap();
            if number % 3 == 0 {
                let pop = Pop {
                    count: 1,
                    ..Pop::default()
                };
                let mut popped = Vec::new();
                queue.pop(&pop, now, mint, out, |job| popped = job.id.to_vec());
                let next = Add {
                    condition: Condition::Next,
                    ..Add::new(Some(&popped), b"the next")
                };
                if number % 2 == 0 {
                    let _ = queue.add(&next, now, mint, out);
                } else {
                    let nack = Nack {
                        id: &popped,
                        claim: Claim::Current,
                        delay_ms: None,
                        priority: None,
                        kind: NackKind::Fatal,
                        reason: Some(b"why"),
                        awaits: None,
                        default_backoff: &[],
                    };
                    queue.nack(&nack, now, out).unwrap();
                }
            }
        }
        queue
    }

    #[test]
    fn jobs_of_all_kinds_move_and_nothing_else_changes() {
        let (now, mut mint, mut out) = (Now::from_ms(1_000_000), Mint::new(), Effects::default());
        let mut queue = queue(now, &mut mint, &mut out);
        let full = queue.memory_bytes();
        for number in 0..JOBS {
            // In an order in which no page becomes empty.
            if !(number * 7919 % JOBS).is_multiple_of(20) {
                queue.delete(number.to_string().as_bytes(), false, now, &mut out);
            }
        }
        let places = [
            queue.jobs.schedule().len(),
            queue.jobs.reserved().len(),
            queue.jobs.dead().len(),
        ];
        assert!(
            places.iter().all(|&len| len > 0) && queue.jobs.followed().len() > 0,
            "{places:?}"
        );
        assert!(queue.has_leftovers());
        let (before, scattered) = (digest(&queue), queue.memory_bytes());
        let mut rounds = 0;
        while queue.has_leftovers() {
            queue.work_off(7);
            queue.check_invariants().unwrap();
            assert!(digest(&queue) == before);
            rounds += 1;
        }
        let gathered = queue.memory_bytes();
        assert!(rounds > 3, "{rounds}");
        assert!(
            gathered * 3 < scattered * 2,
            "{full}, {scattered}, {gathered} bytes"
        );
    }
}

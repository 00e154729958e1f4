//! What is left of a queue, or of the part of it that was purged: freed in small steps, because a
//! million jobs at once would hold up the server for a tenth of a second.

use super::dedupe::Memory;
use super::followed::Followed;
use super::purged::{Ghosts, MANY};
use super::schedule::Schedule;
use super::store::Store;
use super::Queue;
use crate::storage::skiplist::Skiplist;

/// Nothing refers to it any more.
pub struct Remains {
    jobs: Store,
    schedule: Schedule,
    lists: [Skiplist<u64>; 3],
    followed: Followed,
    memory: Memory,
    ghosts: Vec<Ghosts>,
    /// Of queues that this one had purged itself.
    older: Vec<Remains>,
}

impl Remains {
    /// How many jobs and ids are left.
    pub fn left(&self) -> usize {
        let older: usize = self.older.iter().map(Remains::left).sum();
        self.jobs.len() + self.memory.len() + older
    }

    /// Frees about `count` things; false once nothing is left.
    pub fn shed(&mut self, count: usize) -> bool {
        if let Some(older) = self.older.last_mut() {
            if !older.shed(count) {
                self.older.pop();
            }
            return true;
        }
        self.jobs.shed(count)
            || self.schedule.shed(count)
            || self.lists.iter_mut().any(|list| list.shed(count))
            || self.followed.shed(count)
            || self.memory.shed(count)
            || self.ghosts.iter_mut().any(|ghosts| ghosts.shed(count))
    }
}

impl From<Queue> for Remains {
    fn from(queue: Queue) -> Self {
        Remains {
            jobs: queue.jobs,
            schedule: queue.schedule,
            lists: [queue.reserved, queue.dead, queue.expiring],
            followed: queue.followed,
            memory: queue.memory,
            ghosts: queue.ghosts,
            older: queue.remains,
        }
    }
}

impl Queue {
    /// What was purged since the last call and is to be freed step by step.
    pub fn take_remains(&mut self) -> Option<Vec<Remains>> {
        (!self.remains.is_empty()).then(|| std::mem::take(&mut self.remains))
    }

    /// What is little is freed at once: to keep it would take more than it does.
    fn set_aside(&mut self, remains: Remains) {
        if remains.left() > MANY {
            self.remains.push(remains);
        }
    }

    /// Sets all jobs aside, as if there had never been any.
    pub(super) fn set_jobs_aside(&mut self) {
        self.ghost_bytes = 0;
        let hasher = self.jobs.hasher().clone();
        let remains = Remains {
            jobs: std::mem::replace(&mut self.jobs, Store::new(hasher.clone())),
            schedule: std::mem::take(&mut self.schedule),
            lists: [&mut self.reserved, &mut self.dead, &mut self.expiring].map(std::mem::take),
            followed: std::mem::take(&mut self.followed),
            memory: Memory::new(hasher),
            ghosts: std::mem::take(&mut self.ghosts),
            older: Vec::new(),
        };
        self.set_aside(remains);
    }

    /// Forgets all ids that DEDUPE remembers.
    pub(super) fn set_memory_aside(&mut self) {
        let hasher = self.jobs.hasher().clone();
        let remains = Remains {
            memory: std::mem::replace(&mut self.memory, Memory::new(hasher.clone())),
            jobs: Store::new(hasher),
            schedule: Schedule::default(),
            lists: Default::default(),
            followed: Followed::default(),
            ghosts: Vec::new(),
            older: Vec::new(),
        };
        self.set_aside(remains);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::state::relocate::tests::queue;

    const STEP: usize = 100;

    fn steps(mut shed: impl FnMut(usize) -> bool) -> usize {
        (0..100_000).take_while(|_| shed(STEP)).count()
    }

    #[test]
    fn all_is_freed_and_little_at_a_time() {
        let mut parts = Remains::from(queue());
        let [reserved, _, expiring] = &parts.lists;
        let lens = [
            2 * parts.jobs.len(), // and their index
            parts.schedule.len(),
            reserved.len(),
            expiring.len(),
            parts.memory.len(),
        ];
        let [reserved, _, expiring] = &mut parts.lists;
        let counts = [
            steps(|count| parts.jobs.shed(count)),
            steps(|count| parts.schedule.shed(count)),
            steps(|count| reserved.shed(count)),
            steps(|count| expiring.shed(count)),
            steps(|count| parts.memory.shed(count)),
        ];
        for (len, count) in lens.into_iter().zip(counts) {
            let expected = len.div_ceil(STEP);
            assert!(expected > 20);
            assert!(
                (expected * 3 / 4..=4 * expected).contains(&count),
                "{len} in {count}"
            );
        }
        // The same in one, of which a part had been set aside before: one step more tells that it is gone.
        let mut queue = queue();
        queue.set_jobs_aside();
        let mut whole = Remains::from(queue);
        let all: usize = counts.iter().sum();
        assert_eq!(steps(|count| whole.shed(count)), all + 1);
    }
}

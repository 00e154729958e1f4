//! The numbers of jobs in the orders of adding and of dying. Only their order means something: two servers
//! that hold the same queue may have different ones.

use super::store::Course;
use super::Queue;
use crate::queue::job::{Handle, Place, SEQ_MAX};

impl Queue {
    /// Whether each job has numbers of its own in the orders of adding and of dying. In a forged payload
    /// two may share one: their order is then by chance, and not the same on a replica.
    pub fn has_distinct_numbers(&self) -> bool {
        let seqs = self.seqs().collect();
        let dead = self.dead.iter();
        let deaths = dead.map(|(_, h)| self.jobs.job(h).life().death).collect();
        [seqs, deaths].into_iter().all(|mut numbers: Vec<u64>| {
            numbers.sort_unstable();
            numbers.is_sorted_by(|a, b| a < b)
        })
    }

    pub(super) fn count_death(&mut self) {
        if self.deaths >= SEQ_MAX {
            self.number_anew();
        }
        self.deaths += 1;
    }

    /// Gives all jobs small numbers in the same orders, so that there is room to count on. Jobs that share a number
    /// share one afterwards, so no list changes its order.
    #[cold]
    pub(super) fn number_anew(&mut self) {
        self.look_at_groups(usize::MAX);
        if self.flows.is_some() {
            self.free_purged(usize::MAX);
        }
        let handles: Vec<Handle> = self.jobs.handles().collect();
        let mut seqs: Vec<u64> = handles.iter().map(|&h| self.jobs.job(h).seq()).collect();
        let mut deaths: Vec<u64> = handles
            .iter()
            .map(|&h| self.jobs.job(h).life().death)
            .collect();
        seqs.extend(self.done.iter().map(|it| self.done.get(it).seq));
        for numbers in [&mut seqs, &mut deaths] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        let rank = |of: &[u64], number: u64| of.partition_point(|&other| other < number) as u64 + 1;
        for handle in handles {
            let job = self.jobs.job(handle);
            let (seq, mut course) = (rank(&seqs, job.seq()), job.course());
            if let Course {
                place: Place::Dead, ..
            } = course
            {
                course.life.death = rank(&deaths, course.life.death);
                self.jobs.set_course(handle, course);
            }
            self.jobs.set_seq(handle, seq);
        }
        if let Some(done) = self.done.made() {
            done.number_anew(|seq| rank(&seqs, seq), self.jobs.hasher());
        }
        self.number_groups_anew();
        self.number_flows_anew();
        (self.seq, self.deaths) = (seqs.len() as u64, deaths.len() as u64);
    }
}

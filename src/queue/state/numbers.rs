//! The numbers of jobs in the orders of adding and of dying. Only their order means something: two servers
//! that hold the same queue may have different ones.

use super::Queue;
use crate::queue::job::SEQ_MAX;

impl Queue {
    /// Whether each job has numbers of its own in the orders of adding and of dying. In a forged payload
    /// two may share one: their order is then by chance, and not the same on a replica.
    pub fn has_distinct_numbers(&self) -> bool {
        let seqs = self.seqs().collect();
        let dead = self.jobs.dead().iter();
        let deaths = dead.map(|(_, h)| self.jobs.job(h).life().death).collect();
        [seqs, deaths].into_iter().all(|mut numbers: Vec<u64>| {
            numbers.sort_unstable();
            numbers.is_sorted_by(|a, b| a < b)
        })
    }

    pub(super) fn count_death(&mut self) {
        if self.jobs.numbers.deaths >= SEQ_MAX {
            self.number_anew();
        }
        self.jobs.numbers.deaths += 1;
    }

    /// Gives all jobs small numbers in the same orders, so that there is room to count on. Jobs that share a number
    /// share one afterwards, so no list changes its order.
    #[cold]
    pub(super) fn number_anew(&mut self) {
        self.parts.update_groups(&self.jobs, usize::MAX);
        if self.parts.flows.is_some() {
            self.free_purged(usize::MAX);
        }
        let mut seqs: Vec<u64> = self.jobs.handles().map(|it| self.jobs.seq(it)).collect();
        let deaths = self.jobs.handles().map(|it| self.jobs.job(it).life().death);
        let mut deaths: Vec<u64> = deaths.collect();
        seqs.extend(self.parts.done.iter().map(|it| self.parts.done.get(it).seq));
        for numbers in [&mut seqs, &mut deaths] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        let rank = |of: &[u64], number: u64| of.partition_point(|&other| other < number) as u64 + 1;
        let seq = |seq| rank(&seqs, seq);
        self.jobs.number_anew(seq, |death| rank(&deaths, death));
        if let Some(done) = self.parts.done.made() {
            done.number_anew(seq, self.jobs.hasher());
        }
        if let Some(groups) = &mut self.parts.groups {
            groups.number_anew(&self.jobs);
        }
        (self.jobs.numbers.seq, self.jobs.numbers.deaths) =
            (seqs.len() as u64, deaths.len() as u64);
    }
}

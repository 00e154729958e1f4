//! Assigns jobs that are gone to what may have removed them, each of which has a limited number of places. A job
//! without a place is lost.

use std::collections::{HashMap, HashSet};

use super::Entry;

#[derive(Default)]
pub struct Places {
    /// For each job, the removers that may have a place for it.
    wishes: Vec<Vec<usize>>,
    removers: Vec<Remover>,
    numbers: HashMap<*const Entry, usize>,
}

struct Remover {
    room: u64,
    jobs: Vec<usize>,
}

impl Places {
    /// Adds a job, and what may have removed it: an entry, and how many jobs that can have removed.
    pub fn want<'a>(&mut self, removers: impl Iterator<Item = (&'a Entry, u64)>) {
        let wishes = removers.map(|(entry, room)| {
            let number = self.numbers.entry(std::ptr::from_ref(entry));
            *number.or_insert_with(|| {
                let jobs = Vec::new();
                self.removers.push(Remover { room, jobs });
                self.removers.len() - 1
            })
        });
        let wishes = wishes.collect();
        self.wishes.push(wishes);
    }

    /// The numbers of the jobs for which there is no place.
    pub fn left_over(mut self) -> Vec<usize> {
        let all = 0..self.wishes.len();
        let left = all.filter(|&job| !self.place(job, &mut HashSet::new()));
        left.collect()
    }

    /// Finds a place for a job, if need be by moving other jobs (bipartite matching).
    fn place(&mut self, job: usize, asked: &mut HashSet<usize>) -> bool {
        for at in 0..self.wishes[job].len() {
            let number = self.wishes[job][at];
            if !asked.insert(number) {
                continue;
            }
            let remover = &mut self.removers[number];
            if (remover.jobs.len() as u64) < remover.room {
                remover.jobs.push(job);
                return true;
            }
            for at in 0..self.removers[number].jobs.len() {
                if self.place(self.removers[number].jobs[at], asked) {
                    self.removers[number].jobs[at] = job;
                    return true;
                }
            }
        }
        false
    }
}

//! Jobs that are gone, and what may have removed them: so many places each. Whoever finds none is lost.

use std::collections::{HashMap, HashSet};

use super::Entry;

#[derive(Default)]
pub struct Places {
    /// Where each job may have a place.
    wishes: Vec<Vec<usize>>,
    removers: Vec<Remover>,
    numbers: HashMap<*const Entry, usize>,
}

struct Remover {
    room: u64,
    jobs: Vec<usize>,
}

impl Places {
    /// One more job, and what may have removed it: an entry, and how many jobs that can have been.
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

    /// The jobs for which there is no place, by their numbers.
    pub fn left_over(mut self) -> Vec<usize> {
        let all = 0..self.wishes.len();
        let left = all.filter(|&job| !self.place(job, &mut HashSet::new()));
        left.collect()
    }

    /// Also where another job has to move for it.
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

//! Which jobs of each group are delayed, ready or reserved.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use redis_dq::queue::job::Place;

use super::job::Job;

#[derive(Clone, Debug, Default)]
pub struct Groups(HashMap<Rc<[u8]>, Group>);

#[derive(Clone, Debug, Default)]
pub struct Group {
    /// By the order of adding.
    live: BTreeSet<u64>,
    pub reserved: u64,
}

impl Group {
    /// Whether the job is the first of its group, and no other is reserved.
    pub fn is_its_turn(&self, job: &Job) -> bool {
        self.reserved == 0 && self.live.first().is_none_or(|&first| first >= job.seq)
    }
}

impl Groups {
    /// The group of a job, if it has other jobs.
    pub fn of(&self, job: &Job) -> Option<&Group> {
        self.0.get(job.group.as_ref()?)
    }

    pub fn enter(&mut self, job: &Job) {
        let Some(name) = job.group.as_ref().filter(|_| is_live(job)) else {
            return;
        };
        let group = self.0.entry(Rc::clone(name)).or_default();
        group.live.insert(job.seq);
        group.reserved += u64::from(job.place == Place::Reserved);
    }

    pub fn leave(&mut self, job: &Job) {
        let Some(name) = job.group.as_ref().filter(|_| is_live(job)) else {
            return;
        };
        let Some(group) = self.0.get_mut(name) else {
            return;
        };
        group.live.remove(&job.seq);
        group.reserved -= u64::from(job.place == Place::Reserved).min(group.reserved);
        if group.live.is_empty() {
            self.0.remove(name);
        }
    }
}

fn is_live(job: &Job) -> bool {
    matches!(job.place, Place::Scheduled | Place::Reserved)
}

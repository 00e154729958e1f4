//! Which jobs would stay where they are if they were moved, and why: what `act.lua` decides, told before.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use super::records::{After, Job};

/// Jobs that are told.
const TOLD: usize = 5;
const AWAITED: &str = "blocked jobs wait for it";
const AWAITED_GROUP: &str = "blocked jobs wait for its group";

/// Ids and names of groups as their hashes: there may be millions.
#[derive(Default)]
pub struct Stays {
    hashes: RandomState,
    seen: HashSet<u64>,
    /// Those that go as far as is known, each with its group.
    going: HashMap<u64, Option<u64>>,
    /// The first ids of each group, and the groups that blocked jobs wait for.
    of_group: HashMap<u64, Vec<Vec<u8>>>,
    awaited: HashSet<u64>,
    count: usize,
    told: Vec<(Vec<u8>, &'static str)>,
}

impl Stays {
    /// A job that is to be moved; whether it was not named before.
    pub fn moves(&mut self, job: &Job) -> bool {
        let own = self.hashes.hash_one(&job.id);
        if !self.seen.insert(own) {
            return false;
        }
        if let Some(why) = own_reason(job) {
            self.stays(&job.id, why);
            return true;
        }
        let group = job.group.as_ref().filter(|_| job.state != "dead");
        let group = group.map(|name| self.hashes.hash_one(name));
        self.going.insert(own, group);
        if let Some(group) = group {
            let first = self.of_group.entry(group).or_default();
            if first.len() < TOLD {
                first.push(job.id.clone());
            }
        }
        true
    }

    /// A blocked job, after all that are to be moved.
    pub fn see(&mut self, job: &Job) {
        match &job.after {
            Some(After::Jobs { ids, .. }) => {
                for id in ids {
                    if self.going.remove(&self.hashes.hash_one(id)).is_some() {
                        self.stays(id, AWAITED);
                    }
                }
            }
            Some(After::Group(name)) => {
                self.awaited.insert(self.hashes.hash_one(name));
            }
            None => {}
        }
    }

    fn stays(&mut self, id: &[u8], why: &'static str) {
        self.count += 1;
        if self.told.len() < TOLD {
            self.told.push((id.to_vec(), why));
        }
    }

    /// How many stay, and the first ones with their reasons.
    pub fn told(mut self) -> (usize, Vec<(Vec<u8>, &'static str)>) {
        let of_group = self.going.values().flatten();
        self.count += of_group.filter(|it| self.awaited.contains(it)).count();
        for id in self.awaited.iter().filter_map(|it| self.of_group.get(it)) {
            let left = id
                .iter()
                .filter(|id| self.going.contains_key(&self.hashes.hash_one(id)));
            self.told.extend(left.map(|id| (id.clone(), AWAITED_GROUP)));
        }
        self.told.truncate(TOLD);
        (self.count, self.told)
    }
}

fn own_reason(job: &Job) -> Option<&'static str> {
    let reasons = [
        (job.state == "reserved", "a worker has it"),
        (job.state == "blocked", "it is blocked"),
        (job.state == "done", "it is done"),
        (job.rule.is_some(), "it is a recurring job"),
        (job.awaits.is_some(), "it waits for a signal"),
        (!job.steps.is_empty(), "it has steps"),
        (job.successor.is_some(), "it has a successor"),
        (!job.results.is_empty(), "it has results of others"),
    ];
    let reason = reasons.into_iter().find(|(is, _)| *is);
    reason.map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_and_why() {
        let job = |id: &str, state: &str, group: Option<&str>| Job {
            id: id.into(),
            state: state.to_owned(),
            group: group.map(Into::into),
            ..Job::default()
        };
        let mut stays = Stays::default();
        for job in [
            job("goes", "ready", None),
            job("dead", "dead", Some("g")),
            job("of group", "ready", Some("g")),
            job("another", "delayed", Some("g")),
            job("awaited", "delayed", Some("h")),
            Job {
                awaits: Some(b"paid".to_vec()),
                ..job("signal", "delayed", None)
            },
            job("held", "reserved", None),
        ] {
            assert!(stays.moves(&job) && !stays.moves(&job));
        }
        let ids = vec![b"awaited".to_vec(), b"stranger".to_vec()];
        let on_dead = "run".to_owned();
        for after in [After::Jobs { ids, on_dead }, After::Group(b"g".to_vec())] {
            stays.see(&Job {
                after: Some(after),
                ..job("blocked", "blocked", None)
            });
        }
        let (count, told) = stays.told();
        let told: Vec<_> = told
            .iter()
            .map(|(id, why)| (std::str::from_utf8(id).unwrap(), *why))
            .collect();
        let expected = [
            ("signal", "it waits for a signal"),
            ("held", "a worker has it"),
            ("awaited", AWAITED),
            ("of group", AWAITED_GROUP),
            ("another", AWAITED_GROUP),
        ];
        assert_eq!((count, told.as_slice()), (5, &expected[..]));
    }
}

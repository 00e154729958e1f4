//! What comes of deleting jobs. Those that wait for one of them die, unless with ONDEAD RUN, and with ONDEAD DIE also
//! those that wait for one that dies. Those with ONDEAD RUN are freed once nothing is left that they wait for, and those
//! that wait for a group once it is empty.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use super::records::{After, Job};

/// Ids that are told.
const TOLD: usize = 5;

/// How many, and the first ids, as far as they are known.
pub type Told = (usize, Vec<Vec<u8>>);

/// Ids and names of groups as their hashes: there may be millions.
#[derive(Default)]
pub struct Deaths {
    hashes: RandomState,
    deleted: HashSet<u64>,
    dying: HashSet<u64>,
    freed: HashSet<u64>,
    /// Jobs with ONDEAD RUN, and for how many others they still wait.
    running: HashMap<u64, usize>,
    /// Jobs with ONDEAD DIE or RUN, by those that they wait for.
    behind: HashMap<u64, Vec<u64>>,
    /// The groups that blocked jobs wait for, each with them.
    awaited: HashMap<u64, (Vec<u8>, Vec<Vec<u8>>)>,
    /// The group of each blocked job, and how many jobs each group loses.
    groups: HashMap<u64, u64>,
    lost: HashMap<u64, u64>,
    /// Deleted jobs that would have run once more.
    pub successors: usize,
    told: [Vec<Vec<u8>>; 2],
}

impl Deaths {
    /// Whether this id was not named before.
    pub fn delete(&mut self, id: &[u8]) -> bool {
        self.deleted.insert(self.hashes.hash_one(id))
    }

    /// As `delete`, of a job that was read.
    pub fn delete_job(&mut self, job: &Job) -> bool {
        let is_new = self.delete(&job.id);
        if is_new {
            self.successors += usize::from(job.successor.is_some());
            let holds = !["dead", "done"].contains(&job.state.as_str());
            if let Some(group) = job.group.as_ref().filter(|_| holds) {
                *self.lost.entry(self.hashes.hash_one(group)).or_default() += 1;
            }
        }
        is_new
    }

    /// Takes in a blocked job, after all that are deleted.
    pub fn see(&mut self, job: &Job) {
        let own = self.hashes.hash_one(&job.id);
        if self.deleted.contains(&own) {
            return;
        }
        if let Some(group) = &job.group {
            self.groups.insert(own, self.hashes.hash_one(group));
        }
        match &job.after {
            Some(After::Jobs { ids, on_dead }) => self.waits(own, &job.id, ids, on_dead),
            Some(After::Group(name)) => {
                let hash = self.hashes.hash_one(name);
                let (_, all) = self
                    .awaited
                    .entry(hash)
                    .or_insert((name.clone(), Vec::new()));
                all.push(job.id.clone());
            }
            None => {}
        }
    }

    fn waits(&mut self, own: u64, id: &[u8], ids: &[Vec<u8>], on_dead: &str) {
        let ids = ids.iter().map(|id| self.hashes.hash_one(id));
        let (gone, left): (Vec<u64>, Vec<u64>) = ids.partition(|id| self.deleted.contains(id));
        let is_run = on_dead == "run";
        if gone.is_empty() || (is_run && !left.is_empty()) {
            if is_run {
                self.running.insert(own, left.len());
            }
            if on_dead != "wait" {
                left.iter()
                    .for_each(|id| self.behind.entry(*id).or_default().push(own));
            }
            return;
        }
        let all = if is_run {
            &mut self.freed
        } else {
            &mut self.dying
        };
        let told = &mut self.told[usize::from(is_run)];
        if all.insert(own) && told.len() < TOLD {
            told.push(id.to_vec());
        }
    }

    /// Those that die of others that die. Returns the groups that lose jobs, and for which blocked jobs wait.
    pub fn follow(&mut self) -> Vec<Vec<u8>> {
        let mut left: Vec<u64> = self.dying.iter().copied().collect();
        while let Some(id) = left.pop() {
            if let Some(group) = self.groups.get(&id) {
                *self.lost.entry(*group).or_default() += 1;
            }
            for next in self.behind.remove(&id).unwrap_or_default() {
                match self.running.get_mut(&next) {
                    None if self.dying.insert(next) => left.push(next),
                    None => {}
                    Some(others) => {
                        *others -= 1;
                        if *others == 0 {
                            self.freed.insert(next);
                        }
                    }
                }
            }
        }
        let lost = self.lost.keys().filter_map(|group| self.awaited.get(group));
        lost.map(|(name, _)| name.clone()).collect()
    }

    /// So many jobs are in this group now, of which some go.
    pub fn holds(&mut self, group: &[u8], count: u64) {
        let hash = self.hashes.hash_one(group);
        if self.lost.get(&hash).is_none_or(|lost| *lost < count) {
            return;
        }
        for id in self.awaited.remove(&hash).into_iter().flat_map(|it| it.1) {
            let own = self.hashes.hash_one(&id);
            if !self.dying.contains(&own) && self.freed.insert(own) && self.told[1].len() < TOLD {
                self.told[1].push(id);
            }
        }
    }

    pub fn dying(&self) -> Told {
        (self.dying.len(), self.told[0].clone())
    }

    pub fn freed(&self) -> Told {
        (self.freed.len(), self.told[1].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, after: Option<After>) -> Job {
        Job {
            id: id.into(),
            after,
            ..Job::default()
        }
    }

    fn of_group(mut job: Job, group: &str, state: &str) -> Job {
        (job.group, job.state) = (Some(group.into()), state.to_owned());
        job
    }

    fn after(ids: &[&str], on_dead: &str) -> Option<After> {
        let ids = ids.iter().map(|id| id.as_bytes().to_vec()).collect();
        let on_dead = on_dead.to_owned();
        Some(After::Jobs { ids, on_dead })
    }

    #[test]
    fn who_dies_of_whom_and_who_is_freed() {
        let mut deaths = Deaths::default();
        assert!(deaths.delete(b"a") && deaths.delete(b"b") && !deaths.delete(b"a"));
        for (id, ids, on_dead) in [
            // What comes of a death may be seen before it.
            ("third", &["second"][..], "die"),
            ("second", &["first", "x"], "die"),
            ("first", &["x", "a"], "wait"),
            ("b", &["a"], "die"),
            ("runs", &["a", "b"], "run"),
            ("runs later", &["first", "third", "a"], "run"),
            ("still waits", &["first", "x"], "run"),
            ("waits", &["first"], "wait"),
        ] {
            deaths.see(&job(id, after(ids, on_dead)));
        }
        assert_eq!(deaths.follow(), [b""; 0]);
        assert_eq!(deaths.dying(), (3, vec![b"first".to_vec()]));
        assert_eq!(deaths.freed(), (2, vec![b"runs".to_vec()]));
    }

    #[test]
    fn a_group_that_becomes_empty_frees_those_that_wait_for_it() {
        let mut deaths = Deaths::default();
        let mut ready = of_group(job("a", None), "g", "ready");
        ready.successor = Some(super::super::records::Cut::default());
        for job in [
            &ready,
            &of_group(job("dead", None), "h", "dead"),
            &of_group(job("i", None), "i", "ready"),
        ] {
            assert!(deaths.delete_job(job) && !deaths.delete_job(job));
        }
        deaths.see(&of_group(job("b", after(&["a"], "wait")), "g", "blocked"));
        for group in ["g", "h", "i"] {
            let group = Some(After::Group(group.into()));
            deaths.see(&job("callback", group.clone()));
            deaths.see(&job("another", group));
        }
        let mut lost = deaths.follow();
        lost.sort();
        assert_eq!(lost, [b"g", b"i"], "h had only a dead one");
        deaths.holds(b"i", 2);
        assert_eq!(deaths.freed().0, 0, "one more is in it");
        deaths.holds(b"g", 2);
        let told = vec![b"callback".to_vec(), b"another".to_vec()];
        assert_eq!((deaths.dying().0, deaths.freed()), (1, (2, told)));
        assert_eq!(deaths.successors, 1);
    }
}

//! Which blocked jobs die if others are deleted: those that wait for one of them, unless with ONDEAD RUN, and with
//! ONDEAD DIE also those that wait for one that dies.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use super::records::After;

/// Ids that are told.
const TOLD: usize = 5;

/// Ids as their hashes: there may be millions.
#[derive(Default)]
pub struct Deaths {
    hashes: RandomState,
    deleted: HashSet<u64>,
    dying: HashSet<u64>,
    /// Jobs with ONDEAD DIE, by those that they wait for.
    behind: HashMap<u64, Vec<u64>>,
    /// The first that die.
    pub told: Vec<Vec<u8>>,
}

impl Deaths {
    /// Whether this id was not named before.
    pub fn delete(&mut self, id: &[u8]) -> bool {
        self.deleted.insert(self.hashes.hash_one(id))
    }

    pub fn spare(&mut self, id: &[u8]) {
        self.deleted.remove(&self.hashes.hash_one(id));
    }

    /// Takes in a blocked job, after all that are deleted.
    pub fn see(&mut self, id: &[u8], after: &After) {
        let own = self.hashes.hash_one(id);
        let After::Jobs { ids, on_dead } = after else {
            return;
        };
        if on_dead == "run" || self.deleted.contains(&own) {
            return;
        }
        let ids = ids.iter().map(|id| self.hashes.hash_one(id));
        let ids: Vec<u64> = ids.collect();
        if ids.iter().any(|id| self.deleted.contains(id)) {
            if self.dying.insert(own) && self.told.len() < TOLD {
                self.told.push(id.to_vec());
            }
        } else if on_dead == "die" {
            for id in ids {
                self.behind.entry(id).or_default().push(own);
            }
        }
    }

    /// How many die.
    pub fn count(&self) -> usize {
        let mut all = self.dying.clone();
        let mut left: Vec<u64> = all.iter().copied().collect();
        while let Some(id) = left.pop() {
            let next = self.behind.get(&id).map_or(&[][..], Vec::as_slice);
            left.extend(next.iter().filter(|it| all.insert(**it)));
        }
        all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(after: &[&str], on_dead: &str) -> After {
        let ids = after.iter().map(|id| id.as_bytes().to_vec()).collect();
        let on_dead = on_dead.to_owned();
        After::Jobs { ids, on_dead }
    }

    #[test]
    fn who_dies_of_whom() {
        let mut deaths = Deaths::default();
        assert!(deaths.delete(b"a") && deaths.delete(b"b") && !deaths.delete(b"a"));
        assert!(deaths.delete(b"spared"));
        deaths.spare(b"spared");
        for (id, after, on_dead) in [
            // What comes of a death may be seen before it.
            ("third", &["second"][..], "die"),
            ("second", &["first", "x"], "die"),
            ("first", &["x", "a"], "wait"),
            ("b", &["a"], "die"),
            ("runs", &["a"], "run"),
            ("waits", &["first"], "wait"),
            ("goes on", &["spared"], "die"),
        ] {
            deaths.see(id.as_bytes(), &waits(after, on_dead));
        }
        assert_eq!(deaths.count(), 3);
        assert_eq!(deaths.told, [b"first".to_vec()]);
    }
}

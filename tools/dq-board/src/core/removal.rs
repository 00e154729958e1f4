//! In which order blocked jobs are removed: whoever waits goes before what it waits for. Otherwise what one step removes
//! would free or kill what a later step is about to remove.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use dq_watch::read::detail::After;

/// A job, or a group with all its jobs.
#[derive(Default)]
struct Place {
    /// None: it is not removed, or a group.
    id: Option<Vec<u8>>,
    /// What it waits for; of a group its jobs.
    before: Vec<usize>,
    /// How many wait for it.
    waiters: usize,
}

#[derive(Default)]
pub struct Removal {
    hashes: RandomState,
    /// By the hash of a job's id, or of a group's name.
    found: HashMap<(bool, u64), usize>,
    places: Vec<Place>,
}

impl Removal {
    fn place(&mut self, is_group: bool, name: &[u8]) -> usize {
        let next = self.places.len();
        let hash = self.hashes.hash_one(name);
        let place = *self.found.entry((is_group, hash)).or_insert(next);
        if place == next {
            self.places.push(Place::default());
        }
        place
    }

    fn waits(&mut self, who: usize, what: usize) {
        self.places[who].before.push(what);
        self.places[what].waiters += 1;
    }

    /// Takes in a blocked job, once.
    pub fn add(&mut self, id: Vec<u8>, group: Option<&[u8]>, after: Option<&After>) {
        let own = self.place(false, &id);
        let ids = match after {
            Some(After::Jobs { ids, .. }) => ids.as_slice(),
            _ => &[],
        };
        for id in ids {
            let before = self.place(false, id);
            self.waits(own, before);
        }
        if let Some(After::Group(name)) = after {
            let before = self.place(true, name);
            self.waits(own, before);
        }
        if let Some(group) = group {
            let group = self.place(true, group);
            self.waits(group, own);
        }
        self.places[own].id = Some(id);
    }

    /// All jobs, in order. What seems to wait for itself, as not all was read at one moment, comes last.
    pub fn ids(mut self) -> Vec<Vec<u8>> {
        let free = self.places.iter().enumerate();
        let free = free.filter(|(_, place)| place.waiters == 0);
        let mut next: Vec<usize> = free.map(|(at, _)| at).collect();
        let mut ids = Vec::new();
        while let Some(at) = next.pop() {
            ids.extend(self.places[at].id.take());
            for before in std::mem::take(&mut self.places[at].before) {
                let waiters = &mut self.places[before].waiters;
                *waiters -= 1;
                if *waiters == 0 {
                    next.push(before);
                }
            }
        }
        ids.extend(self.places.into_iter().filter_map(|place| place.id));
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ids: &[&str]) -> After {
        After::Jobs {
            ids: ids.iter().map(|id| id.as_bytes().to_vec()).collect(),
            on_dead: "wait".to_owned(),
        }
    }

    #[test]
    fn who_waits_goes_first() {
        let mut order = Removal::default();
        let group = After::Group(b"g".to_vec());
        for (id, of, after) in [
            ("b", None, after(&["a", "x"])),
            ("d", None, after(&["b", "c"])),
            ("a", Some(b"g".as_slice()), after(&["x"])),
            ("c", None, after(&["a"])),
            ("e", None, group),
        ] {
            order.add(id.into(), of, Some(&after));
        }
        let ids = order.ids();
        let at = |id: &[u8]| ids.iter().position(|it| it == id);
        assert_eq!(ids.len(), 5, "x is not removed");
        assert!(at(b"d") < at(b"b") && at(b"d") < at(b"c"));
        assert!(at(b"b") < at(b"a") && at(b"c") < at(b"a"));
        assert!(at(b"e") < at(b"a"), "a is in its group");
    }

    #[test]
    fn what_seems_to_wait_for_itself_is_not_lost() {
        let mut order = Removal::default();
        order.add(b"a".to_vec(), None, Some(&after(&["b"])));
        order.add(b"b".to_vec(), None, Some(&after(&["a"])));
        assert_eq!(order.ids().len(), 2);
    }
}

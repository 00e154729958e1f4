//! The known queues of a node, which of them are read next, and the search for more.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::model::QueueKey;

/// Queues read in one round, so that thousands of them cost the server no more than this many.
pub const AT_ONCE: usize = 200;

/// Keys that one step of SCAN looks at: 0.1 ms of the server's time, a millisecond where all of them
/// are far from its caches.
pub const SCAN_COUNT: usize = 500;

/// Steps in one round: until all databases have been searched once, then while queues are missing.
const STEPS_AT_FIRST: usize = 20;
const STEPS_MISSING: usize = 3;

/// How long a queue is still asked for after its key disappeared.
const KEPT: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Known {
    list: Vec<QueueKey>,
    places: HashMap<QueueKey, usize>,
    gone_since: HashMap<QueueKey, Instant>,
    /// The place of the queue that was last read in turn.
    next: usize,
}

impl Known {
    /// Adds a queue; returns whether it is new.
    pub fn add(&mut self, key: QueueKey) -> bool {
        if self.places.contains_key(&key) {
            return false;
        }
        self.places.insert(key.clone(), self.list.len());
        self.list.push(key);
        true
    }

    pub fn remove(&mut self, key: &QueueKey) {
        self.gone_since.remove(key);
        let Some(place) = self.places.remove(key) else {
            return;
        };
        self.list.swap_remove(place);
        if let Some(moved) = self.list.get(place) {
            self.places.insert(moved.clone(), place);
        }
    }

    pub fn is_there(&mut self, key: &QueueKey) {
        self.gone_since.remove(key);
    }

    /// Records that the key is missing; returns whether that lasted so long that the queue is forgotten.
    pub fn is_gone(&mut self, key: &QueueKey, now: Instant) -> bool {
        let since = *self.gone_since.entry(key.clone()).or_insert(now);
        let forgotten = now.saturating_duration_since(since) > KEPT;
        if forgotten {
            self.remove(key);
        }
        forgotten
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many queues have a key, as far as known.
    pub fn there(&self) -> usize {
        self.list.len() - self.gone_since.len()
    }

    /// The queues to read: those on the screen, and some of the others in turn. By database, so that few SELECTs do.
    pub fn round(&mut self, visible: &[QueueKey]) -> Vec<QueueKey> {
        let mut chosen = HashSet::new();
        let mut round = Vec::new();
        let of_ours = visible.iter().filter(|key| self.places.contains_key(key));
        for key in of_ours.take(AT_ONCE) {
            if chosen.insert(key) {
                round.push(key.clone());
            }
        }
        for _ in 0..self.list.len() {
            if round.len() == AT_ONCE {
                break;
            }
            self.next = (self.next + 1) % self.list.len();
            let key = &self.list[self.next];
            if !chosen.contains(key) {
                round.push(key.clone());
            }
        }
        round.sort_by_key(|key| key.db);
        round
    }
}

/// A walk through a database, some keys at a time, again and again.
pub struct Search {
    dbs: Vec<Walk>,
    turn: usize,
}

struct Walk {
    db: u32,
    cursor: Vec<u8>,
    rounds: u64,
}

impl Search {
    pub fn new(dbs: impl IntoIterator<Item = u32>) -> Search {
        let walk = |db| Walk {
            db,
            cursor: b"0".to_vec(),
            rounds: 0,
        };
        Search {
            dbs: dbs.into_iter().map(walk).collect(),
            turn: 0,
        }
    }

    /// Adds a database that has keys.
    pub fn add(&mut self, db: u32) {
        if !self.dbs.iter().any(|walk| walk.db == db) {
            self.dbs.extend(Search::new([db]).dbs);
        }
    }

    /// Whether all databases have been searched once.
    pub fn complete(&self) -> bool {
        self.dbs.iter().all(|walk| walk.rounds > 0)
    }

    /// How many steps this round may take.
    pub fn steps(&self, queues_missing: bool) -> usize {
        match (self.complete(), queues_missing) {
            (false, _) => STEPS_AT_FIRST,
            (true, true) => STEPS_MISSING,
            (true, false) => self.dbs.len().min(1),
        }
    }

    /// The next step: (db, cursor). Databases that were never searched come first.
    pub fn step(&mut self) -> Option<(u32, Vec<u8>)> {
        if self.dbs.is_empty() {
            return None;
        }
        let unseen = self.dbs.iter().position(|walk| walk.rounds == 0);
        self.turn = unseen.unwrap_or((self.turn + 1) % self.dbs.len());
        let walk = &self.dbs[self.turn];
        Some((walk.db, walk.cursor.clone()))
    }

    pub fn went_on(&mut self, db: u32, cursor: Vec<u8>) {
        if let Some(walk) = self.dbs.iter_mut().find(|walk| walk.db == db) {
            walk.rounds += u64::from(cursor == b"0");
            walk.cursor = cursor;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> QueueKey {
        QueueKey::new(0, format!("q{number}"))
    }

    fn many(count: usize) -> Known {
        let mut known = Known::default();
        for number in 0..count {
            assert!(known.add(key(number)));
        }
        known
    }

    #[test]
    fn a_round_is_bounded_has_what_is_visible_and_comes_to_all() {
        let mut known = many(1000);
        let visible: Vec<QueueKey> = (500..540).map(key).chain([key(9999)]).collect();
        let mut seen = HashSet::new();
        for _ in 0..7 {
            let round = known.round(&visible);
            assert_eq!(round.len(), AT_ONCE);
            let distinct: HashSet<_> = round.iter().cloned().collect();
            assert_eq!(distinct.len(), AT_ONCE, "none twice");
            assert!(visible[..40].iter().all(|key| distinct.contains(key)));
            seen.extend(distinct);
        }
        assert_eq!(seen.len(), 1000, "160 of the others in each round");
        assert_eq!(many(3).round(&[]).len(), 3);
        assert!(Known::default().round(&visible).is_empty());
    }

    #[test]
    fn a_queue_that_is_gone_is_forgotten_after_a_while() {
        let mut known = many(3);
        let start = Instant::now();
        assert!(!known.is_gone(&key(0), start));
        assert_eq!((known.len(), known.there()), (3, 2));
        known.is_there(&key(0));
        assert!(
            !known.is_gone(&key(0), start + KEPT),
            "it came back in between"
        );
        assert!(known.is_gone(&key(0), start + 3 * KEPT));
        assert_eq!((known.len(), known.there()), (2, 2));
        known.remove(&key(2));
        assert_eq!(known.round(&[]), [key(1)]);
        assert!(known.add(key(0)), "new again");
    }

    #[test]
    fn the_search_goes_through_all_databases_and_then_slowly_again() {
        let mut search = Search::new([0, 4]);
        assert_eq!(search.steps(false), STEPS_AT_FIRST);
        assert_eq!(search.step(), Some((0, b"0".to_vec())));
        search.went_on(0, b"17".to_vec());
        assert_eq!(search.step(), Some((0, b"17".to_vec())));
        search.went_on(0, b"0".to_vec());
        assert_eq!(search.step(), Some((4, b"0".to_vec())));
        assert!(!search.complete());
        search.went_on(4, b"0".to_vec());
        assert!(search.complete());
        assert_eq!(
            (search.steps(false), search.steps(true)),
            (1, STEPS_MISSING)
        );
        let turns = [search.step(), search.step()].map(|step| step.map(|(db, _)| db));
        assert_eq!(turns, [Some(0), Some(4)]);
        search.add(4);
        search.add(9);
        assert!(!search.complete());
        assert_eq!(Search::new([]).step(), None);
    }
}

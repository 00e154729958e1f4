//! When workers came and went: by the connections that ask for jobs, where CLIENT LIST is allowed, and by the clients
//! that wait at a queue.

use std::collections::{HashMap, HashSet, VecDeque};

use dq_watch::model::stats::{Stats, ADDED, RESERVED};
use dq_watch::model::QueueKey;
use dq_watch::read::reply::Client;

/// Changes that are not further apart are one: old workers go, and new ones come.
const TOGETHER_MS: i64 = 30_000;
/// Changes kept of all connections, and of each queue.
const OF_ALL: usize = 60;
const OF_QUEUE: usize = 12;
/// So many readings in a row must say the same: a worker that asks again is gone for a moment.
const STEADY: u8 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    pub from_ms: i64,
    pub to_ms: i64,
    pub came: u64,
    pub went: u64,
}

#[derive(Default)]
pub struct Shifts {
    /// By node: the connections that have asked for jobs.
    workers: HashMap<String, HashSet<u64>>,
    of_all: VecDeque<Shift>,
    queues: HashMap<QueueKey, Waiting>,
}

/// Who waits at a queue.
#[derive(Default)]
struct Waiting {
    last: (u64, u64, u64),
    times: u8,
    known: Option<u64>,
    shifts: VecDeque<Shift>,
}

fn note(shifts: &mut VecDeque<Shift>, most: usize, now_ms: i64, (came, went): (u64, u64)) {
    if came + went == 0 {
        return;
    }
    match shifts.back_mut() {
        Some(last) if now_ms - last.to_ms <= TOGETHER_MS => {
            (last.to_ms, last.came, last.went) = (now_ms, last.came + came, last.went + went);
        }
        _ => shifts.push_back(Shift {
            from_ms: now_ms,
            to_ms: now_ms,
            came,
            went,
        }),
    }
    if shifts.len() > most {
        shifts.pop_front();
    }
}

impl Shifts {
    /// Takes the connections of a node. Those of its first list have not just come; young ones of others are not counted yet.
    pub fn connected(&mut self, node: &str, clients: &[Client], now_ms: i64) {
        let before = self.workers.get(node);
        let is_worker = |it: &&Client| match before {
            Some(ids) => ids.contains(&it.id) || (it.asks && !it.is_young),
            None => it.asks,
        };
        let now: HashSet<u64> = clients.iter().filter(is_worker).map(|it| it.id).collect();
        if let Some(before) = before {
            let apart = |a: &HashSet<u64>, b: &HashSet<u64>| a.difference(b).count() as u64;
            let counts = (apart(&now, before), apart(before, &now));
            note(&mut self.of_all, OF_ALL, now_ms, counts);
        }
        self.workers.insert(node.to_owned(), now);
    }

    /// A node whose connections are not known: what becomes of them meanwhile is no news.
    pub fn lost(&mut self, node: &str) {
        self.workers.remove(node);
    }

    /// Takes a reading of a queue. While jobs come and go the number of waiting clients says nothing.
    pub fn read(&mut self, key: &QueueKey, stats: &Stats, now_ms: i64) {
        let queue = self.queues.entry(key.clone()).or_default();
        let (waiting, reserved) = (stats.waiting_clients, stats.jobs[RESERVED]);
        let moved = stats.totals[ADDED + 1..].iter();
        let seen = (
            waiting,
            reserved,
            moved.fold(0, |sum: u64, it| sum.wrapping_add(*it)),
        );
        let is_same = queue.last == seen && queue.times > 0;
        queue.times = if is_same {
            (queue.times + 1).min(STEADY)
        } else {
            1
        };
        queue.last = seen;
        if queue.times < STEADY {
            return;
        }
        // Whoever has jobs may have several, or may not wait for any.
        let counts = match queue.known {
            Some(known) => (
                waiting.saturating_sub(known),
                known.saturating_sub(waiting + reserved),
            ),
            None => (0, 0),
        };
        if reserved == 0 || counts != (0, 0) {
            let known = queue.known.unwrap_or(waiting);
            queue.known = Some(known + counts.0 - counts.1);
        }
        note(&mut queue.shifts, OF_QUEUE, now_ms, counts);
    }

    pub fn retain(&mut self, is_there: impl Fn(&QueueKey) -> bool) {
        self.queues.retain(|key, _| is_there(key));
    }

    /// How many queues it knows.
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// What happened at a queue, and to connections of any queue if nothing happened here at that time (true).
    pub fn of(&self, key: &QueueKey) -> Vec<(Shift, bool)> {
        let queue = self.queues.get(key);
        let own: Vec<Shift> = queue.map_or(Vec::new(), |it| it.shifts.iter().copied().collect());
        let is_near = |a: &Shift, b: &Shift| {
            a.from_ms <= b.to_ms + TOGETHER_MS && b.from_ms <= a.to_ms + TOGETHER_MS
        };
        let others = self.of_all.iter().copied();
        let others = others.filter(|it| !own.iter().any(|mine| is_near(it, mine)));
        let all = own.iter().map(|it| (*it, false));
        all.chain(others.map(|it| (it, true))).collect()
    }

    /// What happened to connections that ask for jobs, of whichever queue.
    pub fn of_connections(&self) -> impl Iterator<Item = &Shift> {
        self.of_all.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(it: &Shift) -> (i64, i64, u64, u64) {
        (it.from_ms, it.to_ms, it.came, it.went)
    }

    fn clients(asking: &[u64], others: &[u64]) -> Vec<Client> {
        let of = |asks| {
            move |&id: &u64| Client {
                id,
                asks,
                is_young: false,
            }
        };
        let asking = asking.iter().map(of(true));
        asking.chain(others.iter().map(of(false))).collect()
    }

    #[test]
    fn workers_that_go_and_come_are_one_change() {
        let mut shifts = Shifts::default();
        let mut hear = |at_s: i64, asking: &[u64], others: &[u64]| {
            shifts.connected("a", &clients(asking, others), at_s * 1000);
            shifts.of_connections().map(told).collect::<Vec<_>>()
        };
        assert_eq!(hear(0, &[1, 2], &[9]), [], "they were there");
        assert_eq!(
            hear(5, &[1], &[2, 8]),
            [],
            "a worker that does something else; a producer"
        );
        assert_eq!(hear(10, &[2], &[]), [(10_000, 10_000, 0, 1)]);
        assert_eq!(hear(30, &[3, 4], &[]), [(10_000, 30_000, 2, 2)]);
        assert_eq!(hear(90, &[3], &[])[1..], [(90_000, 90_000, 0, 1)]);
        for turn in 0..200_u64 {
            hear(1000 + turn as i64 * 60, &[100 + turn], &[]);
        }
        shifts.lost("a");
        shifts.connected("a", &clients(&[1, 2, 3], &[]), 100_000_000);
        let all = shifts.of_connections().map(told).collect::<Vec<_>>();
        assert_eq!(
            (all.len(), all[OF_ALL - 1].0),
            (OF_ALL, 12_940_000),
            "bounded"
        );
    }

    #[test]
    fn young_connections_count_in_the_first_list_only() {
        let mut shifts = Shifts::default();
        let mut hear = |at_s: i64, young: &[u64], old: &[u64]| {
            let mut all = clients(&[young, old].concat(), &[]);
            all[..young.len()]
                .iter_mut()
                .for_each(|it| it.is_young = true);
            shifts.connected("a", &all, at_s * 1000);
            shifts.of_connections().map(told).collect::<Vec<_>>()
        };
        assert_eq!(hear(0, &[1, 2], &[]), []);
        assert_eq!(
            hear(5, &[3], &[1, 2]),
            [],
            "it may be there for one command"
        );
        assert_eq!(hear(10, &[], &[1, 2, 3]), [(10_000, 10_000, 1, 0)]);
    }

    #[test]
    fn who_waits_at_a_quiet_queue_is_counted() {
        let (mut shifts, key) = (Shifts::default(), QueueKey::new(0, "q"));
        let mut second = 0;
        let mut read = |times, waiting, reserved, delivered| {
            for _ in 0..times {
                let mut stats = Stats {
                    waiting_clients: waiting,
                    ..Stats::default()
                };
                (stats.jobs[RESERVED], stats.totals[ADDED + 1]) = (reserved, delivered);
                second += 1;
                shifts.read(&key, &stats, second * 1000);
            }
            shifts.of(&key).len()
        };
        assert_eq!(read(5, 2, 0, 0), 0, "they were there");
        assert_eq!(read(2, 1, 0, 0), 0, "one asks again");
        assert_eq!(read(5, 1, 1, 1), 0, "it works");
        for delivered in 2..20 {
            assert_eq!(read(1, delivered % 3, 0, delivered), 0, "all are busy");
        }
        assert_eq!(read(5, 1, 7, 20), 0, "one has seven jobs");
        assert_eq!(read(5, 2, 0, 20), 0);
        read(5, 0, 0, 20);
        assert_eq!(read(5, 3, 0, 20), 1);
        let (own, of_all) = shifts.of(&key)[0];
        assert_eq!((own.came, own.went, of_all), (3, 2, false));
        for (at_ms, ids) in [(0, &[1][..]), (own.to_ms, &[2]), (own.to_ms + 90_000, &[3])] {
            shifts.connected("a", &clients(ids, &[]), at_ms);
        }
        let of_all: Vec<_> = shifts.of(&key).iter().map(|it| it.1).collect();
        assert_eq!(of_all, [false, true], "once for each time");
        shifts.retain(|_| false);
        assert_eq!(shifts.len(), 0);
    }
}

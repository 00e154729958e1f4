//! Decides on alerts: which limits a queue has, which of them it exceeds, and which alert that gives.

use std::collections::HashMap;

use dq_watch::model::column::Now;
use dq_watch::model::lateness::Late;
use dq_watch::model::row::Row;
use dq_watch::model::stats::{DIED, MISSED};
use dq_watch::model::QueueKey;
use wildmatch::WildMatch;

mod alert;

pub use alert::{Alert, Kind, State};

const OF_QUEUES: [Kind; 4] = [Kind::Dead, Kind::OldestReady, Kind::Lateness, Kind::Missed];

/// The limits of a queue. None: not watched.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Jobs that died.
    pub dead: Option<u64>,
    pub oldest_ready_ms: Option<u64>,
    /// What 99 % of the last deliveries do not exceed.
    pub lateness_us: Option<u64>,
    /// Missed occurrences of recurring jobs.
    pub missed: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Limits by a pattern of the queue's name; the first that matches counts.
    pub queues: Vec<(String, Limits)>,
    pub others: Limits,
    pub unreachable_ms: Option<i64>,
    pub often: Often,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Often {
    /// How long a condition must be gone before it counts as resolved.
    pub resolve_ms: i64,
    /// How often a condition that lasts is reported again.
    pub repeat_ms: Option<i64>,
}

impl Rules {
    fn of(&self, key: &QueueKey) -> Limits {
        let name = String::from_utf8_lossy(&key.name);
        let own = self.queues.iter();
        let own = own.filter(|(pattern, _)| WildMatch::new(pattern).matches(&name));
        own.map(|(_, limits)| *limits).next().unwrap_or(self.others)
    }
}

/// One condition of one queue or node.
#[derive(Debug, Default)]
struct Held {
    firing: bool,
    /// When it last held, when it was last reported, and with which value.
    last_ms: i64,
    told_ms: i64,
    value: u64,
}

impl Held {
    /// Takes whether the limit is exceeded, by `beyond`; returns what is to be reported.
    fn see(&mut self, beyond: Option<u64>, now_ms: i64, often: Often) -> Option<State> {
        let Some(value) = beyond else {
            let over = self.firing && now_ms - self.last_ms >= often.resolve_ms;
            self.firing &= !over;
            return over.then_some(State::Resolved);
        };
        (self.last_ms, self.value) = (now_ms, value);
        let again = often
            .repeat_ms
            .is_some_and(|repeat| now_ms - self.told_ms >= repeat);
        if self.firing && !again {
            return None;
        }
        (self.firing, self.told_ms) = (true, now_ms);
        Some(State::Firing)
    }
}

/// How much a total has grown since it last stood still for a while.
#[derive(Debug, Default)]
struct Growth {
    total: Option<u64>,
    grown: u64,
    last_ms: i64,
}

impl Growth {
    /// The growth so far, if the total has just grown.
    fn see(&mut self, total: u64, now_ms: i64, still_ms: i64) -> Option<u64> {
        if now_ms - self.last_ms >= still_ms {
            self.grown = 0;
        }
        let before = self.total.replace(total);
        // A total that fell was reset, and all of it is new. The first reading is no growth.
        let more = before.map_or(0, |old| total.checked_sub(old).unwrap_or(total));
        if more > 0 {
            self.grown += more;
            self.last_ms = now_ms;
            return Some(self.grown);
        }
        None
    }
}

#[derive(Debug, Default)]
struct Queue {
    limits: Limits,
    /// Its totals were compared with those before.
    is_counted: bool,
    died: Growth,
    missed: Growth,
    held: [Held; OF_QUEUES.len()],
    /// It fired before a restart, and the queue may not have been found again until then.
    expected_until_ms: i64,
}

#[derive(Debug, Default)]
struct Node {
    down_since_ms: Option<i64>,
    held: Held,
    expected_until_ms: i64,
}

/// The state of a node, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    NotYet,
    Up,
    Down,
}

/// All queues and nodes that are watched.
pub struct Watcher {
    /// The server's name, where there are several.
    server: Option<String>,
    rules: Rules,
    queues: HashMap<QueueKey, Queue>,
    nodes: HashMap<String, Node>,
    /// All queues were seen once, by this board or one before it: another one is new, and all that died in it counts.
    saw_all: bool,
    /// Totals that have changed, for the store.
    changed: HashMap<QueueKey, [u64; 2]>,
}

/// How many jobs of a queue had died, and how many occurrences were missed.
pub type Totals = (QueueKey, [u64; 2]);

impl Watcher {
    pub fn new(server: Option<String>, rules: Rules) -> Watcher {
        Watcher {
            server,
            rules,
            queues: HashMap::new(),
            nodes: HashMap::new(),
            saw_all: false,
            changed: HashMap::new(),
        }
    }

    /// Totals from before a restart: what they have grown by since then counts.
    pub fn was_at(&mut self, (key, [died, missed]): Totals, now_ms: i64) {
        let limits = self.rules.of(&key);
        let queue = self.queues.entry(key).or_default();
        queue.limits = limits;
        queue.expected_until_ms = now_ms + self.rules.often.resolve_ms;
        (queue.died.total, queue.missed.total) = (Some(died), Some(missed));
    }

    /// A board before this one had seen all queues, and their totals are known.
    pub fn saw_all(&mut self) {
        self.saw_all = true;
    }

    /// The totals that have changed since the last call.
    pub fn changed(&mut self) -> Vec<Totals> {
        self.changed.drain().collect()
    }

    /// Takes back totals that could not be kept.
    pub fn not_kept(&mut self, changed: Vec<Totals>) {
        for (key, totals) in changed {
            self.changed.entry(key).or_insert(totals);
        }
    }

    /// Continues an alert that was reported before a restart. It is resolved only once that is seen.
    pub fn goes_on(&mut self, told: &Alert, now_ms: i64) {
        let held = Held {
            firing: true,
            last_ms: now_ms,
            told_ms: told.at_ms,
            value: told.value,
        };
        let expected_until_ms = now_ms + self.rules.often.resolve_ms;
        let Some(key) = &told.queue else {
            let node = Node {
                down_since_ms: Some(told.at_ms - told.value as i64),
                held,
                expected_until_ms,
            };
            self.nodes.insert(told.node.clone(), node);
            return;
        };
        let queue = self.queues.entry(key.clone()).or_default();
        queue.limits = self.rules.of(key);
        queue.expected_until_ms = expected_until_ms;
        let growth = match told.kind {
            Kind::Dead => Some(&mut queue.died),
            Kind::Missed => Some(&mut queue.missed),
            _ => None,
        };
        if let Some(growth) = growth {
            (growth.grown, growth.last_ms) = (told.value, now_ms);
        }
        let place = OF_QUEUES.iter().position(|kind| *kind == told.kind);
        if let Some(place) = place {
            queue.held[place] = held;
        }
    }

    /// Sets the rules from now on. What fires goes on firing.
    pub fn set(&mut self, rules: Rules) {
        for (key, queue) in &mut self.queues {
            queue.limits = rules.of(key);
        }
        self.rules = rules;
    }

    /// `rows` are those of nodes that answer; the nodes are all, with what is wrong if they do not answer.
    pub fn check<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a Row>,
        nodes: impl Iterator<Item = (&'a String, Seen)>,
        sees_all: bool,
        now: Now,
        now_ms: i64,
    ) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for row in rows {
            self.check_queue(row, now, now_ms, &mut alerts);
        }
        self.saw_all |= sees_all;
        let mut gone: Vec<String> = self.nodes.keys().cloned().collect();
        for (name, seen) in nodes {
            gone.retain(|it| it != name);
            self.check_node(name, seen, now_ms, &mut alerts);
        }
        for name in gone {
            if self.nodes[&name].expected_until_ms <= now_ms {
                self.check_node(&name, Seen::Up, now_ms, &mut alerts);
                self.nodes.remove(&name);
            }
        }
        alerts
    }

    fn check_queue(&mut self, row: &Row, now: Now, now_ms: i64, alerts: &mut Vec<Alert>) {
        let rules = &self.rules;
        let none = self.saw_all.then_some(0);
        let growth = || Growth {
            total: none,
            ..Growth::default()
        };
        let queue = self.queues.entry(row.key.clone());
        // Also of a queue that was found and not read yet.
        let queue = queue.or_insert_with(|| Queue {
            limits: rules.of(&row.key),
            died: growth(),
            missed: growth(),
            ..Queue::default()
        });
        let Some(stats) = &row.stats else { return };
        let limits = queue.limits;
        let still_ms = rules.often.resolve_ms;
        // Until it is clear whether it had another name, all or nothing of this may be new.
        let counts = row.perhaps_since.is_none();
        if let Some(before) = row.goes_on.filter(|_| counts && !queue.is_counted) {
            (queue.died.total, queue.missed.total) = (Some(before[DIED]), Some(before[MISSED]));
        }
        queue.is_counted |= counts;
        let totals = [DIED, MISSED].map(|of| stats.totals[of]);
        if counts && [queue.died.total, queue.missed.total] != totals.map(Some) {
            self.changed.insert(row.key.clone(), totals);
        }
        let grown = |growth: &mut Growth, total| {
            let grown = counts.then(|| growth.see(total, now_ms, still_ms));
            grown.flatten()
        };
        let [died, missed] = totals;
        let died = grown(&mut queue.died, died);
        let missed = grown(&mut queue.missed, missed);
        let oldest = stats.oldest_ready_ms.filter(|_| stats.paused == 0);
        let late = row.percentile(0.99, now.here);
        let late = late.map(|(Late::AtMost(us) | Late::Over(us))| us);
        let seen = [
            (died, limits.dead, true),
            (oldest, limits.oldest_ready_ms, false),
            (late, limits.lateness_us, false),
            (missed, limits.missed, true),
        ];
        for ((kind, held), (value, limit, counts)) in
            OF_QUEUES.into_iter().zip(&mut queue.held).zip(seen)
        {
            let beyond = value.zip(limit);
            let beyond =
                beyond.filter(|(value, limit)| value > limit || (counts && value == limit));
            let state = held.see(beyond.map(|(value, _)| value), now_ms, rules.often);
            alerts.extend(state.map(|state| Alert {
                state,
                kind,
                server: self.server.clone(),
                node: row.node.clone(),
                queue: Some(row.key.clone()),
                value: held.value,
                limit: limit.unwrap_or_default(),
                at_ms: now_ms,
            }));
        }
    }

    fn check_node(&mut self, name: &str, seen: Seen, now_ms: i64, alerts: &mut Vec<Alert>) {
        let Some(limit) = self.rules.unreachable_ms else {
            return;
        };
        if seen == Seen::NotYet {
            return;
        }
        let down = seen == Seen::Down;
        let node = self.nodes.entry(name.to_owned()).or_default();
        node.down_since_ms = down.then(|| node.down_since_ms.unwrap_or(now_ms));
        let down_ms = node.down_since_ms.map(|since| now_ms - since);
        let beyond = down_ms.filter(|it| *it >= limit).map(|it| it as u64);
        // A node that answers again is resolved at once.
        let often = Often {
            resolve_ms: 0,
            ..self.rules.often
        };
        let state = node.held.see(beyond, now_ms, often);
        alerts.extend(state.map(|state| Alert {
            state,
            kind: Kind::Unreachable,
            server: self.server.clone(),
            node: name.to_owned(),
            queue: None,
            value: node.held.value,
            limit: limit as u64,
            at_ms: now_ms,
        }));
    }

    /// Resolves what fires of queues that are no longer known.
    pub fn forget(&mut self, is_known: impl Fn(&QueueKey) -> bool, now_ms: i64) -> Vec<Alert> {
        let mut over = Vec::new();
        self.queues.retain(|key, queue| {
            if is_known(key) || now_ms < queue.expected_until_ms {
                return true;
            }
            let firing = OF_QUEUES.into_iter().zip(&queue.held);
            over.extend(
                firing
                    .filter(|(_, held)| held.firing)
                    .map(|(kind, held)| Alert {
                        state: State::Resolved,
                        kind,
                        server: self.server.clone(),
                        node: String::new(),
                        queue: Some(key.clone()),
                        value: held.value,
                        limit: 0,
                        at_ms: now_ms,
                    }),
            );
            false
        });
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dq_watch::model::stats::{Stats, ADDED};
    use std::time::{Duration, Instant};

    const OFTEN: Often = Often {
        resolve_ms: 10_000,
        repeat_ms: None,
    };

    fn rules() -> Rules {
        Rules {
            queues: vec![("slow*".to_owned(), Limits::default())],
            others: Limits {
                dead: Some(3),
                oldest_ready_ms: Some(5000),
                lateness_us: Some(1_000_000),
                missed: Some(1),
            },
            unreachable_ms: Some(30_000),
            often: OFTEN,
        }
    }

    /// The alerts, as kind, state and value, of a queue with these readings at these seconds.
    fn said(rules: Rules, name: &str, readings: Vec<(i64, Stats)>) -> Vec<(i64, Kind, State, u64)> {
        let mut watcher = Watcher::new(None, rules);
        let begin = Instant::now();
        let mut row = Row::new(QueueKey::new(0, name), "node");
        let mut all = Vec::new();
        for (second, stats) in readings {
            let here = begin + Duration::from_secs(second as u64);
            row.read(stats, here, Duration::from_secs(1));
            let now = Now { here, server_ms: 0 };
            let alerts = watcher.check(
                [&row].into_iter(),
                [].into_iter(),
                false,
                now,
                second * 1000,
            );
            all.extend(
                alerts
                    .iter()
                    .map(|it| (second, it.kind, it.state, it.value)),
            );
        }
        all
    }

    fn died(total: u64) -> Stats {
        let mut stats = Stats::default();
        stats.totals[DIED] = total;
        stats
    }

    fn oldest(ms: u64, paused: i64) -> Stats {
        Stats {
            oldest_ready_ms: Some(ms),
            paused,
            ..Stats::default()
        }
    }

    use Kind::{Dead, Lateness, Missed, OldestReady};
    use State::{Firing, Resolved};

    #[test]
    fn dead_jobs_that_grow() {
        let told = [
            (0, 50),
            (2, 50),
            (4, 52),
            (6, 53),
            (8, 53),
            (9, 60),
            (30, 60),
        ];
        let readings = |name| said(rules(), name, told.map(|(at, it)| (at, died(it))).into());
        let expected = [(6, Dead, Firing, 3), (30, Dead, Resolved, 10)];
        assert_eq!(readings("q"), expected, "what was dead at first is no news");
        assert_eq!(readings("slow-one"), [], "it has limits of its own");
        // Few deaths, far from each other; and a server that was restarted.
        let told = [(0, 50), (2, 52), (20, 53), (40, 55), (50, 3)];
        let readings = said(rules(), "q", told.map(|(at, it)| (at, died(it))).into());
        assert_eq!(readings, [(50, Dead, Firing, 3)]);
    }

    #[test]
    fn what_died_before_the_first_look_counts_where_its_begin_is_known() {
        let begin = Instant::now();
        let now = Now {
            here: begin,
            server_ms: 0,
        };
        let row = |name: &str, stats: Stats| {
            let mut row = Row::new(QueueKey::new(0, name), "node");
            row.read(stats, begin, Duration::from_secs(1));
            row
        };
        let mut watcher = Watcher::new(None, rules());
        watcher.was_at((QueueKey::new(0, "restarted"), [10, 0]), 0);
        let mut told = |rows: &[Row], at: i64| -> Vec<(String, u64)> {
            let alerts = watcher.check(rows.iter(), [].into_iter(), true, now, at);
            let name =
                |it: &Alert| String::from_utf8_lossy(&it.queue.as_ref().unwrap().name).into();
            alerts.iter().map(|it| (name(it), it.value)).collect()
        };
        let first = [
            row("old", died(7)),
            row("restarted", died(14)),
            Row::new(QueueKey::new(0, "unread"), "node"),
        ];
        assert_eq!(told(&first, 0), [("restarted".to_owned(), 4)]);
        // All queues have been found by now, so another one is new; one that was found and not read yet is not.
        let then = [row("unread", died(5)), row("new", died(6))];
        assert_eq!(told(&then, 1000), [("new".to_owned(), 6)]);
        let changed = watcher.changed();
        assert_eq!(changed.len(), 4, "{changed:?}");
    }

    #[test]
    fn where_a_board_before_saw_all_queues_another_one_is_new() {
        let (here, mut row) = (Instant::now(), Row::new(QueueKey::new(0, "new"), "node"));
        row.read(died(5), here, Duration::from_secs(1));
        let now = Now { here, server_ms: 0 };
        for (saw_all, alerts) in [(true, 1), (false, 0)] {
            let mut watcher = Watcher::new(None, rules());
            if saw_all {
                watcher.saw_all();
            }
            // The search for queues takes several readings.
            let told = (0..3).flat_map(|at| {
                watcher.check([&row].into_iter(), [].into_iter(), false, now, at * 1000)
            });
            assert_eq!(told.count(), alerts, "{saw_all}");
        }
    }

    #[test]
    fn what_died_under_another_name_is_no_news() {
        let (second, here) = (Duration::from_secs(1), Instant::now());
        let mut board = dq_watch::model::board::Board::default();
        let [old, new, other] = ["old", "new", "other"].map(|name| QueueKey::new(0, name));
        let mut watcher = Watcher::new(None, rules());
        watcher.saw_all();
        let dead = |total| {
            let mut stats = died(total);
            stats.totals[ADDED] = 100;
            stats
        };
        let mut told = |board: &dq_watch::model::board::Board, at: i64| -> Vec<u64> {
            let now = Now { here, server_ms: 0 };
            let alerts = watcher.check(board.rows(), [].into_iter(), true, now, at * 1000);
            alerts.iter().map(|it| it.value).collect()
        };
        board.read(&old, "a", dead(50), here, second);
        assert_eq!(told(&board, 0), [50], "it is new");
        // The new name is found before the old one is missed, and one job more has died by then.
        board.began(new.clone(), "a", Some(here));
        assert!(told(&board, 1).is_empty());
        board.read(&new, "a", dead(51), here + second, second);
        assert!(told(&board, 1).is_empty());
        board.vanished(&old, "a");
        board.read(&new, "a", dead(51), here + 2 * second, second);
        assert!(told(&board, 2).is_empty());
        board.read(&new, "a", dead(53), here + 3 * second, second);
        assert_eq!(told(&board, 3), [3], "since the old name was read");
        board.began(other.clone(), "a", Some(here));
        board.read(&other, "a", dead(4), here + 4 * second, second);
        assert_eq!(
            told(&board, 4),
            [4],
            "fewer than the old one had: a new queue"
        );
    }

    #[test]
    fn the_oldest_ready_job() {
        let told = [
            (0, 4000, 0),
            (2, 6000, 0),
            (4, 8000, 0),
            (6, 0, 0),
            (10, 7000, 0),
            (12, 0, 0),
            (22, 0, 0),
        ];
        let readings = told.map(|(at, ms, paused)| (at, oldest(ms, paused)));
        let expected = [
            (2, OldestReady, Firing, 6000),
            (22, OldestReady, Resolved, 7000),
        ];
        assert_eq!(said(rules(), "q", readings.clone().into()), expected);
        let often = Often {
            repeat_ms: Some(2000),
            ..OFTEN
        };
        let often = said(Rules { often, ..rules() }, "q", readings.into());
        assert_eq!(often.len(), 4, "{often:?}");
        let paused = [(0, oldest(90_000, -1)), (2, oldest(90_000, -1))];
        assert_eq!(said(rules(), "q", paused.into()), []);
    }

    #[test]
    fn lateness_and_what_was_missed() {
        let told = |slow: u64, missed: u64| {
            let mut stats = Stats {
                lateness: vec![
                    (Some(1_000_000), 5),
                    (Some(2_000_000), 5 + slow),
                    (None, 5 + slow),
                ],
                lateness_max_us: 1_700_000,
                ..Stats::default()
            };
            stats.totals[MISSED] = missed;
            stats
        };
        let readings = vec![
            (0, told(0, 0)),
            (2, told(0, 0)),
            (4, told(2, 1)),
            (30, told(2, 1)),
        ];
        let expected = [
            (4, Lateness, Firing, 1_700_000),
            (4, Missed, Firing, 1),
            (30, Lateness, Resolved, 1_700_000),
            (30, Missed, Resolved, 1),
        ];
        assert_eq!(said(rules(), "q", readings), expected);
    }

    #[test]
    fn servers_that_do_not_answer_and_queues_that_are_gone() {
        let mut watcher = Watcher::new(None, rules());
        let name = "host:1".to_owned();
        let now = Now {
            here: Instant::now(),
            server_ms: 0,
        };
        let mut states = Vec::new();
        for (second, seen) in [
            (0, Seen::Up),
            (1, Seen::Down),
            (30, Seen::Down),
            (31, Seen::Down),
            (40, Seen::Down),
            (41, Seen::Up),
        ] {
            let nodes = [(&name, seen)].into_iter();
            let alerts = watcher.check([].into_iter(), nodes, false, now, second * 1000);
            states.extend(alerts.iter().map(|it| (second, it.state)));
        }
        assert_eq!(states, [(31, Firing), (41, Resolved)]);
        let mut row = Row::new(QueueKey::new(2, "a b"), "node");
        row.read(oldest(9000, 0), now.here, Duration::from_secs(1));
        let fired = watcher.check([&row].into_iter(), [].into_iter(), false, now, 50_000);
        assert_eq!(fired[0].text(), "a b: a job has been due for 9.0 s");
        let json = fired[0].json(Some("https://board/"));
        assert_eq!(json["link"], "https://board/queue?queue=2:a%20b");
        assert_eq!(
            (&json["kind"], &json["state"]),
            (&"oldest-ready".into(), &"firing".into())
        );
        assert_eq!(watcher.forget(|_| true, 51_000), []);
        let over = watcher.forget(|_| false, 52_000);
        assert_eq!((over.len(), over[0].state), (1, Resolved));
    }

    /// The alerts of a new watcher at these seconds, where the one before it had reported `told`.
    fn after_a_restart(told: &[Alert], seen: &[(i64, &Row, Seen)]) -> Vec<(i64, Kind, State, u64)> {
        let mut watcher = Watcher::new(None, rules());
        told.iter()
            .for_each(|alert| watcher.goes_on(alert, 100_000));
        let (name, here, mut all) = ("host:1".to_owned(), Instant::now(), Vec::new());
        for &(second, row, seen) in seen {
            let (now_ms, rows) = (second * 1000, row.stats.is_some().then_some(row));
            let now = Now { here, server_ms: 0 };
            let nodes = [(&name, seen)].into_iter();
            let mut alerts = watcher.check(rows.into_iter(), nodes, false, now, now_ms);
            alerts.extend(watcher.forget(|_| rows.is_some(), now_ms));
            all.extend(
                alerts
                    .iter()
                    .map(|it| (second, it.kind, it.state, it.value)),
            );
        }
        all
    }

    #[test]
    fn a_restart_tells_nothing_again() {
        let alert = |kind, queue: Option<&str>, value| Alert {
            state: Firing,
            kind,
            server: None,
            node: "host:1".to_owned(),
            queue: queue.map(|name| QueueKey::new(0, name)),
            value,
            limit: 1,
            at_ms: 40_000,
        };
        let row = |stats| {
            let mut row = Row::new(QueueKey::new(0, "q"), "host:1");
            row.read(stats, Instant::now(), Duration::from_secs(1));
            row
        };
        let nothing = Row::new(QueueKey::new(0, "q"), "host:1");
        let (waits, well) = (row(oldest(9000, 0)), row(oldest(0, 0)));
        // The job still waits; it no longer waits; another one waits.
        let told = [
            alert(OldestReady, Some("q"), 6000),
            alert(Dead, Some("q"), 3),
        ];
        let seen = [
            (100, &nothing, Seen::NotYet),
            (101, &waits, Seen::Up),
            (105, &well, Seen::Up),
            (120, &well, Seen::Up),
            (121, &waits, Seen::Up),
        ];
        let expected = [
            (120, Dead, Resolved, 3),
            (120, OldestReady, Resolved, 9000),
            (121, OldestReady, Firing, 9000),
        ];
        assert_eq!(after_a_restart(&told, &seen), expected);
        // A queue that is gone is resolved once there was time to find it.
        let seen = [
            (100, &nothing, Seen::Up),
            (109, &nothing, Seen::Up),
            (110, &nothing, Seen::Up),
        ];
        let said = after_a_restart(&told[..1], &seen);
        assert_eq!(said, [(110, OldestReady, Resolved, 6000)]);
        // A server that is still down, and one that came back.
        let told = [alert(Kind::Unreachable, None, 30_000)];
        let seen = [
            (100, &nothing, Seen::NotYet),
            (101, &nothing, Seen::Down),
            (102, &nothing, Seen::Up),
        ];
        let said = after_a_restart(&told, &seen);
        assert_eq!(said, [(102, Kind::Unreachable, Resolved, 91_000)]);
    }
}

//! All known queues, and which of them are shown in which order.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use wildmatch::WildMatch;

use super::column::{Column, Now};
use super::row::Row;
use super::stats::{Stats, Totals, ADDED, DEAD};
use super::QueueKey;
use crate::text::escape;

#[derive(Default)]
pub struct Board {
    rows: HashMap<QueueKey, Row>,
}

/// Which queues of the board are shown, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// None: the queues in most trouble first.
    pub column: Option<Column>,
    pub reversed: bool,
    /// A part of the name; with `*` or `?` a pattern that the whole name must match.
    pub filter: String,
}

impl Board {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn row(&self, key: &QueueKey) -> Option<&Row> {
        self.rows.get(key)
    }

    pub fn row_mut(&mut self, key: &QueueKey) -> Option<&mut Row> {
        self.rows.get_mut(key)
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    pub fn several_dbs(&self) -> bool {
        let mut dbs = self.rows.keys().map(|key| key.db);
        let first = dbs.next();
        dbs.any(|db| Some(db) != first)
    }

    /// Records that this node has the queue.
    pub fn found(&mut self, key: QueueKey, node: &str) {
        self.began(key, node, None);
    }

    /// As `found`, of a queue that was not there at that time if it was not known.
    pub fn began(&mut self, key: QueueKey, node: &str, since: Option<Instant>) {
        let new = |key: &QueueKey| {
            let mut row = Row::new(key.clone(), node);
            row.new_since = since;
            row
        };
        self.rows.entry(key).or_insert_with_key(new).node = node.to_owned();
    }

    pub fn read(
        &mut self,
        key: &QueueKey,
        node: &str,
        stats: Stats,
        at: Instant,
        interval: Duration,
    ) {
        self.found(key.clone(), node);
        let new = self.row(key).filter(|row| row.is_new());
        let since = new.map(|row| row.perhaps_since.unwrap_or(at));
        let was_renamed = since.map(|since| self.was_renamed(&stats, since));
        let Some(row) = self.rows.get_mut(key) else {
            return;
        };
        match was_renamed {
            Some(None) => return row.show(stats, at),
            Some(Some(before @ Some(_))) => (row.new_since, row.goes_on) = (None, before),
            Some(Some(None)) | None => {}
        }
        row.read(stats, at, interval);
    }

    /// The last totals of the queue that it was until it was renamed, if it was: RENAME and MOVE keep them. None: that is
    /// not known until those that it may have been were read again, as it may be found before its old name is missed.
    fn was_renamed(&self, stats: &Stats, since: Instant) -> Option<Option<Totals>> {
        let goes_on = |old: &Stats| {
            let mut both = old.totals.iter().zip(&stats.totals);
            old.totals[ADDED] > 0 && both.all(|(old, new)| old <= new)
        };
        let rows = self.rows.values().filter(|row| !row.is_new());
        let before = rows.filter(|row| row.stats.as_ref().is_some_and(goes_on));
        let (gone, there): (Vec<&Row>, Vec<&Row>) = before.partition(|row| row.gone);
        let totals = gone
            .iter()
            .filter_map(|row| Some(row.stats.as_ref()?.totals));
        // Of several the one that comes closest.
        let last = totals.max_by_key(|totals| totals.iter().sum::<u64>());
        let is_open = |row: &&Row| row.refusal.is_none() && row.was_read_by(since);
        (last.is_some() || !there.iter().any(is_open)).then_some(last)
    }

    /// The row of a queue if this node has it: what other nodes report about it does not count.
    fn of(&mut self, key: &QueueKey, node: &str) -> Option<&mut Row> {
        self.rows.get_mut(key).filter(|row| row.node == node)
    }

    pub fn vanished(&mut self, key: &QueueKey, node: &str) {
        if let Some(row) = self.of(key, node) {
            row.vanish();
        }
    }

    pub fn refused(&mut self, key: &QueueKey, node: &str, refusal: String) {
        if let Some(row) = self.of(key, node) {
            row.refusal = Some(refusal);
        }
    }

    pub fn forget(&mut self, key: &QueueKey, node: &str) {
        if self.of(key, node).is_some() {
            self.rows.remove(key);
        }
    }

    pub fn forget_node(&mut self, node: &str) {
        self.rows.retain(|_, row| row.node != node);
    }

    /// The queues that the filter lets through, in order.
    pub fn ordered(&self, order: &Order, now: Now) -> Vec<&Row> {
        let matches = matcher(&order.filter);
        let mut rows: Vec<&Row> = self
            .rows
            .values()
            .filter(|row| order.filter.is_empty() || matches(&row.key.name))
            .collect();
        rows.sort_by(|a, b| {
            let by_column = match order.column {
                Some(column) => column.compare(a, b, now),
                None => {
                    let dead = |row: &Row| row.jobs(DEAD);
                    let by_trouble = b.trouble(now).cmp(&a.trouble(now));
                    by_trouble.then_with(|| dead(b).cmp(&dead(a)))
                }
            };
            let by_name = || a.key.name.cmp(&b.key.name).then(a.key.db.cmp(&b.key.db));
            match (order.reversed, order.column) {
                (false, _) => by_column.then_with(by_name),
                (true, Some(Column::Queue)) => by_name().reverse(),
                (true, _) => by_column.reverse().then_with(by_name),
            }
        });
        rows
    }
}

/// Compares with the name as it is shown, ignoring case.
fn matcher(filter: &str) -> impl Fn(&[u8]) -> bool {
    let pattern = match filter {
        part if !part.contains(['*', '?']) => format!("*{part}*"),
        whole => whole.to_owned(),
    };
    let pattern = WildMatch::new(&pattern.to_lowercase());
    move |name| pattern.matches(&escape::name(name).to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Board {
        let mut board = Board::default();
        for (name, ready) in [
            ("mails", 3),
            ("orders", 9),
            ("orders:old", 0),
            ("Zoo\x01", 3),
        ] {
            let stats = Stats {
                jobs: [0, ready, 0, 0, 0, 0],
                ..Stats::default()
            };
            let key = QueueKey::new(0, name);
            board.read(&key, "a", stats, Instant::now(), Duration::from_secs(1));
        }
        board
    }

    fn shown(
        board: &Board,
        column: impl Into<Option<Column>>,
        reversed: bool,
        filter: &str,
    ) -> Vec<String> {
        let order = Order {
            column: column.into(),
            reversed,
            filter: filter.to_owned(),
        };
        let now = Now {
            here: Instant::now(),
            server_ms: 0,
        };
        let rows = board.ordered(&order, now);
        rows.iter().map(|row| escape::name(&row.key.name)).collect()
    }

    #[test]
    fn sorted_by_a_column_then_by_name() {
        let board = board();
        let zoo = r"Zoo\x01";
        assert_eq!(
            shown(&board, Column::Ready, false, ""),
            ["orders", zoo, "mails", "orders:old"]
        );
        assert_eq!(
            shown(&board, Column::Ready, true, ""),
            ["orders:old", zoo, "mails", "orders"]
        );
        assert_eq!(
            shown(&board, Column::Queue, false, ""),
            [zoo, "mails", "orders", "orders:old"]
        );
        assert_eq!(
            shown(&board, Column::Queue, true, ""),
            ["orders:old", "orders", "mails", zoo]
        );
    }

    #[test]
    fn trouble_comes_first() {
        let mut board = board();
        for (name, dead, paused, old) in [
            ("quiet", 0, 0, None),
            ("slow", 0, -1, None),
            ("late", 0, 0, Some(1 << 40)),
            ("wrong", 2, 0, None),
        ] {
            let stats = Stats {
                jobs: [0, 0, 0, dead, 0, 0],
                oldest_ready_ms: old,
                paused,
                ..Stats::default()
            };
            let key = QueueKey::new(0, name);
            board.read(&key, "a", stats, Instant::now(), Duration::from_secs(1));
        }
        board.refused(&QueueKey::new(0, "mails"), "a", "NOPERM".to_owned());
        let first = shown(&board, None, false, "");
        let zoo = r"Zoo\x01";
        assert_eq!(first[..5], ["wrong", "late", "mails", "slow", zoo]);
        assert_eq!(shown(&board, None, true, "").last().unwrap(), "wrong");
    }

    #[test]
    fn filtered_by_a_part_or_a_pattern() {
        let board = board();
        assert_eq!(
            shown(&board, Column::Queue, false, "ORD"),
            ["orders", "orders:old"]
        );
        assert_eq!(
            shown(&board, Column::Queue, false, "*s"),
            ["mails", "orders"]
        );
        assert_eq!(shown(&board, Column::Queue, false, r"\x01"), [r"Zoo\x01"]);
        assert!(shown(&board, Column::Queue, false, "none").is_empty());
    }

    #[test]
    fn a_new_queue_counts_from_nothing_and_a_renamed_one_goes_on() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        let mut board = Board::default();
        let stats = |added: u64| {
            let mut stats = Stats::default();
            stats.totals[ADDED] = added;
            stats
        };
        let [new, old, renamed] = ["new", "old", "renamed"].map(|name| QueueKey::new(0, name));
        board.began(new.clone(), "a", Some(start));
        board.read(&new, "a", stats(20), start + 2 * second, second);
        board.read(&old, "a", stats(900), start, second);
        board.vanished(&old, "a");
        board.began(renamed.clone(), "a", Some(start));
        board.read(&renamed, "a", stats(901), start + second, second);
        let added = |key| board.row(key).map(|row| row.history.added.values());
        assert_eq!(added(&new), Some(vec![10.0; 2]));
        assert_eq!(added(&renamed), Some(Vec::new()));
        let before = |key| board.row(key).and_then(|row| row.goes_on);
        assert_eq!(before(&renamed), Some(stats(900).totals));
        assert_eq!(before(&new), None);
    }

    #[test]
    fn nothing_of_a_new_queue_is_counted_until_those_it_may_have_been_are_read_again() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        for goes in [true, false] {
            let mut board = Board::default();
            let [old, new] = ["old", "new"].map(|name| QueueKey::new(0, name));
            let read = |board: &mut Board, key: &QueueKey, at: u32, added: u64| {
                let mut stats = Stats::default();
                stats.totals[ADDED] = added;
                board.read(key, "a", stats, start + at * second, second);
                let row = board.row(key).expect("a row");
                (row.perhaps_since.is_some(), row.history.added.values())
            };
            read(&mut board, &old, 0, 900);
            board.began(new.clone(), "a", Some(start));
            assert_eq!(read(&mut board, &new, 1, 901), (true, vec![]));
            assert_eq!(board.row(&new).map(|row| row.stats.is_some()), Some(true));
            match goes {
                true => board.vanished(&old, "a"),
                false => drop(read(&mut board, &old, 2, 900)),
            }
            let first = if goes { vec![] } else { vec![452.0; 2] };
            assert_eq!(read(&mut board, &new, 2, 904), (false, first.clone()));
            let then = [first, vec![5.0]].concat();
            assert_eq!(read(&mut board, &new, 3, 909), (false, then));
        }
    }

    #[test]
    fn only_the_node_that_has_a_queue_can_take_it_away() {
        let mut board = board();
        let key = QueueKey::new(0, "mails");
        board.found(key.clone(), "b");
        board.forget(&key, "a");
        assert!(board.row(&key).is_some());
        board.forget_node("a");
        assert_eq!(board.len(), 1);
        board.forget(&key, "b");
        assert_eq!(board.len(), 0);
    }
}

//! The columns of the table: what each shows of a queue, and in which order it sorts.

use std::cmp::Ordering;
use std::time::Instant;

use super::lateness::Late;
use super::row::Row;
use super::stats::{Stats, ACKED, ADDED, DELIVERED};
use crate::text::{escape, units};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Queue,
    Delayed,
    Ready,
    Reserved,
    Dead,
    Blocked,
    Done,
    Added,
    Delivered,
    Acked,
    LateP50,
    LateP99,
    Oldest,
    NextDue,
    Waiting,
    Paused,
    Trend,
}

use Column::*;

pub const ALL: [Column; 17] = [
    Queue, Delayed, Ready, Reserved, Dead, Blocked, Done, Added, Delivered, Acked, LateP50,
    LateP99, Oldest, NextDue, Waiting, Paused, Trend,
];

/// What a value means; the screen has a colour for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// Nothing there: shown so that the eye passes over it.
    Quiet,
    Good,
    Note,
    Warn,
    Bad,
}

/// The clocks by which ages are computed: this machine's, and the servers'.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub here: Instant,
    /// Unix-ms by the servers' clock.
    pub server_ms: i64,
}

/// A ready job that waits longer, or a greater lateness, is a warning; ten times as much is bad.
const OLD_MS: u64 = 5_000;
const LATE_US: u64 = 100_000;

impl Column {
    pub fn title(self) -> &'static str {
        match self {
            Queue => "QUEUE",
            Delayed => "DELAYED",
            Ready => "READY",
            Reserved => "RESVD",
            Dead => "DEAD",
            Blocked => "BLOCKED",
            Done => "DONE",
            Added => "ADD/s",
            Delivered => "DLVR/s",
            Acked => "ACK/s",
            LateP50 => "LATE50",
            LateP99 => "LATE99",
            Oldest => "OLDEST",
            NextDue => "NEXT",
            Waiting => "WAIT",
            Paused => "PAUSED",
            Trend => "DELIVERIES",
        }
    }

    /// The name that `--sort` takes.
    pub fn name(self) -> &'static str {
        match self {
            Queue => "queue",
            Delayed => "delayed",
            Ready => "ready",
            Reserved => "reserved",
            Dead => "dead",
            Blocked => "blocked",
            Done => "done",
            Added => "added",
            Delivered => "delivered",
            Acked => "acked",
            LateP50 => "p50",
            LateP99 => "p99",
            Oldest => "oldest",
            NextDue => "next",
            Waiting => "waiting",
            Paused => "paused",
            Trend => "trend",
        }
    }

    pub fn named(name: &str) -> Option<Column> {
        ALL.into_iter().find(|column| column.name() == name)
    }

    /// The least width. The name and the trend also take what the other columns leave.
    pub fn width(self) -> usize {
        match self {
            Queue => 16,
            Delayed | Blocked => 7,
            Waiting => 5,
            Trend => 10,
            _ => 6,
        }
    }

    /// On a narrow screen the columns of least importance are left out first.
    pub fn importance(self) -> u8 {
        match self {
            Queue => 17,
            Ready => 16,
            Delayed => 15,
            Dead => 14,
            Reserved => 13,
            Delivered => 12,
            Oldest => 11,
            LateP99 => 10,
            Waiting => 9,
            NextDue => 8,
            Added => 7,
            Acked => 6,
            Paused => 5,
            Blocked => 4,
            Done => 3,
            Trend => 2,
            LateP50 => 1,
        }
    }

    pub fn aligns_left(self) -> bool {
        matches!(self, Queue)
    }

    pub fn cell(self, row: &Row, now: Now) -> (String, Tone) {
        if self != Queue && row.stats.is_none() {
            return ("…".to_owned(), Tone::Quiet);
        }
        let none = Stats::default();
        let stats = row.stats.as_ref().unwrap_or(&none);
        match self {
            Queue => (escape::name(&row.key.name), Tone::Plain),
            Delayed => count(stats.jobs[0], Tone::Note),
            Ready => count(stats.jobs[1], Tone::Good),
            Reserved => count(stats.jobs[2], Tone::Plain),
            Dead => count(stats.jobs[3], Tone::Bad),
            Blocked => count(stats.jobs[4], Tone::Plain),
            Done => count(stats.jobs[5], Tone::Plain),
            Added => rate(row.rates[ADDED]),
            Delivered => rate(row.rates[DELIVERED]),
            Acked => rate(row.rates[ACKED]),
            LateP50 => late(row.percentile(0.50, now.here)),
            LateP99 => late(row.percentile(0.99, now.here)),
            Oldest => oldest(stats.oldest_ready_ms),
            NextDue => next_due(stats, now.server_ms),
            Waiting => count(stats.waiting_clients, Tone::Plain),
            Paused => paused(stats.paused, now.server_ms),
            Trend => (
                units::sparkline(&row.history.delivered.values(), self.width()),
                Tone::Good,
            ),
        }
    }

    /// The queue most worth a look comes first: the largest value, but the first name and the earliest due time.
    pub fn compare(self, a: &Row, b: &Row, now: Now) -> Ordering {
        let largest = |of: &dyn Fn(&Row) -> f64| of(b).total_cmp(&of(a));
        match self {
            Queue => Ordering::Equal,
            Delayed => b.jobs(0).cmp(&a.jobs(0)),
            Ready => b.jobs(1).cmp(&a.jobs(1)),
            Reserved => b.jobs(2).cmp(&a.jobs(2)),
            Dead => b.jobs(3).cmp(&a.jobs(3)),
            Blocked => b.jobs(4).cmp(&a.jobs(4)),
            Done => b.jobs(5).cmp(&a.jobs(5)),
            Added => largest(&|row| row.rates[ADDED]),
            Delivered | Trend => largest(&|row| row.rates[DELIVERED]),
            Acked => largest(&|row| row.rates[ACKED]),
            LateP50 => b
                .percentile(0.50, now.here)
                .cmp(&a.percentile(0.50, now.here)),
            LateP99 => b
                .percentile(0.99, now.here)
                .cmp(&a.percentile(0.99, now.here)),
            Oldest => {
                of(b, |stats| stats.oldest_ready_ms).cmp(&of(a, |stats| stats.oldest_ready_ms))
            }
            NextDue => due(a).cmp(&due(b)),
            Waiting => of(b, |stats| Some(stats.waiting_clients))
                .cmp(&of(a, |stats| Some(stats.waiting_clients))),
            Paused => b.is_paused().cmp(&a.is_paused()),
        }
    }
}

impl Row {
    /// How much the queue needs a look: 2 where a figure is bad, 1 where one is a warning.
    pub fn trouble(&self, now: Now) -> u8 {
        let cells = ALL
            .into_iter()
            .map(|column| match column.cell(self, now).1 {
                Tone::Bad => 2,
                Tone::Warn => 1,
                _ => 0,
            });
        cells.max().unwrap_or(0).max(self.refusal.is_some().into())
    }
}

fn of(row: &Row, value: impl Fn(&Stats) -> Option<u64>) -> Option<u64> {
    row.stats.as_ref().and_then(value)
}

fn due(row: &Row) -> i64 {
    let due = row.stats.as_ref().and_then(|stats| stats.next_due);
    due.unwrap_or(i64::MAX)
}

fn count(number: u64, tone: Tone) -> (String, Tone) {
    (
        units::count(number),
        if number == 0 { Tone::Quiet } else { tone },
    )
}

fn rate(per_second: f64) -> (String, Tone) {
    let tone = if per_second > 0.0 {
        Tone::Plain
    } else {
        Tone::Quiet
    };
    (units::rate(per_second), tone)
}

fn nothing() -> (String, Tone) {
    ("-".to_owned(), Tone::Quiet)
}

fn by_size(value: u64, limit: u64) -> Tone {
    match value {
        bad if bad >= 10 * limit => Tone::Bad,
        warn if warn >= limit => Tone::Warn,
        _ => Tone::Good,
    }
}

pub fn late(late: Option<Late>) -> (String, Tone) {
    match late {
        None => nothing(),
        Some(Late::AtMost(us)) => (units::micros(us), by_size(us, LATE_US)),
        Some(Late::Over(us)) => (format!(">{}", units::micros(us)), Tone::Bad),
    }
}

pub fn oldest(ms: Option<u64>) -> (String, Tone) {
    ms.map_or_else(nothing, |ms| (units::millis(ms), by_size(ms, OLD_MS)))
}

fn next_due(stats: &Stats, now_ms: i64) -> (String, Tone) {
    match stats.next_due {
        None => nothing(),
        Some(due) if due <= now_ms => ("now".to_owned(), Tone::Note),
        Some(due) => (units::millis((due - now_ms) as u64), Tone::Note),
    }
}

pub fn paused(paused: i64, now_ms: i64) -> (String, Tone) {
    match paused {
        0 => nothing(),
        -1 => ("yes".to_owned(), Tone::Warn),
        until => (units::millis((until - now_ms).max(0) as u64), Tone::Warn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::QueueKey;
    use std::time::Duration;
    use unicode_width::UnicodeWidthStr;

    fn row(stats: Stats) -> Row {
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        row.read(stats, Instant::now(), Duration::from_secs(1));
        row
    }

    fn now() -> Now {
        Now {
            here: Instant::now(),
            server_ms: 1_000_000,
        }
    }

    #[test]
    fn every_cell_fits_its_column_even_with_absurd_figures() {
        let most = u64::MAX / 2;
        let full = row(Stats {
            jobs: [999_999_999_999; 6],
            next_due: Some((1 << 42) - 1),
            oldest_ready_ms: Some(1 << 42),
            waiting_clients: 99_999,
            paused: (1 << 42) - 1,
            totals: [most; 9],
            ..Stats::default()
        });
        for row in [
            full,
            row(Stats::default()),
            Row::new(QueueKey::new(0, "q"), "n"),
        ] {
            for column in ALL {
                let (text, _) = column.cell(&row, now());
                assert!(text.width() <= column.width(), "{column:?}: {text}");
                assert!(column.title().width() <= column.width(), "{column:?}");
            }
        }
    }

    #[test]
    fn sorting_puts_first_what_is_worth_a_look() {
        let busy = row(Stats {
            jobs: [1, 5, 0, 2, 3, 4],
            next_due: Some(2_000_000),
            oldest_ready_ms: Some(10),
            ..Stats::default()
        });
        let idle = row(Stats {
            next_due: Some(1_500_000),
            ..Stats::default()
        });
        for column in [Delayed, Ready, Dead, Blocked, Done, Oldest] {
            assert_eq!(
                column.compare(&busy, &idle, now()),
                Ordering::Less,
                "{column:?}"
            );
        }
        assert_eq!(
            NextDue.compare(&idle, &busy, now()),
            Ordering::Less,
            "the earliest"
        );
        let unread = Row::new(QueueKey::new(0, "q"), "n");
        assert_eq!(NextDue.compare(&unread, &idle, now()), Ordering::Greater);
    }

    #[test]
    fn figures_have_the_tone_of_their_meaning() {
        assert_eq!(count(0, Tone::Bad).1, Tone::Quiet);
        assert_eq!(count(1, Tone::Bad).1, Tone::Bad);
        let tones = [100, LATE_US, 10 * LATE_US].map(|us| late(Some(Late::AtMost(us))).1);
        assert_eq!(tones, [Tone::Good, Tone::Warn, Tone::Bad]);
        assert_eq!(paused(-1, 0), ("yes".to_owned(), Tone::Warn));
        assert_eq!(paused(61_000, 1_000).0, "1m");
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        for column in ALL {
            assert_eq!(Column::named(column.name()), Some(column));
        }
        assert_eq!(Column::named("nonsense"), None);
    }
}

//! One queue in the table: its last reading, and what follows from earlier ones.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::lateness::{Histogram, Late};
use super::stats::{
    rates, Rates, Stats, Totals, ACKED, ADDED, DELIVERED, NACKED, RESERVED, TIMED_OUT,
};
use super::QueueKey;
use crate::text::why::{Hold, Lapses, Why};

/// Values kept for the charts: at one reading a second the last four minutes.
pub const HISTORY: usize = 240;

/// How long the lateness of the last deliveries is shown after them.
const LATENESS_SHOWN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Row {
    pub key: QueueKey,
    /// The node that has it.
    pub node: String,
    pub stats: Option<Stats>,
    pub rates: Rates,
    pub history: History,
    /// The lateness between the last two readings with deliveries in between, and when that was.
    pub late: Option<(Histogram, Instant)>,
    read_at: Option<Instant>,
    /// When the queue was not there yet, if that was seen: then its totals have grown since.
    pub new_since: Option<Instant>,
    /// The last totals under the name that it had before, if it was renamed: its own have grown from these.
    pub goes_on: Option<Totals>,
    /// Since when it may be one that was known by another name: until that is clear, nothing is counted.
    pub perhaps_since: Option<Instant>,
    /// Its key is gone: the row is shown a little longer, in case the queue comes back.
    pub gone: bool,
    /// The server's error, if it refuses to give figures.
    pub refusal: Option<String>,
    /// Whether a client that is connected had one of the reserved jobs, when that was last asked.
    pub owned: Option<bool>,
    /// Read on a replica, which sees neither who asks for jobs nor what its master delivers.
    pub is_of_replica: bool,
}

/// Per second, at each reading.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub added: Series,
    pub delivered: Series,
    pub acked: Series,
    /// Failed attempts: given back, or their lease expired.
    pub failed: Series,
    /// Leases that expired. Empty, as for most queues, while none did.
    pub lapsed: Series,
    /// Jobs, at each reading.
    pub reserved: Series,
}

/// How many workers there seem to be, and how long a job takes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub workers: u64,
    pub ms: f64,
}

/// With fewer acknowledgements a mean says nothing.
const MEASURED_FROM: f64 = 5.0;

/// While jobs are ready, deliveries since they became due say that clients take them: of so many bars at least, as a
/// worker may pause before it asks again, and at most, as it may be gone by now.
const ASKED: (usize, usize) = (10, 30);

#[derive(Clone, Debug, Default)]
pub struct Series(VecDeque<f64>);

impl Series {
    pub fn values(&self) -> Vec<f64> {
        self.0.iter().copied().collect()
    }

    fn push(&mut self, value: f64, times: usize) {
        for _ in 0..times.min(HISTORY) {
            if self.0.len() == HISTORY {
                self.0.pop_front();
            }
            self.0.push_back(value);
        }
    }
}

impl Row {
    pub fn new(key: QueueKey, node: &str) -> Row {
        Row {
            key,
            node: node.to_owned(),
            stats: None,
            rates: Rates::default(),
            history: History::default(),
            late: None,
            read_at: None,
            new_since: None,
            goes_on: None,
            perhaps_since: None,
            gone: false,
            refusal: None,
            owned: None,
            is_of_replica: false,
        }
    }

    /// Whether it was not there when the board began to look, and nothing of it has been counted yet.
    pub fn is_new(&self) -> bool {
        self.new_since.is_some() && self.read_at.is_none()
    }

    /// Whether its last reading may have been before this one.
    pub fn was_read_by(&self, at: Instant) -> bool {
        self.read_at.is_some_and(|read_at| read_at <= at)
    }

    /// Takes a reading of which nothing is counted yet.
    pub fn show(&mut self, stats: Stats, at: Instant) {
        (self.gone, self.refusal) = (false, None);
        self.stats = Some(stats);
        self.perhaps_since.get_or_insert(at);
    }

    /// Takes a reading. `interval` is the time between two bars of the history: a queue that is not
    /// in view is read less often, and then gets as many bars as there would have been readings.
    pub fn read(&mut self, stats: Stats, at: Instant, interval: Duration) {
        (self.gone, self.refusal, self.perhaps_since) = (false, None, None);
        let nothing = Stats::default();
        let before = self.stats.as_ref().zip(self.read_at);
        let begun = self.new_since.map(|since| (&nothing, since));
        if let Some((old, old_at)) = before.or(begun) {
            let elapsed = at.saturating_duration_since(old_at);
            // Two readings close together (after an action) give no rate.
            if elapsed < interval / 4 {
                self.stats = Some(Stats {
                    totals: old.totals,
                    lateness: old.lateness.clone(),
                    ..stats
                });
                return;
            }
            self.rates = rates(&old.totals, &stats.totals, elapsed.as_secs_f64());
            if self.rates[DELIVERED] > 0.0 {
                self.owned = None;
            }
            let intervals = elapsed.as_secs_f64() / interval.as_secs_f64();
            let bars = (intervals.round() as usize).max(1);
            // The bars hold what was counted, though no reading comes exactly in time.
            let bar = |rate: f64| rate * intervals / bars as f64;
            self.history.added.push(bar(self.rates[ADDED]), bars);
            self.history
                .delivered
                .push(bar(self.rates[DELIVERED]), bars);
            self.history.acked.push(bar(self.rates[ACKED]), bars);
            let failed = self.rates[NACKED] + self.rates[TIMED_OUT];
            self.history.failed.push(bar(failed), bars);
            let lapsed = self.rates[TIMED_OUT];
            if lapsed > 0.0 || !self.history.lapsed.0.is_empty() {
                self.history.lapsed.push(bar(lapsed), bars);
            }
            let reserved = stats.jobs[RESERVED] as f64;
            self.history.reserved.push(reserved, bars);
            let between = Histogram::between(&old.lateness, &stats.lateness);
            if between.count() > 0 {
                self.late = Some((between, at));
            }
        }
        self.stats = Some(stats);
        self.read_at = Some(at);
    }

    pub fn vanish(&mut self) {
        self.gone = true;
        if self.stats.is_none() {
            self.new_since = Some(Instant::now());
        }
        self.stats = self.stats.take().map(|old| Stats {
            jobs: Default::default(),
            next_due: None,
            oldest_ready_ms: None,
            waiting_clients: 0,
            paused: 0,
            ..old
        });
        self.rates = Rates::default();
    }

    /// The lateness of the last deliveries; None if they are long ago.
    pub fn percentile(&self, share: f64, now: Instant) -> Option<Late> {
        Some(match self.late(now)?.percentile(share)? {
            Late::AtMost(us) => Late::AtMost(us.min(self.latest_us()?)),
            over => over,
        })
    }

    /// What this percentile of the last deliveries was surely later than.
    pub fn surely_over(&self, share: f64, now: Instant) -> Option<u64> {
        Some(self.late(now)?.bounds(share)?.0)
    }

    fn late(&self, now: Instant) -> Option<&Histogram> {
        let (histogram, at) = self.late.as_ref()?;
        let is_new = now.saturating_duration_since(*at) <= LATENESS_SHOWN;
        is_new.then_some(histogram)
    }

    /// No delivery was later.
    fn latest_us(&self) -> Option<u64> {
        self.stats.as_ref().map(|stats| stats.lateness_max_us)
    }

    /// How deliveries of the last minutes ended, if a lease expired.
    pub fn lapses(&self) -> Option<Lapses> {
        let [lapsed, failed, acked] = [
            &self.history.lapsed,
            &self.history.failed,
            &self.history.acked,
        ]
        .map(|series| series.0.iter().sum::<f64>());
        (lapsed.round() > 0.0).then(|| Lapses {
            lapsed: lapsed.round() as u64,
            ended: (failed + acked).round() as u64,
        })
    }

    /// By Little's law: the mean number of reserved jobs, and that number divided by the
    /// acknowledgements per second.
    pub fn measured(&self) -> Option<Measured> {
        let sum = |series: &Series| series.values().iter().sum::<f64>();
        let (reserved, acked) = (sum(&self.history.reserved), sum(&self.history.acked));
        if reserved <= 0.0 || acked < MEASURED_FROM {
            return None;
        }
        let most = self
            .history
            .reserved
            .values()
            .into_iter()
            .fold(1.0, f64::max);
        let idle = self.stats.as_ref().map_or(0, |stats| stats.waiting_clients);
        Some(Measured {
            workers: (most as u64).max(idle + self.jobs(RESERVED)),
            ms: 1000.0 * reserved / acked,
        })
    }

    /// Whether jobs were delivered, but none was seen reserved: taken with NOACK, or done at once. Then nothing can be
    /// measured.
    pub fn is_unseen(&self) -> bool {
        let sum = |series: &Series| series.0.iter().sum::<f64>();
        sum(&self.history.delivered) >= MEASURED_FROM && sum(&self.history.reserved) <= 0.0
    }

    /// Whether a client waits for jobs, or was delivered one lately. If not, only the server can say whether the reserved
    /// jobs are those of clients that are still there.
    pub fn is_asked(&self) -> bool {
        let since = self.oldest_s();
        let since = since.map_or(HISTORY, |bars| bars.clamp(ASKED.0, ASKED.1));
        let waits = self.stats.as_ref().is_some_and(|it| it.waiting_clients > 0);
        waits || self.delivered_in(since)
    }

    /// For how many seconds the oldest ready job has been due: until then others, or itself, may have been reserved.
    fn oldest_s(&self) -> Option<usize> {
        let oldest = self.stats.as_ref()?.oldest_ready_ms?;
        Some((oldest / 1000) as usize)
    }

    /// Whether any of so many last bars has a delivery.
    fn delivered_in(&self, bars: usize) -> bool {
        let mut last = self.history.delivered.0.iter().rev().take(bars);
        last.any(|rate| *rate > 0.0)
    }

    /// Whether only the server can say if clients take jobs: whose the reserved ones are.
    pub fn leases_tell(&self) -> bool {
        self.jobs(RESERVED) > 0 && !self.is_asked() && !self.is_of_replica
    }

    /// Whether clients take jobs: some wait, were delivered some lately, or have some and are connected. None: whether
    /// those that have some are connected was not asked, or a replica does not see it.
    pub fn is_attended(&self) -> Option<bool> {
        match self.jobs(RESERVED) {
            _ if self.is_asked() => Some(true),
            _ if self.is_of_replica => None,
            0 => Some(false),
            _ => self.owned,
        }
    }

    /// Whether the measured speed is still that of the workers: jobs were delivered no longer ago than about two of them
    /// take.
    fn is_flowing(&self) -> bool {
        self.measured()
            .is_some_and(|it| self.delivered_in(((it.ms / 500.0) as usize).clamp(ASKED.1, HISTORY)))
    }

    /// Whether jobs are delivered although this holds the queue between any two of them: the measured speed is with it.
    /// Workers who are busy take the next job in their turn, if they took one since the oldest became ready.
    pub fn passes(&self, hold: &Hold) -> bool {
        let since = self.oldest_s().unwrap_or_default().min(ASKED.1);
        let is_taken = hold.is_idle && self.delivered_in(since);
        hold.until_ms.is_none() && (is_taken || self.is_flowing())
    }

    /// What DQ.EXPLAIN says, with what the readings before add: who takes jobs without waiting for them, and whether they
    /// answer.
    pub fn explained(&self, why: &Why) -> Why {
        Why {
            is_taken: self.is_asked(),
            is_of_replica: self.is_of_replica,
            lapses: self.lapses(),
            ..why.clone()
        }
    }

    pub fn jobs(&self, state: usize) -> u64 {
        self.stats.as_ref().map_or(0, |stats| stats.jobs[state])
    }

    pub fn is_paused(&self) -> bool {
        self.stats.as_ref().is_some_and(|stats| stats.paused != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::why::Reason;

    fn stats(delivered: u64) -> Stats {
        let mut stats = Stats {
            lateness: vec![(Some(10), delivered), (None, delivered)],
            lateness_max_us: 7,
            ..Stats::default()
        };
        stats.totals[DELIVERED] = delivered;
        stats
    }

    #[test]
    fn rates_and_lateness_follow_from_two_readings() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        row.read(stats(100), start, second);
        assert_eq!(row.rates[DELIVERED], 0.0, "one reading tells no rate");
        row.read(stats(130), start + 3 * second, second);
        assert_eq!(row.rates[DELIVERED], 10.0);
        assert_eq!(row.history.delivered.values(), [10.0; 3], "a bar a second");
        let late = |row: &Row, after: u32| row.percentile(0.5, start + after * second);
        let most = "no delivery was later";
        assert_eq!(late(&row, 3), Some(Late::AtMost(7)), "{most}");
        assert_eq!(row.surely_over(0.5, start + 3 * second), Some(0));
        row.read(stats(130), start + 4 * second, second);
        assert_eq!(row.rates[DELIVERED], 0.0);
        assert_eq!(late(&row, 4), Some(Late::AtMost(7)), "the last ones still");
        assert_eq!(late(&row, 14), None, "too long ago");
        row.read(stats(137), start + second * 53 / 10, second);
        let last = row.history.delivered.values()[4];
        assert_eq!((last * 1000.0).round(), 7000.0, "what was counted");
    }

    #[test]
    fn what_a_new_queue_did_before_it_was_read_counts() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        row.new_since = Some(start);
        row.read(stats(30), start + 10 * second, second);
        assert_eq!(row.history.delivered.values(), [3.0; 10]);
        row.read(stats(35), start + 11 * second, second);
        assert_eq!(row.rates[DELIVERED], 5.0);
        // One that was asked for by its name before it was there.
        let mut named = Row::new(QueueKey::new(0, "q"), "node");
        named.vanish();
        assert!(named.new_since.is_some());
    }

    #[test]
    fn workers_are_measured() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        // Ten jobs are done each second, and four are reserved: 400 ms a job.
        let after = |seconds: u64| {
            let mut stats = stats(0);
            (stats.totals[ACKED], stats.jobs[RESERVED]) = (10 * seconds, 4);
            stats.waiting_clients = 2;
            stats
        };
        row.read(after(0), start, second);
        assert_eq!(row.measured(), None);
        row.read(after(3), start + 3 * second, second);
        let (workers, ms) = (6, 400.0);
        assert_eq!(row.measured(), Some(Measured { workers, ms }));
        let (words, until_ms, is_idle) = (String::new(), None, false);
        let hold = Hold {
            words,
            until_ms,
            is_idle,
        };
        assert!(!row.passes(&hold), "none was delivered");
        let mut last = after(4);
        last.totals[DELIVERED] = 1;
        row.read(last.clone(), start + 4 * second, second);
        assert!(row.passes(&hold));
        row.read(last, start + 60 * second, second);
        assert!(row.measured().is_some() && !row.passes(&hold), "it stands");
    }

    #[test]
    fn busy_workers_hold_nothing_while_they_take_jobs_without_acknowledging_any() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        let hold = |is_idle| Hold {
            words: String::new(),
            until_ms: None,
            is_idle,
        };
        let mut read = |at: u32, delivered: u64, oldest_ms: u64| {
            let mut stats = stats(delivered);
            (stats.jobs[RESERVED], stats.oldest_ready_ms) = (2, Some(oldest_ms));
            row.read(stats, start + at * second, second);
            [true, false].map(|is_idle| row.passes(&hold(is_idle)))
        };
        assert_eq!(read(0, 0, 9000), [false, false]);
        assert_eq!(read(1, 1, 10_000), [true, false], "a limit may hold them");
        assert_eq!(read(9, 1, 18_000), [true, false]);
        assert_eq!(read(10, 1, 900), [false, false], "ready since then");
        assert_eq!(read(60, 1, 69_000), [false, false], "no longer");
    }

    #[test]
    fn a_lease_says_that_someone_is_there_only_if_its_client_is() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        let reserved = |count: u64| {
            let mut stats = stats(0);
            stats.jobs[RESERVED] = count;
            stats
        };
        row.read(reserved(0), start, second);
        assert_eq!(row.is_attended(), Some(false));
        row.read(reserved(3), start + second, second);
        assert_eq!(row.is_attended(), None);
        row.owned = Some(false);
        row.read(reserved(3), start + 2 * second, second);
        assert_eq!(row.is_attended(), Some(false));
        let mut again = reserved(3);
        again.totals[DELIVERED] = 1;
        row.read(again, start + 3 * second, second);
        assert_eq!((row.is_attended(), row.owned), (Some(true), None));
    }

    #[test]
    fn workers_are_busy_only_if_their_clients_are_known_to_be_there() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        let (code, number, until_ms) = ("idle".to_owned(), 4, None);
        let idle = Why {
            reasons: vec![Reason {
                code,
                number,
                until_ms,
            }],
            ..Why::default()
        };
        let mut said = |at: u32, delivered: u64, is_busy: bool| {
            let mut stats = stats(delivered);
            stats.jobs[RESERVED] = 2;
            row.read(stats, start + at * second, second);
            let why = Why {
                is_busy,
                ..idle.clone()
            };
            let explained = row.explained(&why);
            (explained.line(0), explained.hold().is_some())
        };
        let ready = |rest: &str, holds| (format!("4 jobs are ready{rest}"), holds);
        let none = ready(", and no client asks for any", false);
        assert_eq!(said(0, 0, false), none);
        let taken = ready("; clients that do not wait took some lately", false);
        assert_eq!(said(1, 3, false), taken, "they closed, and left leases");
        let busy = ready("; all workers are busy", true);
        assert_eq!(said(2, 3, true), busy);
        row.is_of_replica = true;
        let explained = row.explained(&idle);
        let unseen = ready("; who asks for any is not seen on a replica", false);
        assert_eq!((explained.line(0), explained.hold().is_some()), unseen);
        assert_eq!(row.is_attended(), Some(true), "its deliveries were seen");
        let mut later = stats(3);
        later.oldest_ready_ms = Some(60_000);
        row.read(later, start + 60 * second, second);
        assert_eq!(row.is_attended(), None);
    }

    #[test]
    fn clients_that_do_not_answer_are_not_taken_for_busy_workers() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        let why = |taken_before| Why {
            reasons: vec![Reason {
                code: "idle".to_owned(),
                number: 4,
                until_ms: None,
            }],
            is_busy: true,
            taken_before,
            ..Why::default()
        };
        let mut said = |at: u32, lapsed: u64, acked: u64, taken_before| {
            let mut stats = stats(lapsed + acked + 2);
            stats.jobs[RESERVED] = 2;
            (stats.totals[TIMED_OUT], stats.totals[ACKED]) = (lapsed, acked);
            row.read(stats, start + at * second, second);
            let explained = row.explained(&why(taken_before));
            let hold = explained.hold().map(|hold| hold.words);
            (explained.line(0), hold.unwrap_or_default())
        };
        let busy = "all workers are busy";
        let line = |rest: &str| format!("4 jobs are ready; {rest}");
        assert_eq!(said(0, 0, 0, 0), (line(busy), busy.to_owned()));
        let none = "clients have jobs, but 3 of the last 3 leases expired without an ACK";
        let hold = "clients have jobs whose leases expire without an ACK";
        assert_eq!(said(2, 3, 0, 1), (line(none), hold.to_owned()));
        let few = "all workers are busy; 3 of the last 40 leases expired without an ACK";
        assert_eq!(said(4, 3, 37, 0), (line(few), busy.to_owned()));
        // The board has begun after that: only the jobs tell it.
        assert_eq!(said(1000, 3, 37, 0), (line(busy), busy.to_owned()));
        let before = "clients have jobs, but the lease of 1 of them has expired before";
        assert_eq!(said(1001, 3, 37, 1), (line(before), hold.to_owned()));
    }

    #[test]
    fn who_waits_or_was_just_delivered_a_job_is_there() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        let mut read = |at: u32, set: fn(&mut Stats)| {
            let mut stats = stats(0);
            set(&mut stats);
            row.read(stats, start + at * second, second);
            row.is_asked()
        };
        assert!(!read(0, |_| ()));
        assert!(read(1, |it| it.waiting_clients = 1));
        assert!(!read(2, |it| it.jobs[RESERVED] = 1), "it may be gone");
        let delivered = |it: &mut Stats| it.totals[DELIVERED] = 1;
        assert!(read(4, delivered));
        assert!(read(5, delivered), "a moment ago");
        let waited = |it: &mut Stats| (it.totals[DELIVERED], it.oldest_ready_ms) = (1, Some(9000));
        assert!(!read(20, waited), "no longer");
        assert!(read(21, delivered), "nothing has waited since");
        let behind = |it: &mut Stats| {
            (it.totals[DELIVERED], it.oldest_ready_ms) = (2, Some(3_600_000));
        };
        assert!(read(22, behind) && read(50, behind));
        assert!(!read(60, behind), "gone, however old the backlog is");
        assert!(!read(1000, |it| it.totals[DELIVERED] = 2));
    }

    #[test]
    fn what_was_never_reserved_cannot_be_measured() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        let mut read = |at: u32, reserved: u64| {
            let mut stats = stats(10 * u64::from(at));
            (stats.totals[ACKED], stats.jobs[RESERVED]) = (stats.totals[DELIVERED], reserved);
            row.read(stats, start + at * second, second);
            (row.is_unseen(), row.measured().is_some())
        };
        assert_eq!(read(0, 0), (false, false));
        assert_eq!(read(1, 0), (true, false));
        assert_eq!(read(2, 1), (false, true));
    }

    #[test]
    fn a_reading_in_the_same_breath_changes_no_rate_and_loses_no_delivery() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        row.read(stats(0), start, second);
        row.read(stats(50), start + second / 20, second);
        row.read(stats(60), start + second, second);
        assert_eq!(row.rates[DELIVERED], 60.0);
    }

    #[test]
    fn the_history_is_bounded() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut row = Row::new(QueueKey::new(0, "q"), "node");
        row.read(stats(0), start, second);
        row.read(stats(9), start + 1_000_000 * second, second);
        assert_eq!(row.history.delivered.values().len(), HISTORY);
    }
}

//! A queue's figures.

use crate::values;
use redis::Value;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// A queue's figures; of a sharded queue, the sums of its shards.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[allow(missing_docs)] // by the names of the command reference
pub struct Stats {
    pub delayed: u64,
    pub ready: u64,
    pub reserved: u64,
    pub dead: u64,
    pub blocked: u64,
    pub done: u64,
    pub bytes: u64,
    pub done_bytes: u64,
    pub recurring: u64,
    pub groups: u64,
    /// The cost of the deliveries in the current window of `RATE`.
    pub rate_used: u64,
    pub waiting_clients: u64,
    /// The earliest due time in the future; `None`: no job is delayed.
    pub next_due: Option<SystemTime>,
    /// The age of the oldest ready job; zero: none.
    pub oldest_ready: Duration,
    /// Whether the queue, or one of its shards, is paused.
    pub paused: bool,
    /// When the pause ends; `None` while paused: until it is resumed.
    pub paused_until: Option<SystemTime>,
    pub totals: Totals,
    pub lateness_count: u64,
    pub lateness_sum: Duration,
    pub lateness_max: Duration,
    pub lateness_buckets: Vec<LatenessBucket>,
    /// Numbers of a newer server that this version does not know.
    pub other: BTreeMap<String, i64>,
}

/// Counts what happened since the queue was created or loaded on its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // by the names of the command reference
pub struct Totals {
    pub added: u64,
    pub delivered: u64,
    pub acked: u64,
    pub nacked: u64,
    pub timed_out: u64,
    pub died: u64,
    pub deleted: u64,
    pub expired: u64,
    pub missed: u64,
}

/// How many deliveries were at most `up_to` late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatenessBucket {
    /// The bound; `None`: none.
    pub up_to: Option<Duration>,
    /// Deliveries.
    pub count: u64,
}

type Fields = Vec<(String, Value)>;

impl Stats {
    /// The mean lateness.
    pub fn lateness_mean(&self) -> Duration {
        self.lateness_sum
            .checked_div(self.lateness_count as u32)
            .unwrap_or_default()
    }

    pub(super) fn of(shards: Vec<Fields>) -> Self {
        let mut left: BTreeMap<String, i64> = BTreeMap::new();
        for (name, value) in shards.iter().flatten() {
            if let Value::Int(number) = value {
                *left.entry(name.clone()).or_default() += number;
            }
        }
        let mut sum = |name: &str| left.remove(name).unwrap_or(0).max(0) as u64;
        let mut stats = Stats {
            delayed: sum("delayed"),
            ready: sum("ready"),
            reserved: sum("reserved"),
            dead: sum("dead"),
            blocked: sum("blocked"),
            done: sum("done"),
            bytes: sum("bytes"),
            done_bytes: sum("done-bytes"),
            recurring: sum("recurring"),
            groups: sum("groups"),
            rate_used: sum("rate-used"),
            waiting_clients: sum("waiting-clients"),
            totals: Totals {
                added: sum("added"),
                delivered: sum("delivered"),
                acked: sum("acked"),
                nacked: sum("nacked"),
                timed_out: sum("timed-out"),
                died: sum("died"),
                deleted: sum("deleted"),
                expired: sum("expired"),
                missed: sum("missed"),
            },
            lateness_count: sum("lateness-count"),
            lateness_sum: Duration::from_micros(sum("lateness-sum")),
            ..Stats::default()
        };
        for (name, value) in shards.into_iter().flatten() {
            stats.add_extreme(&name, value);
        }
        left.retain(|name, _| {
            !["next-due", "oldest-ready-ms", "paused"].contains(&&**name)
                && !name.starts_with("lateness-")
        });
        stats.other = left;
        stats
    }

    fn add_extreme(&mut self, name: &str, value: Value) {
        match name {
            "next-due" => {
                self.next_due = [self.next_due, values::instant(&value)]
                    .into_iter()
                    .flatten()
                    .min()
            }
            "oldest-ready-ms" => {
                self.oldest_ready = self.oldest_ready.max(values::duration(&value))
            }
            "lateness-max" => {
                let max = Duration::from_micros(values::int(&value).max(0) as u64);
                self.lateness_max = self.lateness_max.max(max);
            }
            "paused" => self.add_pause(values::int(&value)),
            "lateness-buckets" => self.add_buckets(values::list(value)),
            _ => {}
        }
    }

    /// Keeps the pause that ends last: -1 is one without end, 0 none.
    pub(super) fn add_pause(&mut self, until: i64) {
        let is_endless = self.paused && self.paused_until.is_none();
        if until == 0 || is_endless {
            return;
        }
        self.paused_until = match until {
            ..0 => None,
            until => self.paused_until.max(Some(values::at_ms(until))),
        };
        self.paused = true;
    }

    fn add_buckets(&mut self, buckets: Vec<Value>) {
        for (at, pair) in buckets.into_iter().enumerate() {
            let pair = values::list(pair);
            let [bound, count] = pair.as_slice() else {
                continue;
            };
            let up_to = (*bound != Value::Nil)
                .then(|| Duration::from_micros(values::int(bound).max(0) as u64));
            if at == self.lateness_buckets.len() {
                self.lateness_buckets
                    .push(LatenessBucket { up_to, count: 0 });
            }
            self.lateness_buckets[at].count += values::int(count).max(0) as u64;
        }
    }
}

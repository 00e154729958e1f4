//! Asks why a link gets no jobs, where it has got none for a minute.

use super::events::Reason;
use crate::values;
use redis::Value;
use std::time::{Duration, Instant};

/// How long a link gets nothing before it asks why.
pub(crate) const IDLE_AFTER: Duration = Duration::from_secs(60);
const NONE_READY: [&str; 4] = ["delayed", "blocked", "reserved", "empty"];

/// How long a link's fetches have waited in vain. The next one then takes `DQ.EXPLAIN` along, and delays nothing.
#[derive(Debug, Default)]
pub(super) struct Idle {
    waited: Duration,
    /// When the current fetch began.
    since: Option<Instant>,
    /// In this time without jobs.
    pub is_said: bool,
    pub is_forbidden: bool,
}

impl Idle {
    /// Whether the fetch that begins is to ask.
    pub fn asks(&mut self, after: Duration, now: Instant) -> bool {
        self.since = Some(now);
        let asks = self.waited >= after && !self.is_said && !self.is_forbidden;
        if asks {
            self.waited = Duration::ZERO;
        }
        asks
    }

    pub fn fetched(&mut self, is_any: bool, now: Instant) {
        if is_any {
            (self.waited, self.is_said) = (Duration::ZERO, false);
        } else if let Some(since) = self.since {
            self.waited += now.saturating_duration_since(since);
        }
    }
}

/// Why jobs that are ready are not delivered; empty if none is, or nothing holds them: this fetch gets them.
pub(super) fn held_back(reply: Value) -> Vec<Reason> {
    let rows = values::list(reply).into_iter().filter_map(|row| {
        let [code, number, until] = values::list(row).try_into().ok()?;
        let given = |value: &Value| (*value != Value::Nil).then(|| values::int(value));
        let (number, until_ms) = (given(&number), given(&until));
        let code = values::text(code)?;
        Some(Reason {
            code,
            number,
            until_ms,
        })
    });
    let mut rows: Vec<_> = rows.collect();
    if rows.iter().any(|row| NONE_READY.contains(&&*row.code)) {
        rows.clear();
    }
    rows.retain(|row| row.code != "idle");
    rows
}

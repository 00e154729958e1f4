//! The rule of a recurring job, as `DQ.GET` shows it.

use super::reading::Fields;
use std::time::{Duration, SystemTime};

/// How a recurring job comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecurrenceRule {
    /// Each so often.
    pub every: Option<Duration>,
    /// Or by this expression,
    pub cron: Option<String>,
    /// in this zone.
    pub zone: Option<String>,
    /// The last instant.
    pub until: Option<SystemTime>,
    /// How often in all.
    pub times: Option<u64>,
    /// An occurrence that late is skipped.
    pub grace: Option<Duration>,
    /// Each comes up to so much later.
    pub jitter: Option<Duration>,
    /// The instant of the current one.
    pub occurrence: Option<SystemTime>,
    /// How many have ended.
    pub runs: u64,
}

impl RecurrenceRule {
    pub(super) fn of(fields: &Fields) -> Option<Self> {
        let (every, cron) = (fields.duration("every"), fields.text("cron"));
        if every.is_none() && cron.is_none() {
            return None;
        }
        Some(RecurrenceRule {
            every,
            cron,
            zone: fields.text("tz"),
            until: fields.instant("until"),
            times: fields.maybe_int("times").map(|times| times as u64),
            grace: fields.duration("grace"),
            jitter: fields.duration("jitter"),
            occurrence: fields.instant("occurrence"),
            runs: fields.int("runs") as u64,
        })
    }
}

//! The rule of a recurring job, as `DQ.GET` shows it.

use super::reading::Fields;
use std::time::{Duration, SystemTime};

/// How a job recurs: by `every`, or by `cron` in a `zone`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The interval.
    pub every: Option<Duration>,
    /// The cron expression.
    pub cron: Option<String>,
    /// The time zone of the cron expression.
    pub zone: Option<String>,
    /// No occurrence comes after this instant.
    pub until: Option<SystemTime>,
    /// The number of occurrences in all.
    pub times: Option<u64>,
    /// An occurrence that is not delivered within this time of its due time is skipped.
    pub grace: Option<Duration>,
    /// Each occurrence is delayed by up to this time.
    pub jitter: Option<Duration>,
    /// The instant of the current occurrence.
    pub occurrence: Option<SystemTime>,
    /// How many occurrences have ended.
    pub runs: u64,
}

impl Rule {
    pub(super) fn of(fields: &Fields) -> Option<Self> {
        let (every, cron) = (fields.duration("every"), fields.text("cron"));
        if every.is_none() && cron.is_none() {
            return None;
        }
        Some(Rule {
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

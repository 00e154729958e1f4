//! When a job is due, as a client says it: at an instant, or by a rule.

use super::clock::Now;
use super::error::QueueError;
use super::job::INSTANT_MAX;
use super::recurring::rule::{Compiled, Next, Pattern, Rule, ZoneOf};
use super::recurring::zone::{Zone, UTC};
use std::rc::Rc;

/// When a job is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// That many ms from now.
    Delay(u64),
    /// That instant.
    At(u64),
}

impl When {
    /// An error if it lies beyond the last instant.
    pub fn instant(self, now: Now) -> Result<u64, QueueError> {
        match self {
            When::Delay(ms) => now.after(ms).ok_or(QueueError::OutOfRange),
            When::At(instant) if instant <= INSTANT_MAX => Ok(instant),
            When::At(_) => Err(QueueError::OutOfRange),
        }
    }
}

/// What DQ.ADD says of a rule.
#[derive(Clone, Debug)]
pub struct Recur<'a> {
    /// With UNTIL, TIMES, GRACE, JITTER and TTL.
    pub rule: Rule<'a>,
    /// DELAY or AT gives the first instant.
    pub is_timed: bool,
}

impl Recur<'_> {
    /// The first occurrence of a job with this id; an error if there can be none.
    pub(super) fn first(
        &self,
        id: &[u8],
        when: When,
        now: Now,
        zone_of: ZoneOf,
    ) -> Result<Next, QueueError> {
        let rule = Compiled::of(&self.rule)?;
        let zone: Rc<dyn Zone> = match rule.zone_name() {
            Some(name) => zone_of(name).ok_or(QueueError::UnknownZone)?,
            None => Rc::new(UTC),
        };
        let from_now = match self.rule.pattern {
            Pattern::Every { ms } => now.after(ms),
            Pattern::Cron { .. } => None,
        };
        let first = rule.first(now.ms(), from_now, &*zone);
        let first = first.ok_or(match self.rule.pattern {
            Pattern::Every { .. } => QueueError::OutOfRange,
            Pattern::Cron { .. } => QueueError::NeverComes,
        });
        if self.is_timed {
            // An expression that matches no instant is refused even if DELAY or AT gives a first one.
            if matches!(self.rule.pattern, Pattern::Cron { .. }) {
                first?;
            }
            let instant = when.instant(now)?;
            return Ok(rule.given(instant, instant, &*zone));
        }
        Ok(rule.at(id, first?, &*zone))
    }

    /// Whether UNTIL allows the occurrence.
    pub(super) fn allows(&self, first: &Next) -> bool {
        self.rule.until == 0 || first.occurrence <= self.rule.until
    }
}

//! The arguments of DQ.ADD, and what follows from them alone.

use crate::queue::after::For;
use crate::queue::attr::Attrs;
use crate::queue::clock::{Now, When};
use crate::queue::effects::Effects;
use crate::queue::error::QueueError;
use crate::queue::job::{check_group_name, Handle, Terms, ID_MAX};
use crate::queue::recurring::rule::{Compiled, Next, Pattern, Rule, ZoneOf};
use crate::queue::recurring::zone::{Zone, UTC};
use crate::queue::settings::{Settings, TTR_DEFAULT_MS};
use crate::queue::state::jobs::Jobs;
use std::rc::Rc;

/// The condition under which a job is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Only if no live job has the id, and the dedupe window does not hold it.
    #[default]
    New,
    /// Only if a job with the id exists, in any state.
    Existing,
    /// Always; an existing job is replaced.
    Replace,
    /// As [`Condition::New`], but if a job with the id is reserved and has no rule, as its successor.
    Next,
}

/// The arguments of DQ.ADD. What is `None` comes from the queue's settings.
#[allow(missing_docs, reason = "named as in the commands")]
#[derive(Clone, Debug)]
pub struct Add<'a> {
    /// `None`: made from the clock.
    pub id: Option<&'a [u8]>,
    pub payload: &'a [u8],
    pub condition: Condition,
    pub when: When,
    pub priority: i32,
    pub ttr_ms: Option<u64>,
    /// The TTR if neither the command nor the queue's settings name one.
    pub server_ttr_ms: u64,
    pub max_attempts: Option<u32>,
    pub ttl_ms: Option<u64>,
    /// The rule of a recurring job.
    pub recur: Option<Recur<'a>>,
    /// The job's group.
    pub group: Option<&'a [u8]>,
    /// What else is said of the job.
    pub said: Attrs<'a>,
    /// What the job waits for.
    pub after: Option<For<'a>>,
}

impl<'a> Add<'a> {
    /// With the default of each option.
    pub fn new(id: Option<&'a [u8]>, payload: &'a [u8]) -> Self {
        Add {
            id,
            payload,
            condition: Condition::New,
            when: When::Delay(0),
            priority: 0,
            ttr_ms: None,
            server_ttr_ms: TTR_DEFAULT_MS,
            max_attempts: None,
            ttl_ms: None,
            recur: None,
            group: None,
            said: Attrs::NONE,
            after: None,
        }
    }

    /// Whether the job has an id, a due time, a priority, a TTR, attempts and a group at most, and is added if it is new.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.condition == Condition::New
            && self.id.is_some()
            && self.ttl_ms.is_none()
            && self.recur.is_none()
            && self.said.is_empty()
            && self.after.is_none()
    }

    #[inline]
    pub(in crate::queue) fn check_names(&self) -> Result<(), QueueError> {
        if self.id.is_some_and(|id| !(1..=ID_MAX).contains(&id.len())) {
            return Err(QueueError::IdLength);
        }
        self.group.map_or(Ok(()), check_group_name)?;
        self.after.as_ref().map_or(Ok(()), For::check_name)
    }
}

impl Add<'_> {
    /// The terms that the command names, and the queue's for the others; `rest` is of the queue's.
    #[inline]
    pub(in crate::queue) fn terms<'s>(
        &'s self,
        settings: &Settings,
        rest: &'s Attrs<'_>,
    ) -> Terms<'s> {
        let ttr_ms = self.ttr_ms.or(settings.ttr_ms);
        Terms {
            priority: self.priority,
            ttr_ms: ttr_ms.unwrap_or(self.server_ttr_ms),
            max_attempts: self.max_attempts.unwrap_or(settings.max_attempts),
            rest: self.said.or(rest),
        }
    }

    /// The first occurrence of a job with a rule.
    pub(super) fn first(
        &self,
        id: &[u8],
        now: Now,
        out: &Effects,
    ) -> Result<Option<Next>, QueueError> {
        let of = |recur: &Recur<'_>| recur.first(id, self.when, now, out.zone_of());
        self.recur.as_ref().map(of).transpose()
    }

    /// Whether UNTIL allows the first occurrence.
    pub(super) fn allows(&self, first: &Next) -> bool {
        let recur = self.recur.as_ref();
        recur.is_none_or(|recur| recur.allows(first))
    }

    /// Whether the job replaces one with the same pattern, and names no first instant: then the current occurrence
    /// stays.
    pub(super) fn renews(&self, old: Handle, jobs: &Jobs) -> bool {
        let replaces = matches!(self.condition, Condition::Existing | Condition::Replace);
        let recur = self.recur.as_ref().filter(|recur| !recur.is_timed);
        let both = recur.zip(jobs.job(old).recurring());
        replaces && both.is_some_and(|(new, old)| old.rule.rule.pattern == new.rule.pattern)
    }

    /// Due time and expiry (0: never).
    pub(in crate::queue) fn instants(&self, now: Now) -> Result<(u64, u64), QueueError> {
        let due = self.when.instant(now)?;
        let expires = match self.ttl_ms {
            Some(ms) => now.after(ms).ok_or(QueueError::OutOfRange)?,
            None => 0,
        };
        Ok((due, expires))
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
    fn first(&self, id: &[u8], when: When, now: Now, zone_of: ZoneOf) -> Result<Next, QueueError> {
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
    fn allows(&self, first: &Next) -> bool {
        self.rule.until == 0 || first.occurrence <= self.rule.until
    }
}

//! The decisions of a handler, and what its end means.

use crate::core::{CancelReason, End};
use crate::error::{BoxError, Error, Suspended};
use crate::guard::{catch, clean, name_of, shown, sources, text_of, Panicked, LONGEST_REASON};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a job goes on, as the error of its handler: see [`retry_in`], [`snooze`] and [`give_up`]. It may be the source
/// of other errors; the outermost decision counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The attempt failed: the job is tried again after `delay`, whatever its backoff says.
    Retry {
        /// Until the next attempt.
        delay: Duration,
        /// Why.
        reason: Option<String>,
    },
    /// Not now: the job comes again after `delay`, and this attempt does not count.
    Snooze {
        /// Until the next delivery.
        delay: Duration,
        /// Why.
        reason: Option<String>,
    },
    /// The job cannot succeed: it is dead now, whatever attempts it has left.
    GiveUp {
        /// Why.
        reason: Option<String>,
    },
}

/// An error for a handler whose attempt failed: the job is tried again after `delay`, whatever its backoff says.
pub fn retry_in(delay: Duration) -> Decision {
    Decision::Retry {
        delay,
        reason: None,
    }
}

/// An error for a handler that cannot do the job now: the job comes again after `delay`, and this attempt does not
/// count.
pub fn snooze(delay: Duration) -> Decision {
    Decision::Snooze {
        delay,
        reason: None,
    }
}

/// An error for a handler whose job cannot succeed: the job is dead now, whatever attempts it has left.
pub fn give_up(reason: impl fmt::Display) -> Decision {
    Decision::GiveUp { reason: None }.because(reason)
}

impl Decision {
    /// Sets the reason, which the job keeps.
    pub fn because(mut self, why: impl fmt::Display) -> Self {
        let text = shown(format_args!("{why}"));
        let (Decision::Retry { reason, .. }
        | Decision::Snooze { reason, .. }
        | Decision::GiveUp { reason }) = &mut self;
        *reason = Some(text);
        self
    }

    fn end(&self) -> End {
        let kept = |reason: &Option<String>, otherwise: &str| {
            clean(
                reason.clone().unwrap_or_else(|| otherwise.to_owned()),
                LONGEST_REASON,
            )
        };
        match self {
            Decision::Retry { delay, reason } => End::Failed {
                reason: kept(reason, "retry"),
                wait: Some(*delay),
            },
            Decision::Snooze { delay, reason } => End::Snoozed {
                reason: reason.clone().map(|reason| clean(reason, LONGEST_REASON)),
                wait: *delay,
            },
            Decision::GiveUp { reason } => End::GaveUp {
                reason: kept(reason, "given up"),
            },
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, reason) = match self {
            Decision::Retry { reason, .. } => ("retry", reason),
            Decision::Snooze { reason, .. } => ("snooze", reason),
            Decision::GiveUp { reason } => ("given up", reason),
        };
        f.write_str(reason.as_deref().unwrap_or(word))
    }
}

impl std::error::Error for Decision {}

/// The error of [`Job::unless_cancelled`](crate::Job::unless_cancelled): the handler was told to end. A handler should return
/// it. If the worker stops, the job is given back; in the other cases what the handler returns does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler was told to end ({0:?})")]
pub struct Cancelled(pub CancelReason);

/// A result that cannot be encoded.
#[derive(Debug, thiserror::Error)]
#[error("result cannot be encoded: {0}")]
pub(crate) struct Unencodable(pub String);

/// An error with the name of its type.
#[derive(Debug)]
struct Named {
    name: &'static str,
    error: BoxError,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Named {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.error.as_ref())
    }
}

/// Boxes an error, with the name of its type unless that is a general one.
pub(crate) fn named<E: Into<BoxError>>(error: E) -> BoxError {
    let name = std::any::type_name::<E>();
    let is_any =
        name.contains("dyn ") || ["alloc::string::String", "&str", "anyhow::Error"].contains(&name);
    if is_any {
        return error.into();
    }
    let plain = name.split('<').next().unwrap_or(name);
    let name = plain.rsplit("::").next().unwrap_or(plain);
    Box::new(Named {
        name,
        error: error.into(),
    })
}

/// A condition on an error or one of its sources.
pub(crate) type Sort = Arc<dyn Fn(&(dyn std::error::Error + 'static)) -> bool + Send + Sync>;

/// Whether an error is of this type, for [`Handler::retry_on`](crate::Handler::retry_on) and
/// [`Handler::give_up_on`](crate::Handler::give_up_on).
pub fn is<E: std::error::Error + 'static>(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<E>()
}

/// Which errors are tried again, and which are final.
#[derive(Clone, Default)]
pub(crate) struct Sorts {
    pub retry: Vec<Sort>,
    pub give_up: Vec<Sort>,
}

impl Sorts {
    fn are_final(&self, all: &[&(dyn std::error::Error + 'static)]) -> bool {
        let any = |sorts: &[Sort]| {
            let fits = |sort: &Sort| {
                all.iter()
                    .any(|error| catch(|| sort(*error)).unwrap_or(false))
            };
            sorts.iter().any(fits)
        };
        any(&self.give_up) || !self.retry.is_empty() && !any(&self.retry)
    }

    fn failed(&self, all: &[&(dyn std::error::Error + 'static)], reason: String) -> End {
        let reason = clean(reason, LONGEST_REASON);
        match self.are_final(all) {
            true => End::GaveUp { reason },
            false => End::Failed { reason, wait: None },
        }
    }
}

/// How an attempt ended, and whether the handler said so on purpose.
pub(crate) struct Verdict {
    pub end: End,
    pub is_meant: bool,
}

pub(crate) fn panicked(panicked: &Panicked, sorts: &Sorts) -> Verdict {
    Verdict {
        end: sorts.failed(&[panicked], panicked.to_string()),
        is_meant: false,
    }
}

/// Decides on the error of a handler. In a chain of sources, the outermost decision counts. `Suspended` counts only
/// if one of the batch's jobs waits. Else it is an ordinary error: the job would come again at once, for ever and
/// uncounted.
pub(crate) fn judge(error: &BoxError, sorts: &Sorts, one_waits: bool) -> Verdict {
    let all = sources(error);
    let mut name = None;
    for each in &all {
        let meant = |end| Verdict {
            end,
            is_meant: true,
        };
        if let Some(decision) = each.downcast_ref::<Decision>() {
            return meant(decision.end());
        }
        if one_waits && each.is::<Suspended>() {
            return meant(End::Suspended);
        }
        match each.downcast_ref::<Error>() {
            Some(Error::Payload(_)) => {
                let reason = clean(text_of(*each), LONGEST_REASON);
                return Verdict {
                    end: End::GaveUp { reason },
                    is_meant: false,
                };
            }
            Some(Error::Suspended(_)) if one_waits => return meant(End::Suspended),
            _ => {}
        }
        if each.is::<Unencodable>() {
            let reason = clean(text_of(*each), LONGEST_REASON);
            return Verdict {
                end: End::GaveUp { reason }, // the work is done: no other attempt can help
                is_meant: false,
            };
        }
        if let Some(named) = each.downcast_ref::<Named>() {
            name.get_or_insert(named.name.to_owned());
        }
    }
    let first: &(dyn std::error::Error + 'static) = all[0];
    let name = name.unwrap_or_else(|| name_of(first));
    Verdict {
        end: sorts.failed(&all, format!("{name}: {}", text_of(first))),
        is_meant: false,
    }
}

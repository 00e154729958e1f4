//! What few jobs have, kept apart so that the others take no byte for it: terms that the pool had no room for,
//! the last failure, a rule.

use super::allocated;
use super::rules::Recurring;
use crate::queue::job::{Failure, Terms, LEASE_ENDED};
use crate::storage::relocate::Mover;
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(super) struct Failed {
    at: u64,
    /// Borrowed if it is the one that every expired lease gives.
    reason: Option<Cow<'static, [u8]>>,
}

/// All that a job may have here.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub terms: Option<Terms<'static>>,
    pub failed: Option<Failed>,
    pub recurring: Option<Recurring>,
}

#[derive(Clone, Debug)]
pub(super) enum Extra {
    Terms(Terms<'static>),
    Failed(Failed),
    Recurring(Recurring),
    Several(Box<Parts>),
}

impl From<Failure<'_>> for Failed {
    fn from(failure: Failure<'_>) -> Self {
        let kept = |reason: &[u8]| match reason {
            LEASE_ENDED => Cow::Borrowed(LEASE_ENDED),
            _ => Cow::Owned(reason.to_vec()),
        };
        Failed {
            at: failure.at,
            reason: failure.reason.map(kept),
        }
    }
}

impl Failed {
    fn heap_bytes(&self) -> usize {
        match &self.reason {
            Some(Cow::Owned(reason)) => allocated(reason.len()),
            _ => 0,
        }
    }
}

impl Extra {
    pub fn of(parts: Parts) -> Option<Box<Extra>> {
        let extra = match parts {
            Parts {
                terms: None,
                failed: None,
                recurring: None,
            } => return None,
            Parts {
                terms: Some(terms),
                failed: None,
                recurring: None,
            } => Extra::Terms(terms),
            Parts {
                terms: None,
                failed: Some(failed),
                recurring: None,
            } => Extra::Failed(failed),
            Parts {
                terms: None,
                failed: None,
                recurring: Some(recurring),
            } => Extra::Recurring(recurring),
            several => Extra::Several(Box::new(several)),
        };
        Some(Box::new(extra))
    }

    pub fn terms(&self) -> Option<&Terms<'static>> {
        match self {
            Extra::Terms(terms) => Some(terms),
            Extra::Several(parts) => parts.terms.as_ref(),
            Extra::Failed(_) | Extra::Recurring(_) => None,
        }
    }

    pub fn failure(&self) -> Option<Failure<'_>> {
        self.failed().map(|failed| Failure {
            at: failed.at,
            reason: failed.reason.as_deref(),
        })
    }

    fn failed(&self) -> Option<&Failed> {
        match self {
            Extra::Failed(failed) => Some(failed),
            Extra::Several(parts) => parts.failed.as_ref(),
            Extra::Terms(_) | Extra::Recurring(_) => None,
        }
    }

    pub fn recurring(&self) -> Option<&Recurring> {
        match self {
            Extra::Recurring(recurring) => Some(recurring),
            Extra::Several(parts) => parts.recurring.as_ref(),
            Extra::Terms(_) | Extra::Failed(_) => None,
        }
    }

    pub fn recurring_mut(&mut self) -> Option<&mut Recurring> {
        match self {
            Extra::Recurring(recurring) => Some(recurring),
            Extra::Several(parts) => parts.recurring.as_mut(),
            Extra::Terms(_) | Extra::Failed(_) => None,
        }
    }

    /// All parts, to be changed and put together again.
    pub fn into_parts(self) -> Parts {
        match self {
            Extra::Terms(terms) => Parts {
                terms: Some(terms),
                ..Parts::default()
            },
            Extra::Failed(failed) => Parts {
                failed: Some(failed),
                ..Parts::default()
            },
            Extra::Recurring(recurring) => Parts {
                recurring: Some(recurring),
                ..Parts::default()
            },
            Extra::Several(parts) => *parts,
        }
    }

    /// Bytes that the allocator gives for it, itself included. Its rule is shared, and not counted.
    pub fn heap_bytes(&self) -> usize {
        let rest = |terms: &Terms<'_>| allocated(terms.rest.bytes().len());
        let apart = match self {
            Extra::Several(_) => allocated(size_of::<Parts>()),
            _ => 0,
        };
        allocated(size_of::<Extra>())
            + apart
            + self.terms().map_or(0, rest)
            + self.failed().map_or(0, Failed::heap_bytes)
    }

    /// Moves the reason's text.
    pub fn relocate(&mut self, mover: &mut impl Mover) {
        let failed = match self {
            Extra::Failed(failed) => failed,
            Extra::Several(parts) => match &mut parts.failed {
                Some(failed) => failed,
                None => return,
            },
            Extra::Terms(_) | Extra::Recurring(_) => return,
        };
        if let Some(Cow::Owned(reason)) = &mut failed.reason {
            *reason = mover.moved(std::mem::take(reason));
        }
    }
}

//! What few jobs have, kept apart so that the others take no byte for it: terms that the pool had no room for,
//! the last failure.

use super::allocated;
use crate::queue::job::{Failure, Terms, LEASE_ENDED};
use crate::storage::relocate::Mover;
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(super) struct Failed {
    at: u64,
    /// Borrowed where it is the one that every lease's end gives.
    reason: Option<Cow<'static, [u8]>>,
}

#[derive(Clone, Debug)]
pub(super) enum Extra {
    Terms(Terms<'static>),
    Failed(Failed),
    Both(Box<(Terms<'static>, Failed)>),
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
    pub fn of(terms: Option<Terms<'static>>, failed: Option<Failed>) -> Option<Box<Extra>> {
        let extra = match (terms, failed) {
            (None, None) => return None,
            (Some(terms), None) => Extra::Terms(terms),
            (None, Some(failed)) => Extra::Failed(failed),
            (Some(terms), Some(failed)) => Extra::Both(Box::new((terms, failed))),
        };
        Some(Box::new(extra))
    }

    pub fn terms(&self) -> Option<&Terms<'static>> {
        match self {
            Extra::Terms(terms) => Some(terms),
            Extra::Both(both) => Some(&both.0),
            Extra::Failed(_) => None,
        }
    }

    pub fn terms_mut(&mut self) -> Option<&mut Terms<'static>> {
        match self {
            Extra::Terms(terms) => Some(terms),
            Extra::Both(both) => Some(&mut both.0),
            Extra::Failed(_) => None,
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
            Extra::Both(both) => Some(&both.1),
            Extra::Terms(_) => None,
        }
    }

    /// Both parts, to be put together anew.
    pub fn into_parts(self) -> (Option<Terms<'static>>, Option<Failed>) {
        match self {
            Extra::Terms(terms) => (Some(terms), None),
            Extra::Failed(failed) => (None, Some(failed)),
            Extra::Both(both) => (Some(both.0), Some(both.1)),
        }
    }

    /// What the allocator gives for it, itself included.
    pub fn heap_bytes(&self) -> usize {
        let ladder = |terms: &Terms<'_>| allocated(size_of_val(&*terms.backoff_ms));
        let apart = match self {
            Extra::Both(_) => allocated(size_of::<(Terms<'_>, Failed)>()),
            _ => 0,
        };
        allocated(size_of::<Extra>())
            + apart
            + self.terms().map_or(0, ladder)
            + self.failed().map_or(0, Failed::heap_bytes)
    }

    /// Moves the reason's text.
    pub fn relocate(&mut self, mover: &mut impl Mover) {
        let failed = match self {
            Extra::Failed(failed) => failed,
            Extra::Both(both) => &mut both.1,
            Extra::Terms(_) => return,
        };
        if let Some(Cow::Owned(reason)) = &mut failed.reason {
            *reason = mover.moved(std::mem::take(reason));
        }
    }
}

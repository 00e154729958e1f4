//! What few jobs have beside their 16 bytes: those that were delivered, above all. And what still fewer have, kept apart
//! so that the others take no byte for it: terms that the pool had no room for, the last failure, a rule.

use super::allocated;
use super::rules::Recurring;
use crate::queue::job::{Failure, Life, Terms, LEASE_ENDED};
use crate::storage::relocate::Mover;
use std::borrow::Cow;

#[derive(Clone, Debug)]
pub struct Rare {
    pub due: u64,
    // The fields of `Life`: as a whole it would take 8 bytes more beside the rest.
    expires: u64,
    token: u64,
    at: u64,
    lease_ms: u64,
    death: u64,
    attempts: u32,
    #[expect(dead_code, reason = "only its other values are looked at")]
    full: Full,
    /// The client that the job was delivered to last; 0 if that is not known here. Only this server knows it, so it is
    /// no part of the data.
    pub client: u64,
    pub extra: Option<Box<Extra>>,
}

/// Has one value: by the others the slab tells which of its entries are vacant, without a word of its own.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Full {
    Full,
}

impl Rare {
    pub fn new(due: u64, life: Life, client: u64, extra: Option<Box<Extra>>) -> Self {
        let Life {
            expires,
            token,
            at,
            lease_ms,
            death,
            attempts,
        } = life;
        Rare {
            due,
            expires,
            token,
            at,
            lease_ms,
            death,
            attempts,
            full: Full::Full,
            client,
            extra,
        }
    }

    #[inline(always)]
    pub fn life(&self) -> Life {
        Life {
            expires: self.expires,
            token: self.token,
            at: self.at,
            lease_ms: self.lease_ms,
            death: self.death,
            attempts: self.attempts,
        }
    }

    #[inline(always)]
    pub fn set_life(&mut self, life: Life) {
        self.expires = life.expires;
        self.token = life.token;
        self.at = life.at;
        self.lease_ms = life.lease_ms;
        self.death = life.death;
        self.attempts = life.attempts;
    }
}

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

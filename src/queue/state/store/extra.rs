//! What few jobs have beside their 16 bytes: those that were delivered, above all. And what still fewer have, kept apart
//! so that the others take no byte for it: terms that the pool had no room for, the last failure, a rule. Rules are kept
//! once for all the jobs of the queue that have them.

use super::allocated;
use crate::queue::job::{Failure, Life, Terms, LEASE_ENDED};
use crate::queue::recurring::rule::{Compiled, Occurrence, Rule};
use crate::storage::broken::there;
use crate::storage::relocate::Mover;
use hashbrown::HashTable;
use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::Arc;

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

/// The rule of a recurring job, and the occurrence that it has come to.
#[derive(Clone, Debug)]
pub struct Recurring {
    pub rule: Arc<Compiled>,
    pub occurrence: Occurrence,
}

impl Recurring {
    /// How long after its due time an undelivered occurrence is skipped; 0 means never.
    pub fn grace_ms(&self) -> u64 {
        match self.occurrence.delivered {
            true => 0,
            false => self.rule.rule.grace_ms,
        }
    }
}

#[derive(Clone, Debug)]
struct Shared {
    rule: Arc<Compiled>,
    users: usize,
}

#[derive(Clone, Debug, Default)]
pub struct RulesPool {
    shared: HashTable<Shared>,
    users: usize,
    /// Bytes of the rules themselves.
    bytes: usize,
}

impl RulesPool {
    pub const fn new() -> Self {
        RulesPool {
            shared: HashTable::new(),
            users: 0,
            bytes: 0,
        }
    }

    /// The rule must be one that compiles.
    pub fn acquire(
        &mut self,
        rule: &Rule<'_>,
        occurrence: Occurrence,
        hasher: &impl BuildHasher,
    ) -> Recurring {
        let hash = hasher.hash_one(rule);
        let found = self
            .shared
            .find_mut(hash, |shared| shared.rule.rule == *rule);
        let rule = match found {
            Some(shared) => {
                shared.users += 1;
                Arc::clone(&shared.rule)
            }
            None => {
                let compiled = Compiled::of(rule).ok();
                let rule = Arc::new(there(compiled, "a rule that cannot be"));
                self.bytes += rule.memory_bytes();
                let shared = Shared {
                    rule: Arc::clone(&rule),
                    users: 1,
                };
                self.shared
                    .insert_unique(hash, shared, |shared| hasher.hash_one(&shared.rule.rule));
                rule
            }
        };
        self.users += 1;
        Recurring { rule, occurrence }
    }

    pub fn release(&mut self, rule: &Compiled, hasher: &impl BuildHasher) {
        let hash = hasher.hash_one(&rule.rule);
        let found = self
            .shared
            .find_entry(hash, |shared| shared.rule.rule == rule.rule);
        let mut found = there(found.ok(), "a rule that nobody keeps");
        self.users -= 1;
        found.get_mut().users -= 1;
        if found.get().users == 0 {
            self.bytes -= found.remove().0.rule.memory_bytes();
        }
    }

    pub fn users(&self) -> usize {
        self.users
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.shared.capacity() * size_of::<Shared>()
    }

    /// Whether exactly these are kept, for so many jobs.
    pub fn check<'a>(
        &self,
        all: impl Iterator<Item = &'a Recurring>,
        hasher: &impl BuildHasher,
    ) -> Result<(), String> {
        let (mut users, mut bytes) = (0, 0);
        for recurring in all {
            users += 1;
            let hash = hasher.hash_one(&recurring.rule.rule);
            let same = |shared: &Shared| Arc::ptr_eq(&shared.rule, &recurring.rule);
            if self.shared.find(hash, same).is_none() {
                return Err("a rule that is not shared".into());
            }
        }
        let mut counted = 0;
        for shared in &self.shared {
            counted += shared.users;
            bytes += shared.rule.memory_bytes();
        }
        if (users, users, bytes) != (counted, self.users, self.bytes) {
            return Err(format!(
                "{users} jobs with rules, of which {counted} and {} are counted, of {bytes} bytes",
                self.users
            ));
        }
        Ok(())
    }
}

//! The rules of recurring jobs, each kept once for all the jobs of the queue that have it.

use crate::queue::recurring::rule::{Compiled, Occurrence, Rule};
use crate::storage::broken::there;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

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

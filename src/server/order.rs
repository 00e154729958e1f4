//! Which key comes first for a client that waits on several: it gets the job of the key that it
//! named first.
//!
//! Keys that became due at the same instant, or by the same transaction, are served in the order of
//! their names. So a key is deferred while its next client has named other keys before it that are
//! due since the same instant or earlier.
//!
//! ```text
//!   turn of a, whose first in line waits on c b a:   c b a(deferred)      c, then b, then a again
//! ```

use super::agenda::{self, Due, Name};
use super::blocked;

/// The most keys that may be deferred at a time. Where clients keep naming their keys in different
/// orders, the next key is not deferred.
const DEEPEST: usize = 64;

/// Keys in the reverse order of their turns.
#[derive(Default)]
pub struct Order {
    turns: Vec<Due>,
    /// The places of deferred keys in `turns`.
    deferred: Vec<usize>,
}

impl Order {
    /// The next key in turn, before all others that are due.
    pub fn next(&mut self) -> Option<Due> {
        let due = self.turns.pop()?;
        if self.deferred.last() == Some(&self.turns.len()) {
            self.deferred.pop();
        }
        agenda::set(due.db, &due.name, agenda::IDLE);
        Some(due)
    }

    pub fn defer(&mut self, due: Due, before: Vec<Name>) {
        let (db, instant) = (due.db, due.instant);
        self.deferred.push(self.turns.len());
        self.turns.push(due);
        let turn = |name| Due { db, name, instant };
        self.turns.extend(before.into_iter().rev().map(turn));
    }

    /// The keys that have to come first if this client is to get a job that has been ready since
    /// that instant; and how many keys it has named.
    pub fn before(&self, due: &Due, ticket: u64, since: u64) -> (Vec<Name>, usize) {
        let since = since.max(due.instant);
        blocked::named_before(ticket, &due.name, |db, name| {
            self.deferred.len() < DEEPEST
                && agenda::needs_attention(db, name, since)
                && !self.is_deferred(name)
        })
    }

    /// Two clients that name the same keys in different orders must not defer both keys.
    fn is_deferred(&self, name: &[u8]) -> bool {
        let mut deferred = self.deferred.iter();
        deferred.any(|&place| *self.turns[place].name == *name)
    }
}

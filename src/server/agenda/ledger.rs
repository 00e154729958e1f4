//! One record for each name of a database: when it needs attention, and its queue's figures. INFO
//! shows the figures' sums, kept up to date so that reading them costs the same for any number of
//! queues.
//!
//! A queue's figures are valid until its next job becomes due, which triggers no call. So accounts are ordered by that
//! instant, or an earlier one, and outdated accounts are updated before sums are read.
//!
//! A command that changes a queue does not enter its figures: it marks the account as outdated, once for all commands
//! until sums are read. Only so many are marked that whoever reads sums does not wait; beyond that they are entered at
//! once.
//!
//! ```text
//!   name ──hash──► by_name ──► number ─┐
//!   Value ── Ticket ───────────────────┴►  records [ name, instant, figures, until | ... ]     sum: all figures
//!                                          stands  [ 1700 | 1755 | .. ]        no later than `until` of each
//! ```
//!
//! A ticket is a hint: it never matches an account that was closed, even if another took its record.

use crate::queue::state::figures::Figures;
use crate::storage::least::Least;
use crate::storage::slab::Slab;
use crate::storage::table::IdTable;
use ahash::RandomState;
use lazy_static::lazy_static;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

pub type Name = Arc<[u8]>;

/// How many accounts of a database may be marked as outdated.
const MARKED: usize = 256;
/// The `until` of an account that is marked as outdated: earlier than any other.
const OUTDATED: u64 = 0;

/// Counts the accounts that were closed. An atomic, which is cheaper to read than a thread-local: each command reads it.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// See [`Ledger::mark`].
#[inline]
pub fn closed() -> u64 {
    CLOSED.load(Ordering::Relaxed)
}

/// Accounts of a ledger that is discarded are closed with it.
pub fn all_closed() {
    CLOSED.fetch_add(1, Ordering::Relaxed);
}

thread_local! {
    static LAST_SERIAL: Cell<u64> = const { Cell::new(0) };
}

lazy_static! {
    /// Random seeds, drawn at load: names come from users, who could make them collide.
    static ref HASHER: RandomState = {
        let random = std::hash::RandomState::new();
        let [a, b, c, d] = [0, 1, 2, 3].map(|n: u64| random.hash_one(n));
        RandomState::with_seeds(a, b, c, d)
    };
}

/// Identifies an account without a lookup by name. The default identifies none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticket {
    number: u32,
    /// The account's database, unless databases were swapped since.
    pub(super) db: c_int,
    /// Unique among all accounts, and not 0.
    serial: u64,
}

pub struct Record {
    pub name: Name,
    pub instant: u64,
    /// 0 if the record has no account.
    serial: u64,
    entered: Entered,
    /// The instant until which the figures are valid.
    until: u64,
}

impl Record {
    fn is_of(&self, ticket: Ticket) -> bool {
        ticket.serial != 0 && self.serial == ticket.serial
    }
}

/// The figures without the first due time, in less memory: no count exceeds the number of handles, a u32.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Entered {
    bytes: u64,
    delayed: u32,
    ready: u32,
    reserved: u32,
    dead: u32,
    blocked: u32,
    unfreed: u32,
    recurring: u32,
    groups: u32,
}

impl From<Figures> for Entered {
    fn from(figures: Figures) -> Self {
        Entered {
            bytes: figures.bytes,
            delayed: figures.delayed as u32,
            ready: figures.ready as u32,
            reserved: figures.reserved as u32,
            dead: figures.dead as u32,
            blocked: figures.blocked as u32,
            unfreed: figures.unfreed as u32,
            recurring: figures.recurring as u32,
            groups: figures.groups as u32,
        }
    }
}

impl From<Entered> for Figures {
    fn from(entered: Entered) -> Self {
        Figures {
            bytes: entered.bytes,
            delayed: entered.delayed.into(),
            ready: entered.ready.into(),
            reserved: entered.reserved.into(),
            dead: entered.dead.into(),
            blocked: entered.blocked.into(),
            unfreed: entered.unfreed.into(),
            unfreed_bytes: 0,
            recurring: entered.recurring.into(),
            groups: entered.groups.into(),
            done: 0,
            done_bytes: 0,
            first_due: None,
        }
    }
}

#[derive(Default)]
pub struct Ledger {
    records: Slab<Record>,
    by_name: IdTable,
    /// Accounts that are open; and those of them that are marked as outdated.
    accounts: usize,
    marked: usize,
    /// An instant for each account; none where nothing will be outdated.
    stands: Least,
    first_due: Least,
    sum: Figures,
    /// Done jobs and their bytes, of accounts that have any: few have.
    done: HashMap<u32, (u64, u64)>,
    /// Bytes of purged jobs that are not freed yet, of accounts that have any.
    unfreed: HashMap<u32, u64>,
}

impl Ledger {
    /// Names with and without an account.
    pub fn is_empty(&self) -> bool {
        self.records.len() == 0
    }

    /// Accounts.
    pub fn len(&self) -> usize {
        self.accounts
    }

    pub fn sum(&self) -> &Figures {
        &self.sum
    }

    /// Enters how many done jobs a record's queue holds, and their bytes.
    fn enter_done(&mut self, number: u32, done: (u64, u64)) {
        let old = match done {
            (0, 0) if self.done.is_empty() => None,
            (0, 0) => self.done.remove(&number),
            done => self.done.insert(number, done),
        };
        let old = old.unwrap_or_default();
        self.sum.done = self.sum.done + done.0 - old.0;
        self.sum.done_bytes = self.sum.done_bytes + done.1 - old.1;
    }

    /// Enters the bytes of a record's purged jobs that are not freed yet.
    #[cold]
    #[inline(never)]
    fn enter_unfreed(&mut self, number: u32, bytes: u64) {
        let old = match bytes {
            0 => self.unfreed.remove(&number),
            _ => self.unfreed.insert(number, bytes),
        };
        self.sum.unfreed_bytes = self.sum.unfreed_bytes + bytes - old.unwrap_or(0);
    }

    /// Those bytes, as they were entered.
    pub fn unfreed_bytes(&self, ticket: Ticket) -> u64 {
        let known = self.name(ticket).and(self.unfreed.get(&ticket.number));
        known.copied().unwrap_or(0)
    }

    /// The first due time of all queues.
    pub fn first_due(&self) -> Option<u64> {
        self.first_due.get()
    }

    pub fn find(&self, name: &[u8]) -> Option<u32> {
        let has_it = |number| self.records.get(number).is_some_and(|it| *it.name == *name);
        self.by_name.find(HASHER.hash_one(name), has_it)
    }

    pub fn get(&self, number: u32) -> Option<&Record> {
        self.records.get(number)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut Record> {
        self.records.get_mut(number)
    }

    /// A number greater than that of any record.
    pub fn end(&self) -> u32 {
        self.records.end()
    }

    /// Adds a name that has no record yet, without an account.
    pub fn add(&mut self, name: Name, instant: u64) -> u32 {
        let hash = HASHER.hash_one(&*name);
        let number = self.records.insert(Record {
            name,
            instant,
            serial: 0,
            entered: Entered::default(),
            until: u64::MAX,
        });
        self.by_name.insert(hash, number);
        number
    }

    pub fn remove(&mut self, number: u32) -> Option<Record> {
        let record = self.records.remove(number)?;
        self.by_name.remove(HASHER.hash_one(&*record.name), number);
        if record.serial != 0 {
            self.enter_done(number, (0, 0));
            if record.entered.unfreed > 0 {
                self.enter_unfreed(number, 0);
            }
            self.accounts -= 1;
            self.marked -= usize::from(record.until == OUTDATED);
            all_closed();
            self.sum.exchange(record.entered.into(), Figures::default());
            self.stands.set(number, u64::MAX);
            self.first_due.set(number, u64::MAX);
        }
        Some(record)
    }

    /// The ticket of a record's account, which is opened if there is none.
    pub fn ticket(&mut self, db: c_int, number: u32) -> Ticket {
        let Some(record) = self.records.get_mut(number) else {
            return Ticket::default();
        };
        if record.serial == 0 {
            record.serial = LAST_SERIAL.get() + 1;
            LAST_SERIAL.set(record.serial);
            self.accounts += 1;
        }
        Ticket {
            number,
            db,
            serial: record.serial,
        }
    }

    /// None if the ticket matches no account.
    pub fn name(&self, ticket: Ticket) -> Option<&Name> {
        let record = self.records.get(ticket.number)?;
        record.is_of(ticket).then_some(&record.name)
    }

    /// Marks an account as outdated, until figures are entered, or it is [`closed`]. False if they must be entered at
    /// once: the ticket matches no account, many are marked, or purged jobs count, which are bounded by what was entered.
    pub fn mark(&mut self, ticket: Ticket) -> bool {
        let record = self.records.get_mut(ticket.number);
        let Some(record) = record.filter(|record| record.is_of(ticket)) else {
            return false;
        };
        if record.until != OUTDATED {
            if record.entered.unfreed > 0 || self.marked == MARKED {
                return false;
            }
            record.until = OUTDATED;
            self.marked += 1;
            self.stands.set(ticket.number, OUTDATED);
        }
        true
    }

    /// Enters figures; false if the ticket matches no account.
    pub fn enter(&mut self, ticket: Ticket, figures: Figures, until: u64) -> bool {
        let record = self.records.get_mut(ticket.number);
        let Some(record) = record.filter(|record| record.is_of(ticket)) else {
            return false;
        };
        self.marked -= usize::from(record.until == OUTDATED);
        record.until = until.max(OUTDATED + 1);
        let entered = Entered::from(figures);
        if record.entered != entered {
            let has_unfreed = record.entered.unfreed | entered.unfreed > 0;
            self.sum.exchange(record.entered.into(), figures);
            record.entered = entered;
            if has_unfreed {
                self.enter_unfreed(ticket.number, figures.unfreed_bytes);
            }
        }
        self.enter_done(ticket.number, (figures.done, figures.done_bytes));
        let first_due = figures.first_due.unwrap_or(u64::MAX);
        self.first_due.set(ticket.number, first_due);
        if until < self.stands.at(ticket.number) {
            self.stands.set(ticket.number, until);
        }
        true
    }

    /// Frees about `count` records of a discarded ledger; false once all are freed.
    pub fn free_some(&mut self, count: usize) -> bool {
        self.records.free_some(count) || self.by_name.free_some(count)
    }

    /// The name of a queue whose figures are outdated.
    pub fn outdated(&mut self, now_ms: u64) -> Option<Name> {
        loop {
            let (_, number) = self.stands.first().filter(|&(at, _)| at <= now_ms)?;
            let record = self.records.get(number)?;
            if record.until <= now_ms {
                return Some(Name::clone(&record.name));
            }
            // Its figures were entered again since.
            self.stands.set(number, record.until);
        }
    }

    pub fn next(&self) -> Option<u64> {
        self.stands.get()
    }
}

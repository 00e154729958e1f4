//! When each key needs attention: (database, key name) -> instant. Every queue is listed, so that
//! INFO finds them all; those that need no attention have [`IDLE`], and no place in the order of
//! instants.
//!
//! Entries are hints: a key that is gone, or has nothing to do, costs one check in vain. What must
//! hold: each key has an entry at or before the instant at which it needs attention. A name has at
//! most one entry in a database.
//!
//! Keys in a slot that another node serves are parked: they come after all instants, slot by slot.
//! So one key is checked for its whole slot, and all keys of the slot return together.
//!
//! ```text
//!   by_instant:  ...1700 a  ...1755 b | PARKED + 93  c d e | PARKED + 5461  f
//! ```
//!
//! Names are in the [`Ledger`] of their database, one record each: what a queue contributes to INFO is added and
//! removed with its entry.

mod database;
mod ledger;

use super::{clock, timer};
use crate::queue::state::figures::Figures;
use database::{Database, PARKED};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;

pub use database::IDLE;
pub use ledger::{closed, Name, Ticket};

/// A key that needs attention, and since when.
#[derive(Clone, Debug)]
pub struct Due {
    pub db: c_int,
    pub name: Name,
    pub instant: u64,
}

/// A cursor over all names.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    db: c_int,
    number: u32,
}

#[derive(Default)]
pub struct Deadlines {
    /// Only databases that have entries.
    databases: BTreeMap<c_int, Database>,
    /// Whether two databases were ever swapped: since then a ticket may name another database than
    /// its account's.
    swapped: bool,
}

thread_local! {
    /// On a replica queues wait for their master: its timer only ends waits.
    static IS_MASTER: Cell<bool> = const { Cell::new(true) };
    static DEADLINES: RefCell<Deadlines> = const { RefCell::new(Deadlines::new()) };
    /// When the first command ran whose work for the timer is still to be done; u64::MAX if there
    /// is none.
    static COMMANDS_BEGAN: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Discarded databases that are not freed yet.
    static CLEARED: RefCell<Vec<Database>> = const { RefCell::new(Vec::new()) };
}

impl Deadlines {
    pub const fn new() -> Self {
        Deadlines {
            databases: BTreeMap::new(),
            swapped: false,
        }
    }

    /// Whether all names are in database 0.
    pub fn is_of_first_database(&self) -> bool {
        self.databases.keys().all(|&db| db == 0)
    }

    pub fn names_of(&self, db: c_int) -> Vec<Name> {
        let ledger = self.databases.get(&db).map(|database| &database.ledger);
        let records = ledger
            .into_iter()
            .flat_map(|it| (0..it.end()).filter_map(|number| it.get(number)));
        records.map(|record| Arc::clone(&record.name)).collect()
    }

    fn set(&mut self, db: c_int, name: &[u8], instant: u64) {
        self.databases.entry(db).or_default().set(name, instant);
    }

    fn remove(&mut self, db: c_int, name: &[u8]) {
        if let Some(database) = self.databases.get_mut(&db) {
            database.remove(name);
            if database.ledger.is_empty() {
                self.databases.remove(&db);
            }
        }
    }

    fn next(&self) -> Option<(u64, c_int, &Name)> {
        let firsts = self.databases.iter().filter_map(|(&db, database)| {
            let (instant, name) = database.by_instant.first()?;
            Some((*instant, db, name))
        });
        firsts.min_by_key(|&(instant, db, _)| (instant, db))
    }

    fn take_due(&mut self, now_ms: u64) -> Option<Due> {
        let (instant, db, name) = self.next().filter(|&(instant, ..)| instant <= now_ms)?;
        let name = Arc::clone(name);
        self.set(db, &name, IDLE);
        Some(Due { db, name, instant })
    }

    fn swap(&mut self, a: c_int, b: c_int) {
        self.swapped = true;
        let of_a = self.databases.remove(&a);
        let of_b = self.databases.remove(&b);
        self.databases.extend(of_a.map(|database| (b, database)));
        self.databases.extend(of_b.map(|database| (a, database)));
    }
}

/// Says who decides about the queues from now on: this server, or its master.
pub fn set_role(master: bool) {
    IS_MASTER.set(master);
}

pub fn is_master() -> bool {
    IS_MASTER.get()
}

/// Arms the timer for a queue that needs attention at this instant.
pub fn arm(instant: u64) {
    if !IS_MASTER.get() || instant >= IDLE {
        return;
    }
    if !clock::is_for_tests() {
        timer::arm(instant);
    } else if instant <= clock::now().ms() {
        timer::arm(0);
    }
}

/// The instant for a key that needs attention because of the running command. All keys of a
/// transaction get the same one, whatever the clock says: a transaction happens at once.
pub fn at_once(now_ms: u64) -> u64 {
    let began = COMMANDS_BEGAN.get().min(now_ms);
    COMMANDS_BEGAN.set(began);
    began
}

/// The timer begins to process what commands have left to it.
pub fn begin_turns() {
    COMMANDS_BEGAN.set(u64::MAX);
}

/// Has the timer check the key as soon as the running command is done.
pub fn check_soon(db: c_int, name: &[u8]) {
    set(db, name, at_once(clock::now().ms()));
    arm(0);
}

/// Has the timer check the key at this instant, and not earlier.
pub fn set(db: c_int, name: &[u8], instant: u64) {
    DEADLINES.with_borrow_mut(|d| d.set(db, name, instant));
}

/// Removes a name that holds no queue any more.
pub fn remove(db: c_int, name: &[u8]) {
    DEADLINES.with_borrow_mut(|d| d.remove(db, name));
}

/// Whether the key needs attention at `by_ms` or earlier.
pub fn needs_attention(db: c_int, name: &[u8], by_ms: u64) -> bool {
    DEADLINES.with_borrow(|d| {
        let ledger = d.databases.get(&db).map(|database| &database.ledger);
        let record = ledger.and_then(|ledger| ledger.get(ledger.find(name)?));
        record.is_some_and(|record| record.instant <= by_ms)
    })
}

/// The earliest instant of all keys that are not parked.
pub fn next() -> Option<u64> {
    DEADLINES.with_borrow(|d| {
        d.next()
            .map(|(instant, ..)| instant)
            .filter(|&at| at < PARKED)
    })
}

/// Parks the key until this node serves its slot.
pub fn park(db: c_int, name: &[u8], slot: u16) {
    set(db, name, PARKED + u64::from(slot));
}

/// The first slot from this one on that has parked keys, and one of them.
pub fn parked_from(slot: u16) -> Option<(u16, c_int, Arc<[u8]>)> {
    DEADLINES.with_borrow(|d| {
        let firsts = d.databases.iter().filter_map(|(&db, database)| {
            let (of, name) = database.parked_from(slot.into())?;
            Some((of as u16, db, name))
        });
        let (of, db, name) = firsts.min_by_key(|&(of, ..)| of)?;
        Some((of, db, Arc::clone(name)))
    })
}

/// Makes up to `count` parked keys of the slot due now; returns how many there were.
pub fn unpark(slot: u16, count: usize) -> usize {
    DEADLINES.with_borrow_mut(|d| {
        let mut done = 0;
        for database in d.databases.values_mut() {
            done += database.unpark(slot.into(), count - done);
        }
        done
    })
}

/// Marks the account as outdated, if its figures may be entered later: see [`Ledger::mark`].
pub fn mark(db: c_int, ticket: Ticket) -> bool {
    DEADLINES.with_borrow_mut(|d| {
        let database = d.databases.get_mut(&db);
        database.is_some_and(|it| it.ledger.mark(ticket))
    })
}

/// Enters the figures of the queue of this name, which are valid until `until`. False if the name
/// was unknown: its key must be checked.
pub fn account(db: c_int, name: &[u8], ticket: &mut Ticket, figures: Figures, until: u64) -> bool {
    DEADLINES.with_borrow_mut(|d| {
        let database = d.databases.get_mut(&db);
        if database.is_some_and(|it| it.ledger.enter(*ticket, figures, until)) {
            return true;
        }
        let database = d.databases.entry(db).or_default();
        let was_here;
        (*ticket, was_here) = database.account(db, name);
        database.ledger.enter(*ticket, figures, until);
        was_here
    })
}

/// About the bytes of purged jobs that are not freed yet: of this queue, and of all, as they were entered last.
pub fn unfreed_bytes(ticket: Ticket) -> (u64, u64) {
    DEADLINES.with_borrow(|d| {
        let ledgers = || d.databases.values().map(|database| &database.ledger);
        let own = ledgers().map(|it| it.unfreed_bytes(ticket)).max();
        let all = ledgers().map(|it| it.sum().unfreed_bytes).sum();
        (own.unwrap_or(0), all)
    })
}

/// As [`account`], for a queue that is new under this name, perhaps renamed from another.
pub fn account_anew(db: c_int, name: &[u8], ticket: &mut Ticket, figures: Figures, until: u64) {
    DEADLINES.with_borrow_mut(|d| {
        let database = d.databases.entry(db).or_default();
        (*ticket, _) = database.account(db, name);
        database.ledger.enter(*ticket, figures, until);
    });
}

/// How many queues all databases have.
pub fn queues() -> usize {
    DEADLINES.with_borrow(|d| d.databases.values().map(|it| it.ledger.len()).sum())
}

/// The database and name of the queue with this ticket, if it exists.
pub fn find(ticket: Ticket) -> Option<(c_int, Name)> {
    DEADLINES.with_borrow(|d| {
        let name_in = |database: &Database| database.ledger.name(ticket).map(Arc::clone);
        if let Some(name) = d.databases.get(&ticket.db).and_then(name_in) {
            return Some((ticket.db, name));
        }
        let mut databases = d.databases.iter().filter(|_| d.swapped);
        databases.find_map(|(&db, database)| Some((db, name_in(database)?)))
    })
}

/// A queue in which a job became due since its figures were entered, or that is marked.
pub fn outdated(now_ms: u64) -> Option<(c_int, Name)> {
    DEADLINES.with_borrow_mut(|d| {
        let mut databases = d.databases.iter_mut();
        databases.find_map(|(&db, database)| Some((db, database.ledger.outdated(now_ms)?)))
    })
}

/// The first instant at which figures become outdated, or an earlier one.
pub fn next_outdated() -> Option<u64> {
    DEADLINES.with_borrow(|d| {
        let nexts = d.databases.values();
        nexts.filter_map(|database| database.ledger.next()).min()
    })
}

/// How many queues there are, and what their figures add up to.
pub fn figures() -> (usize, Figures) {
    DEADLINES.with_borrow(|d| {
        let mut all = (0, Figures::default());
        for Database { ledger, .. } in d.databases.values() {
            all.0 += ledger.len();
            all.1.exchange(Figures::default(), *ledger.sum());
            all.1.done += ledger.sum().done;
            all.1.done_bytes += ledger.sum().done_bytes;
            all.1.unfreed_bytes += ledger.sum().unfreed_bytes;
            let first_due = all.1.first_due.into_iter().chain(ledger.first_due());
            all.1.first_due = first_due.min();
        }
        all
    })
}

/// The key that has been due for attention longest. From now on its entry is [`IDLE`].
pub fn take_due(now_ms: u64) -> Option<Due> {
    DEADLINES.with_borrow_mut(|d| d.take_due(now_ms))
}

/// Removes the entries of this database, or of all. They are freed later, so that FLUSHALL ASYNC
/// does not wait for that.
pub fn clear(db: Option<c_int>) {
    DEADLINES.with_borrow_mut(|d| match db {
        Some(db) => discard_all(d.databases.remove(&db)),
        None => discard_all(std::mem::take(&mut d.databases).into_values()),
    });
}

/// Leaves entries to [`free_some`].
pub fn discard(old: Deadlines) {
    discard_all(old.databases.into_values());
}

fn discard_all(databases: impl IntoIterator<Item = Database>) {
    ledger::all_closed();
    CLEARED.with_borrow_mut(|cleared| cleared.extend(databases));
}

/// Frees about `count` entries that were discarded.
pub fn free_some(count: usize) {
    CLEARED.with_borrow_mut(|cleared| {
        let is_empty = cleared
            .last_mut()
            .is_some_and(|last| !last.free_some(count));
        if is_empty {
            cleared.pop();
        }
    });
}

pub fn has_discarded() -> bool {
    CLEARED.with_borrow(|cleared| !cleared.is_empty())
}

/// Replaces all entries, and returns the old ones.
pub fn replace(others: Deadlines) -> Deadlines {
    DEADLINES.replace(others)
}

/// Up to `count` names from `from` on, one database after the other, and the place to continue
/// from, if there is more. A name that exists throughout a whole listing is returned by one of its
/// calls.
pub fn names_from(from: Option<Place>, count: usize) -> (Vec<(c_int, Name)>, Option<Place>) {
    let mut names = Vec::new();
    let next = DEADLINES.with_borrow(|d| {
        let first = from.map_or(c_int::MIN, |place| place.db);
        for (&db, database) in d.databases.range(first..) {
            let number = from
                .filter(|place| place.db == db)
                .map_or(0, |place| place.number);
            let mut add = |name: &Name| {
                names.push((db, Arc::clone(name)));
                names.len()
            };
            let next = database.names_from(number, count, &mut add);
            if let Some(number) = next {
                return Some(Place { db, number });
            }
        }
        None
    });
    (names, next)
}

/// Swaps two databases.
pub fn swap(a: c_int, b: c_int) {
    DEADLINES.with_borrow_mut(|d| d.swap(a, b));
}

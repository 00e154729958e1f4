//! A replica that loads its master's data beside its own (`repl-diskless-load swapdb`) and serves
//! its own data meanwhile. Both have names and figures; those of the new data count once the data
//! are swapped in.
//!
//! Redis before 7.4 and Valkey before 8.0 report database 0 for every key that they load this way.
//! Where that may be wrong, the timer searches all databases for each name afterwards.

use super::agenda::{self, Deadlines, Name};
use super::api::{Ctx, KeyName, OwnString};
use super::blocked;
use super::key::OpenKey;
use std::cell::RefCell;
use std::ffi::c_int;

/// Names to search for in all databases. Building this list takes some 50 ms for a million names.
/// The agenda cannot hold them: it drops a name as soon as a check finds no queue.
#[derive(Default)]
struct Misplaced {
    names: Vec<Name>,
    /// The database under which they were noted: 0, until it is swapped.
    noted_in: c_int,
}

thread_local! {
    /// The agenda of the new data, while they are loaded.
    static INCOMING: RefCell<Option<Deadlines>> = const { RefCell::new(None) };
    static MISPLACED: RefCell<Misplaced> = RefCell::default();
}

pub fn begin() {
    INCOMING.set(Some(Deadlines::new()));
}

pub fn is_under_way() -> bool {
    INCOMING.with_borrow(Option::is_some)
}

/// Notes a queue that is loaded. While new data are loaded beside the old, it goes on the agenda of
/// the new data. A panic in `note` is not handled here: a server that a module refuses a file's
/// data exits.
pub fn noting(note: impl FnOnce()) {
    let Some(incoming) = INCOMING.take() else {
        return note();
    };
    let present = agenda::replace(incoming);
    note();
    INCOMING.set(Some(agenda::replace(present)));
}

/// The new data have replaced the old data.
pub fn complete(ctx: Ctx<'_>) {
    let Some(incoming) = INCOMING.take() else {
        return;
    };
    let is_doubtful = incoming.is_of_first_database() && ctx.databases_in_use().any(|db| db != 0);
    let names = if is_doubtful {
        incoming.names_of(0)
    } else {
        Vec::new()
    };
    MISPLACED.set(Misplaced { names, noted_in: 0 });
    agenda::discard(agenda::replace(incoming));
}

/// The old data stay.
pub fn abort() {
    INCOMING.take().into_iter().for_each(agenda::discard);
}

pub fn has_misplaced() -> bool {
    MISPLACED.with_borrow(|misplaced| !misplaced.names.is_empty())
}

/// Two databases were swapped, and with them the names that were noted there.
pub fn swap(first: c_int, second: c_int) {
    MISPLACED.with_borrow_mut(|misplaced| {
        misplaced.noted_in = match misplaced.noted_in {
            db if db == first => second,
            db if db == second => first,
            db => db,
        };
    });
}

/// Moves names to the databases that have their queues, in at most `steps` steps.
pub fn put_in_place(ctx: Ctx<'_>, mut steps: usize) {
    if !has_misplaced() {
        return;
    }
    let databases: Vec<c_int> = ctx.databases_in_use().collect();
    while steps > 0 {
        let next = |misplaced: &mut Misplaced| Some((misplaced.names.pop()?, misplaced.noted_in));
        let Some((name, noted_in)) = MISPLACED.with_borrow_mut(next) else {
            MISPLACED.take();
            break;
        };
        let raw_name = OwnString::new(&name);
        let holds_it = |&db: &c_int| note_if_queue(ctx, db, raw_name.name());
        let found: Vec<c_int> = databases.iter().copied().filter(holds_it).collect();
        if !found.contains(&noted_in) {
            agenda::remove(noted_in, &name);
        }
        steps = steps.saturating_sub(databases.len().max(1));
    }
}

/// Enters the queue of this name, if the database has one, at the instant it was entered for. That
/// does not wake it.
fn note_if_queue(ctx: Ctx<'_>, db: c_int, name: KeyName<'_>) -> bool {
    if !ctx.select_db(db) {
        return false;
    }
    let Ok(mut open) = OpenKey::peek(ctx, name) else {
        return false;
    };
    let (name, waits) = (open.name(), blocked::any(db, open.name()));
    let Some(value) = open.value() else {
        return false;
    };
    let instant = if waits { 0 } else { value.armed_for };
    if !agenda::needs_attention(db, name, instant) {
        agenda::set(db, name, instant.min(agenda::IDLE));
    }
    value.account_as(db, name);
    true
}

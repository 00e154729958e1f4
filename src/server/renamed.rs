//! Finds queues that get another name on servers where keyspace events must not be subscribed to.
//!
//! On Valkey 8.1.0 to 9.1.0, MOVE and COPY of a key of any type leave their client in the other
//! database, as soon as a module subscribes to keyspace events. There dq does not subscribe.
//! Without events, only the new name after RENAME and MOVE goes unnoticed by our commands and the
//! type's callbacks. So a value that was unlinked and not freed is searched for, in steps, through
//! all keys. Names on which clients wait are checked first.

use super::api::{api, bytes_of, guarded, log, Ctx, KeyName, OwnString, RawString};
use super::key::OpenKey;
use super::{agenda, blocked, queue_value, reclaim, timer};
use redis_module::raw;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// From the first release that mixes databases up, to the first one that does not any more.
const AFFECTED: std::ops::Range<(u32, u32, u32)> = (8, 1, 0)..(9, 1, 1);

/// Once true, it stays true.
static SEARCHES: AtomicBool = AtomicBool::new(false);

/// Addresses of unlinked values that were not freed yet. Each has the pass of the search after
/// which it is not searched for any more. Values are freed on any thread.
static UNLINKED: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());

struct KeyScan {
    cursor: Cell<*mut raw::RedisModuleScanCursor>,
    /// The database that is being searched.
    db: Cell<c_int>,
    pass: Cell<u64>,
    /// A value was unlinked since the names on which clients wait were checked.
    has_news: Cell<bool>,
    /// Names that were found, or that the running command is giving to a queue. They are kept until
    /// later, as the command may first unlink what the name holds.
    arriving: RefCell<Vec<(c_int, Box<[u8]>)>>,
}

thread_local! {
    static SCAN: KeyScan = const {
        KeyScan {
            cursor: Cell::new(null_mut()),
            db: Cell::new(0),
            pass: Cell::new(0),
            has_news: Cell::new(false),
            arriving: RefCell::new(Vec::new()),
        }
    };
}

fn unlinked() -> MutexGuard<'static, BTreeMap<usize, u64>> {
    UNLINKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Called at load: whether keyspace events can be subscribed to. If not, queues are searched for.
pub fn are_heard(ctx: Ctx<'_>) -> bool {
    let version = ctx.valkey_version();
    let Some(version) = version.filter(|version| AFFECTED.contains(version)) else {
        return true;
    };
    let (major, minor, patch) = version;
    log(
        c"notice",
        &format!(
            "Valkey {major}.{minor}.{patch} mixes up databases once a module listens to keyspace events \
             (valkey pull request 4024): dq does without them, and finds renamed and moved queues by \
             going through all keys. Valkey 9.1.1 and later do not need that."
        ),
    );
    SEARCHES.store(true, Ordering::Relaxed);
    false
}

pub fn is_searching() -> bool {
    SEARCHES.load(Ordering::Relaxed)
}

/// A key lost its value, which may now get another name, or be freed.
pub fn note_unlinked(value: *const c_void) {
    if !is_searching() {
        return;
    }
    SCAN.with(|search| {
        let mut unlinked = unlinked();
        if unlinked.is_empty() {
            search.restart();
        }
        unlinked.insert(value.addr(), search.pass.get() + 1);
        search.has_news.set(true);
    });
    timer::arm(0);
}

/// The value was freed, so it has no name and will have none. Called on any thread.
pub fn note_freed(value: *const c_void) {
    if is_searching() {
        unlinked().remove(&value.addr());
    }
}

/// Defragmentation has moved the value.
pub fn note_moved(old: *const c_void, new: *const c_void) {
    if is_searching() {
        let mut unlinked = unlinked();
        if let Some(last) = unlinked.remove(&old.addr()) {
            unlinked.insert(new.addr(), last);
        }
    }
}

/// A command is about to give that name to a queue.
pub fn note_arriving(db: c_int, name: &[u8]) {
    if is_searching() {
        SCAN.with(|search| search.arriving.borrow_mut().push((db, name.into())));
        timer::arm(0);
    }
}

/// Two databases were swapped: the search starts again, and arriving names are in the other database.
pub fn swap(first: c_int, second: c_int) {
    SCAN.with(|search| {
        for (db, _) in search.arriving.borrow_mut().iter_mut() {
            *db = match *db {
                db if db == first => second,
                db if db == second => first,
                db => db,
            };
        }
        search.restart();
    });
}

/// Whether the timer has something to search for.
pub fn has_work() -> bool {
    let has_arriving = || SCAN.with(|search| !search.arriving.borrow().is_empty());
    is_searching() && (!unlinked().is_empty() || has_arriving())
}

/// Checks names that got a queue, and continues the search by at most `steps` steps.
pub fn search(ctx: Ctx<'_>, mut steps: usize) {
    if !is_searching() {
        return;
    }
    if SCAN.with(|search| search.has_news.take()) && !unlinked().is_empty() {
        for (db, name) in blocked::keys() {
            agenda::check_soon(db, &name);
        }
    }
    while steps > 0 && !unlinked().is_empty() {
        steps = SCAN.with(|search| search.step(ctx, steps));
    }
    for (db, name) in SCAN.with(|search| search.arriving.take()) {
        if ctx.select_db(db) {
            note_arrival(ctx, OwnString::new(&name).name());
        }
    }
}

/// The name may hold a queue that was not there before: if so, the timer must check it.
pub fn note_arrival(ctx: Ctx<'_>, name: KeyName<'_>) {
    if let Some(db) = OpenKey::db_of_queue(ctx, name) {
        let name = name.bytes();
        agenda::check_soon(db, name);
        reclaim::note_purged(db, name);
    }
}

impl KeyScan {
    fn restart(&self) {
        self.db.set(0);
        // SAFETY: takes no arguments; the old cursor was made here, and is freed once.
        unsafe {
            let old = self.cursor.replace(api!(RedisModule_ScanCursorCreate));
            if !old.is_null() {
                api!(RedisModule_ScanCursorDestroy, old);
            }
        }
    }

    /// Checks a few keys; returns how many steps are left.
    fn step(&self, ctx: Ctx<'_>, steps: usize) -> usize {
        if !ctx.select_db(self.db.get()) {
            self.end_pass();
            return steps - 1;
        }
        let mut seen = 1usize;
        // SAFETY: live context and cursor; the callback is called within, and gets `seen`.
        let more = unsafe {
            api!(
                RedisModule_Scan,
                ctx.raw(),
                self.cursor.get(),
                Some(on_key),
                (&raw mut seen).cast()
            )
        };
        if more == 0 {
            let next = self.db.get() + 1;
            self.restart();
            self.db.set(next);
        }
        steps.saturating_sub(seen)
    }

    fn end_pass(&self) {
        let pass = self.pass.get();
        unlinked().retain(|_, last| *last > pass);
        self.pass.set(pass + 1);
        self.restart();
    }
}

unsafe extern "C" fn on_key(
    ctx: *mut raw::RedisModuleCtx,
    name: RawString,
    key: *mut raw::RedisModuleKey,
    seen: *mut c_void,
) {
    guarded("the search for a queue", (), || {
        // SAFETY: the server passes a live context, name and open key, and what `step` gave it.
        unsafe {
            *seen.cast::<usize>() += 1;
            if api!(RedisModule_ModuleTypeGetType, key) != queue_value::data_type() {
                return;
            }
            let found = api!(RedisModule_ModuleTypeGetValue, key);
            if unlinked().remove(&found.addr()).is_some() {
                // Only noted: a key must not be opened during the scan.
                note_arriving(Ctx::new(ctx).selected_db(), bytes_of(name));
            }
        }
    });
}

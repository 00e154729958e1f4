//! Memory of large queues that are gone, freed in small steps by the timer: a million jobs at once
//! would hold up the other clients.

use super::ffi::{api, Ctx, OwnString};
use super::keyspace::OpenKey;
use super::timer;
use crate::queue::remains::Remains;
use crate::queue::Queue;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::c_int;

/// Freeing fewer things than this is not felt.
const SMALL: usize = 5000;
/// Things freed at a time.
const STEP: usize = 256;

thread_local! {
    /// Set on the main thread only: a queue may be freed on others, which have no timer.
    static IS_MAIN_THREAD: Cell<bool> = const { Cell::new(false) };
    static GRAVES: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
    /// Keys whose queues may have ghosts.
    static HAUNTED: RefCell<BTreeSet<(c_int, Box<[u8]>)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Once, at load.
pub fn start() {
    IS_MAIN_THREAD.set(true);
}

/// Frees a queue, a large one later. Not where memory is short: who evicts waits for it.
pub fn bury(queue: Queue) {
    if queue.free_effort() > SMALL && IS_MAIN_THREAD.get() && !is_memory_short() {
        lay(vec![queue.into()]);
    }
}

/// Has these freed step by step.
pub fn lay(remains: Vec<Remains>) {
    GRAVES.with_borrow_mut(|graves| graves.extend(remains));
    timer::arm(0);
}

pub fn is_empty() -> bool {
    GRAVES.with_borrow(Vec::is_empty) && HAUNTED.with_borrow(BTreeSet::is_empty)
}

/// The key's queue may have ghosts to bury: on a replica, too, for it is no change of data.
pub fn haunt(db: c_int, name: &[u8]) {
    HAUNTED.with_borrow_mut(|haunted| haunted.insert((db, name.into())));
    timer::arm(0);
}

/// The databases have changed places: where ghosts were in one, they may be in the other now.
pub fn swap(a: c_int, b: c_int) {
    HAUNTED.with_borrow_mut(|haunted| {
        let moved = haunted.iter().filter(|(db, _)| *db == a || *db == b);
        let moved: Vec<_> = moved.map(|(db, name)| (a + b - db, name.clone())).collect();
        haunted.extend(moved);
    });
}

/// Buries ghosts, with so many steps; returns how many are left.
pub fn visit_haunted(ctx: Ctx<'_>, mut steps: usize) -> usize {
    while steps > 0 {
        let Some((db, name)) = HAUNTED.with_borrow_mut(BTreeSet::pop_first) else {
            break;
        };
        steps -= 1;
        let raw_name = OwnString::new(&name);
        if !ctx.select_db(db) {
            continue;
        }
        let Ok(mut open) = OpenKey::peek(ctx, raw_name.raw()) else {
            continue;
        };
        let Some(queue) = open.queue() else {
            continue;
        };
        steps = queue.bury(steps);
        if queue.is_haunted() {
            HAUNTED.with_borrow_mut(|haunted| haunted.insert((db, name)));
        }
    }
    steps
}

/// Frees about so many things.
pub fn shed(steps: usize) {
    GRAVES.with_borrow_mut(|graves| {
        let mut left = steps;
        while left > 0 {
            let Some(grave) = graves.last_mut() else {
                break;
            };
            if !grave.shed(STEP) {
                graves.pop();
            }
            left = left.saturating_sub(STEP);
        }
    });
}

fn is_memory_short() -> bool {
    // SAFETY: takes no arguments.
    unsafe { api!(RedisModule_GetUsedMemoryRatio) >= 1.0 }
}

//! Memory of large queues that are gone, freed in small steps by the timer: a million jobs at once
//! would hold up the other clients.

use super::api::api;
use super::timer;
use crate::queue::state::garbage::Remains;
use crate::queue::Queue;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::c_int;

/// Freeing fewer things than this is not felt.
const SMALL: usize = 5000;
/// Things freed at a time.
const STEP: usize = 256;
/// Things that a command frees: it may have added one job, which is a few of them, and so they are freed
/// faster than they can come, where the timer does not come to it (in a script, in a load).
const SHARE: usize = 16;

thread_local! {
    /// Set on the main thread only: a queue may be freed on others, which have no timer.
    static IS_MAIN_THREAD: Cell<bool> = const { Cell::new(false) };
    static GRAVES: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
    /// Jobs and ids in them.
    static WAITING: Cell<usize> = const { Cell::new(0) };
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
    let count: usize = remains.iter().map(Remains::left).sum();
    WAITING.set(WAITING.get() + count);
    GRAVES.with_borrow_mut(|graves| graves.extend(remains));
    timer::arm(0);
}

/// Jobs and ids that are gone and not freed yet, but for ghosts.
pub fn waiting() -> usize {
    WAITING.get()
}

/// The share of somebody who has added so many jobs.
pub fn pay_for(jobs: usize) {
    let is_empty = GRAVES.with_borrow(Vec::is_empty);
    if !is_empty && IS_MAIN_THREAD.get() {
        shed(SHARE * jobs);
    }
}

/// Such a key, which is taken out.
pub fn next_haunted() -> Option<(c_int, Box<[u8]>)> {
    HAUNTED.with_borrow_mut(BTreeSet::pop_first)
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

/// Frees about so many things.
pub fn shed(steps: usize) {
    GRAVES.with_borrow_mut(|graves| {
        let mut left = steps;
        while left > 0 {
            let Some(grave) = graves.last_mut() else {
                break;
            };
            let (step, before) = (STEP.min(left), grave.left());
            let is_left = grave.shed(step);
            WAITING.set(WAITING.get() + grave.left() - before);
            if !is_left {
                graves.pop();
            }
            left -= step;
        }
    });
}

fn is_memory_short() -> bool {
    // SAFETY: takes no arguments.
    unsafe { api!(RedisModule_GetUsedMemoryRatio) >= 1.0 }
}

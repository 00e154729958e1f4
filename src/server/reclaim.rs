//! The memory of large queues that were removed, freed in small steps by the timer: freeing a million jobs at once
//! would hold up other clients.

use super::api::api;
use super::timer;
use crate::queue::state::garbage::Garbage;
use crate::queue::Queue;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Freeing fewer things than this is not felt.
const SMALL: usize = 5000;
/// Things freed at a time.
const STEP: usize = 256;
/// Things that a command frees: it may have added one job, which is a few of them, and so they are freed
/// faster than they can come, where the timer does not come to it (in a script, in a load).
const SHARE: usize = 16;

/// Jobs and ids that are gone and not freed yet: asked by each command, so no variable of a thread's.
static WAITING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Set on the main thread only: a queue may be freed on others, which have no timer.
    static IS_MAIN_THREAD: Cell<bool> = const { Cell::new(false) };
    static GARBAGE: RefCell<Vec<Garbage>> = const { RefCell::new(Vec::new()) };
    /// Keys whose queues may have purged jobs.
    static WITH_PURGED: RefCell<BTreeSet<(c_int, Box<[u8]>)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Once, at load.
pub fn start() {
    IS_MAIN_THREAD.set(true);
}

/// Frees a queue, a large one later. Not where memory is short: who evicts waits for it.
pub fn free_later(queue: Queue) {
    if queue.free_effort() > SMALL && IS_MAIN_THREAD.get() && !is_memory_short() {
        add(vec![queue.into()]);
    }
}

/// Has these freed step by step.
pub fn add(garbage: Vec<Garbage>) {
    let count: usize = garbage.iter().map(Garbage::left).sum();
    WAITING.fetch_add(count, Ordering::Relaxed);
    GARBAGE.with_borrow_mut(|all| all.extend(garbage));
    timer::arm(0);
}

/// Jobs and ids that are gone and not freed yet, but for purged jobs.
pub fn waiting() -> usize {
    WAITING.load(Ordering::Relaxed)
}

/// The share of somebody who has added so many jobs.
#[inline]
pub fn pay_for(jobs: usize) {
    if waiting() > 0 && IS_MAIN_THREAD.get() {
        free_some(SHARE * jobs);
    }
}

/// Such a key, which is taken out.
pub fn next_with_purged() -> Option<(c_int, Box<[u8]>)> {
    WITH_PURGED.with_borrow_mut(BTreeSet::pop_first)
}

pub fn is_empty() -> bool {
    GARBAGE.with_borrow(Vec::is_empty) && WITH_PURGED.with_borrow(BTreeSet::is_empty)
}

/// The key's queue may have purged jobs to free: on a replica, too, for it is no change of data.
pub fn note_purged(db: c_int, name: &[u8]) {
    WITH_PURGED.with_borrow_mut(|keys| keys.insert((db, name.into())));
    timer::arm(0);
}

/// The databases have changed places: where purged jobs were in one, they may be in the other now.
pub fn swap(a: c_int, b: c_int) {
    WITH_PURGED.with_borrow_mut(|keys| {
        let moved = keys.iter().filter(|(db, _)| *db == a || *db == b);
        let moved: Vec<_> = moved.map(|(db, name)| (a + b - db, name.clone())).collect();
        keys.extend(moved);
    });
}

/// Frees about so many things.
pub fn free_some(steps: usize) {
    GARBAGE.with_borrow_mut(|garbage| {
        let mut left = steps;
        while left > 0 {
            let Some(first) = garbage.last_mut() else {
                break;
            };
            let (step, before) = (STEP.min(left), first.left());
            let is_left = first.free_some(step);
            // Lists are freed whole nodes at a time, and some count their entries until they are gone.
            let after = if is_left { first.left() } else { 0 };
            WAITING.store(waiting() + after - before, Ordering::Relaxed);
            if !is_left {
                garbage.pop();
            }
            left -= step;
        }
    });
}

fn is_memory_short() -> bool {
    // SAFETY: takes no arguments.
    unsafe { api!(RedisModule_GetUsedMemoryRatio) >= 1.0 }
}

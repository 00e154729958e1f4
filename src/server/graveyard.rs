//! Memory of large queues that are gone, freed in small steps by the timer: a million jobs at once
//! would hold up the other clients.

use super::ffi::api;
use super::timer;
use crate::queue::remains::Remains;
use crate::queue::Queue;
use std::cell::{Cell, RefCell};

/// Freeing fewer things than this is not felt.
const SMALL: usize = 5000;
/// Things freed at a time.
const STEP: usize = 256;

thread_local! {
    /// Set on the main thread only: a queue may be freed on others, which have no timer.
    static IS_MAIN_THREAD: Cell<bool> = const { Cell::new(false) };
    static GRAVES: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
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
    if !remains.is_empty() {
        GRAVES.with_borrow_mut(|graves| graves.extend(remains));
        timer::arm(0);
    }
}

pub fn is_empty() -> bool {
    GRAVES.with_borrow(Vec::is_empty)
}

/// Frees some; how many steps are left of these.
pub fn shed(steps: usize) -> usize {
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
        left
    })
}

fn is_memory_short() -> bool {
    // SAFETY: takes no arguments.
    unsafe { api!(RedisModule_GetUsedMemoryRatio) >= 1.0 }
}

//! Frees the memory of large removed queues in small steps, by the timer: freeing a million jobs at
//! once would delay other clients.

use super::agenda::{self, Ticket};
use super::api::api;
use super::timer;
use crate::queue::state::parts::Garbage;
use crate::queue::Queue;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is freed in up to so many steps is freed at once: it takes no noticeable time. A step is a job, an id or
/// [`STEP_BYTES`](crate::queue::budget::STEP_BYTES).
const SMALL: usize = 5000;
/// Steps at a time.
const STEP: usize = 256;
/// Steps that a command takes for each job or [`STEP_BYTES`](crate::queue::budget::STEP_BYTES) that it adds, which make a few
/// of them. So memory is freed faster than it can be taken, even where the timer does not run (in a script, in a load).
const SHARE: usize = 16;
/// Where memory is nearly full, who removes much may want to add at once: the server refuses that before it asks us.
const NEARLY_FULL: f32 = 0.99;
/// Steps that make room for it: 16 MB, in some milliseconds.
const ROOM: usize = 4096;
/// Where so many bytes wait, a purge that leaves other jobs in its queue frees as many as it adds. Without that, memory
/// would only be bounded by how fast a script can take it.
const BYTES_MAX: u64 = 64 << 20;

/// Removed jobs and ids that are not freed yet.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Their bytes. An atomic, which is cheaper to read than a thread-local: each command reads it.
static BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Set on the main thread only. A queue may be freed on other threads, which have no timer.
    static IS_MAIN_THREAD: Cell<bool> = const { Cell::new(false) };
    static GARBAGE: RefCell<Vec<(Garbage, usize)>> = const { RefCell::new(Vec::new()) };
    /// Keys whose queues may have purged jobs.
    static WITH_PURGED: RefCell<BTreeSet<(c_int, Box<[u8]>)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Called once, at load.
pub fn start() {
    IS_MAIN_THREAD.set(true);
}

/// Frees a queue; a large one later. Not later if memory is short: the server is evicting, and
/// waits for the memory.
pub fn free_later(queue: Queue) {
    if queue.free_effort() > SMALL && IS_MAIN_THREAD.get() && !is_memory_short() {
        add(vec![queue.into()]);
    }
}

/// Has this garbage freed step by step.
pub fn add(garbage: Vec<Garbage>) {
    let count: usize = garbage.iter().map(Garbage::left).sum();
    let sized = garbage.into_iter().map(|it| {
        let bytes = it.heap_bytes().max(1);
        (it, bytes)
    });
    let sized = Vec::from_iter(sized);
    WAITING.fetch_add(count, Ordering::Relaxed);
    BYTES.fetch_add(sized.iter().map(|it| it.1).sum(), Ordering::Relaxed);
    GARBAGE.with_borrow_mut(|all| all.extend(sized));
    if used_memory() >= NEARLY_FULL {
        free_some(ROOM);
    }
    while bytes() > 0 && is_memory_short() {
        free_some(STEP);
    }
    timer::arm(0);
}

/// Removed jobs and ids that are not freed yet, without purged jobs.
pub fn waiting() -> usize {
    WAITING.load(Ordering::Relaxed)
}

/// Bytes of what was removed and is not freed yet, without purged jobs.
pub fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

/// What a caller must free that adds what takes so many steps to free.
#[inline]
pub fn pay_for(steps: impl FnOnce() -> usize) {
    if bytes() > 0 && IS_MAIN_THREAD.get() {
        free_some(SHARE * steps());
    }
}

/// Takes out a key whose queue may have purged jobs.
pub fn next_with_purged() -> Option<(c_int, Box<[u8]>)> {
    WITH_PURGED.with_borrow_mut(BTreeSet::pop_first)
}

pub fn is_empty() -> bool {
    GARBAGE.with_borrow(Vec::is_empty) && WITH_PURGED.with_borrow(BTreeSet::is_empty)
}

/// Frees as many bytes of purged jobs as the queue's latest change has added, where very many wait already.
pub fn bound(queue: &mut Queue, ticket: Ticket) {
    let (own, all) = agenda::unfreed_bytes(ticket);
    if all + bytes() as u64 > BYTES_MAX {
        queue.free_purged_to(own);
    }
}

/// The key's queue may have purged jobs to free. Done on replicas, too, as freeing does not change data.
pub fn note_purged(db: c_int, name: &[u8]) {
    WITH_PURGED.with_borrow_mut(|keys| keys.insert((db, name.into())));
    timer::arm(0);
}

/// Two databases were swapped: where one had purged jobs, the other may have them now.
pub fn swap(a: c_int, b: c_int) {
    WITH_PURGED.with_borrow_mut(|keys| {
        let moved = keys.iter().filter(|(db, _)| *db == a || *db == b);
        let moved: Vec<_> = moved.map(|(db, name)| (a + b - db, name.clone())).collect();
        keys.extend(moved);
    });
}

/// Frees about so many jobs and ids.
pub fn free_some(steps: usize) {
    GARBAGE.with_borrow_mut(|garbage| {
        let mut left = steps;
        while left > 0 {
            let Some((first, bytes)) = garbage.last_mut() else {
                break;
            };
            let (step, before) = (STEP.min(left), first.left());
            let is_left = first.free_some(step);
            // Lists are freed by whole nodes, and some count their entries until they are gone.
            let after = if is_left { first.left() } else { 0 };
            WAITING.store(waiting() + after - before, Ordering::Relaxed);
            let kept = if is_left {
                first.heap_bytes().clamp(1, *bytes)
            } else {
                0
            };
            BYTES.fetch_sub(*bytes - kept, Ordering::Relaxed);
            *bytes = kept;
            if !is_left {
                garbage.pop();
            }
            left -= step;
        }
    });
}

fn is_memory_short() -> bool {
    used_memory() >= 1.0
}

/// As a share of `maxmemory`.
fn used_memory() -> f32 {
    // SAFETY: takes no arguments.
    unsafe { api!(RedisModule_GetUsedMemoryRatio) }
}

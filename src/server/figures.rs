//! The figures over all queues, as of now. Those of queues in which a job became due, or that commands
//! have changed, since their figures were entered, are updated first.

use super::api::{Ctx, OwnString};
use super::key::OpenKey;
use super::{agenda, clock, renamed, replicate, timer};
use crate::queue::state::figures::Figures;
use std::cell::Cell;
use std::ffi::c_int;

/// How many queues one INFO updates: some 30 ms. If jobs became due in more queues since the last INFO, the timer
/// updates the others, and until then those jobs count as delayed.
const QUEUES_AT_ONCE: usize = 20_000;

/// Keys that one INFO searches for a queue that was just renamed, on servers that do not report
/// renames: a few ms. If there are more keys, the timer finds the queue, and until then it is not
/// counted.
const KEYS_AT_ONCE: usize = 20_000;

thread_local! {
    /// INFO has left queues to the timer.
    static UNFINISHED: Cell<bool> = const { Cell::new(false) };
}

/// How many queues there are, and their figures.
pub fn of_all_queues() -> (usize, Figures) {
    let left = timer::with_own_context(|ctx| {
        if !ctx.flags().is_loading() {
            renamed::search(ctx, KEYS_AT_ONCE);
        }
        enter_outdated(ctx, QUEUES_AT_ONCE)
    });
    if left == 0 {
        UNFINISHED.set(true);
        timer::check_in(1);
    }
    agenda::figures()
}

/// The timer's part: what INFO has left, and events for jobs that became due. Takes at most `steps`
/// steps, and returns how many are left.
pub fn catch_up(ctx: Ctx<'_>, steps: usize) -> usize {
    if !has_subscribers() {
        return steps;
    }
    let left = enter_outdated(ctx, steps);
    if left > 0 {
        UNFINISHED.set(false);
    }
    left
}

/// When the timer must call [`catch_up`].
pub fn next() -> Option<u64> {
    has_subscribers().then(agenda::next_outdated).flatten()
}

/// Whether jobs that become due raise events here. On a replica its master's effects raise them.
fn due_jobs_raise_events() -> bool {
    agenda::is_master() && replicate::subscribed_since().is_some()
}

fn has_subscribers() -> bool {
    UNFINISHED.get() || due_jobs_raise_events()
}

fn enter_outdated(ctx: Ctx<'_>, mut steps: usize) -> usize {
    let now_ms = clock::now().ms();
    while steps > 0 {
        let Some((db, name)) = agenda::outdated(now_ms) else {
            break;
        };
        enter(ctx, db, &name);
        steps -= 1;
    }
    steps
}

fn enter(ctx: Ctx<'_>, db: c_int, name: &[u8]) {
    let raw_name = OwnString::new(name);
    let is_there = ctx.select_db(db) && OpenKey::db_of_queue(ctx, raw_name.name()).is_some();
    if !is_there {
        agenda::remove(db, name);
    } else if replicate::subscribed_since().is_some() {
        agenda::check_soon(db, name);
    }
}

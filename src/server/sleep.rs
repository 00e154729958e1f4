//! Has small queues that nobody uses sleep as bytes ([`crate::queue::state::asleep`]), a second or two after they
//! were used last.
//!
//! Sweeps begin with the server's own cron, so that no timer fires for a few queues; where there are many, the
//! timer goes on with the sweep in small steps.

use super::agenda::{self, Ticket};
use super::api::{caught, log_bug, Ctx, OwnString};
use super::key::OpenKey;
use super::queue_value::Look;
use super::{clock, idle, timer};
use std::cell::Cell;

/// Between the beginnings of two sweeps.
const SWEEP_MS: u64 = 1000;
/// Queues looked at in a row: a few hundred microseconds where all of them sleep from then on.
const AT_ONCE: usize = 64;
/// As many jobs that go to sleep count as a queue of their own.
const JOBS_OF_STEP: usize = 8;
/// Between two such rows: others are not held up, and the server spends little on it however many there are.
const REST_MS: u64 = 2;

thread_local! {
    static BEGAN_MS: Cell<u64> = const { Cell::new(0) };
}

/// Once in a while, from the server's cron.
pub fn begin_sweep(ctx: Ctx<'_>) {
    let now_ms = clock::real().ms();
    if now_ms.abs_diff(BEGAN_MS.get()) < SWEEP_MS {
        return;
    }
    BEGAN_MS.set(now_ms);
    idle::begin_sweep();
    go_on(ctx);
    if let Some(instant) = next() {
        timer::arm(instant);
    }
}

/// When the timer is to go on with a sweep.
pub fn next() -> Option<u64> {
    idle::has_more().then(|| clock::real().ms() + REST_MS)
}

/// The next few of a sweep that is under way.
pub fn go_on(ctx: Ctx<'_>) {
    let mut steps = AT_ONCE;
    while steps > 0 {
        let Some(ticket) = idle::next() else {
            return;
        };
        let mut step = 1;
        match caught(|| look(ctx, ticket)) {
            Ok(Look::Again) => idle::enlist(ticket),
            Ok(Look::Asleep(jobs)) => step += jobs / JOBS_OF_STEP,
            Ok(Look::Done) => {}
            Err(panic) => log_bug("a queue on its way to sleep", &panic),
        }
        steps = steps.saturating_sub(step);
    }
}

/// One whose key has gone, or has another name by now, stands there no more, or under its new ticket.
fn look(ctx: Ctx<'_>, ticket: Ticket) -> Look {
    let Some((db, name)) = agenda::find(ticket) else {
        return Look::Done;
    };
    let raw_name = OwnString::new(&name);
    if !ctx.select_db(db) {
        return Look::Done;
    }
    let Ok(mut open) = OpenKey::peek(ctx, raw_name.name()) else {
        return Look::Done;
    };
    let value = open.value().filter(|value| value.ticket == ticket);
    value.map_or(Look::Done, |value| value.look())
}

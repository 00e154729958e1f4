//! Puts small idle queues to sleep: they are kept as bytes ([`crate::queue::state::asleep`]) a
//! second or two after their last use.
//!
//! Sweeps begin with the server's own cron, so that no timer fires for a few queues. If there are
//! many, the timer continues the sweep in small steps.

use super::agenda::{self, Ticket};
use super::api::{caught, log_bug, Ctx, OwnString};
use super::key::OpenKey;
use super::queue_value::Visited;
use super::{clock, idle, timer};
use std::cell::Cell;

/// The least time between the starts of two sweeps.
const SWEEP_MS: u64 = 1000;
/// Queues visited in a row: a few hundred microseconds if all of them fall asleep.
const AT_ONCE: usize = 64;
/// So many jobs that fall asleep count as a queue.
const JOBS_OF_STEP: usize = 8;
/// The pause between two rows of [`AT_ONCE`] queues. It keeps clients from waiting, and bounds what
/// the server spends on this for any number of queues.
const REST_MS: u64 = 2;

thread_local! {
    static BEGAN_MS: Cell<u64> = const { Cell::new(0) };
}

/// Called from the server's cron; begins a sweep if it is time to.
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

/// When the timer must continue a sweep.
pub fn next() -> Option<u64> {
    idle::has_more().then(|| clock::real().ms() + REST_MS)
}

/// Visits the next few queues of a sweep that is under way.
pub fn go_on(ctx: Ctx<'_>) {
    let mut steps = AT_ONCE;
    while steps > 0 {
        let Some(ticket) = idle::next() else {
            return;
        };
        let mut step = 1;
        match caught(|| visit(ctx, ticket)) {
            Ok(Visited::Again) => idle::enlist(ticket),
            Ok(Visited::Asleep(jobs)) => step += jobs / JOBS_OF_STEP,
            Ok(Visited::Done) => {}
            Err(panic) => log_bug("a queue on its way to sleep", &panic),
        }
        steps = steps.saturating_sub(step);
    }
}

/// Visits one queue. If its key is gone, its ticket is done; if it has another name now, it is
/// listed under a new ticket.
fn visit(ctx: Ctx<'_>, ticket: Ticket) -> Visited {
    let Some((db, name)) = agenda::find(ticket) else {
        return Visited::Done;
    };
    let raw_name = OwnString::new(&name);
    if !ctx.select_db(db) {
        return Visited::Done;
    }
    let Ok(mut open) = OpenKey::peek(ctx, raw_name.name()) else {
        return Visited::Done;
    };
    let value = open.value().filter(|value| value.ticket == ticket);
    value.map_or(Visited::Done, |value| value.sleep_if_idle())
}

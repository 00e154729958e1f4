//! What the timer does when it fires, in this order: processes overdue expirations, hands ready
//! jobs to waiting clients, and ends waits. So after a standstill no client gets an empty reply
//! although its job came in time. Works in bounded steps; the rest is done a millisecond later.

use super::agenda::{Due, Name};
use super::api::{caught, log_bug, shown, OwnString};
use super::blocked::First;
use super::key::OpenKey;
use super::order::Order;
use super::queue_value::Value;
use super::serve::{self, Served};
use super::timer::{Fired, Next};
use super::waits::{BlockedClient, Occasion, WaitEnd};
use super::{
    agenda, async_load, awaits, blocked, clock, config, figures, notify, purged, reclaim, renamed,
    replicate, sleep, test_clock, timer, trimmed, unowned_slots, waits,
};
use crate::queue::clock::Now;
use crate::queue::effects::Effects;
use crate::storage::broken::there;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::Arc;

/// So many keys that a client waits on cost one step.
const KEYS_OF_STEP: usize = 16;
/// Extra steps for a queue that was asleep: waking it takes some microseconds.
const STEPS_OF_WAKING: usize = 5;
/// While clients are paused nothing may be propagated.
const PAUSED_RETRY_MS: u64 = 10;
/// Within a second the server redirects all clients that wait for slots it gave away.
const REDIRECTED_RETRY_MS: u64 = 100;

/// A part of the timer's work, in the order of [`run`], and what it gets at least, whatever those before it have taken:
/// in eighths of the timer's steps.
#[derive(Clone, Copy)]
struct Share(usize);

impl Share {
    const RENAMED: Share = Share(2);
    const ASYNC_LOAD: Share = Share(2);
    /// What it leaves of them goes to the parts behind it.
    const DUE: Share = Share(8);
    const TELLING: Share = Share(1);
    const WAITS: Share = Share(2);
    const AFTER_WAITS: Share = Share(1);
    const PURGED: Share = Share(1);
    const TRIMMED: Share = Share(1);
    const RECLAIM: Share = Share(1);
    const AGENDA: Share = Share(1);

    /// So many steps, or those that are `left` if these are more.
    fn of(self, steps: usize, left: usize) -> usize {
        left.max(steps * self.0 / 8)
    }
}

const _: () = {
    let parts = [
        Share::RENAMED,
        Share::ASYNC_LOAD,
        Share::DUE,
        Share::TELLING,
        Share::WAITS,
        Share::AFTER_WAITS,
        Share::PURGED,
        Share::TRIMMED,
        Share::RECLAIM,
        Share::AGENDA,
    ];
    let (mut sum, mut at) = (0, 0);
    while at < parts.len() {
        sum += parts[at].0;
        at += 1;
    }
    assert!(
        sum <= 20,
        "a firing may take two and a half times its steps"
    );
};

/// Called at load, after loading data, and when the role has changed.
pub fn role_is(master: bool) {
    agenda::set_role(master);
    rearm();
}

/// The timer's work, in bounded steps. Returns when there is more to do.
pub fn run(fired: Fired<'_>) -> Next {
    let ctx = fired.ctx();
    test_clock::answer();
    let flags = ctx.flags();
    if flags.is_loading() {
        // The end of loading arms the timer again.
        return Next::Never;
    }
    let steps = config::timer_steps();
    renamed::search(ctx, Share::RENAMED.of(steps, 0));
    async_load::put_in_place(ctx, Share::ASYNC_LOAD.of(steps, 0));
    let is_paused = flags.is_master() && ctx.is_paused();
    let serves = flags.is_master() && !is_paused;
    let mut left = Share::DUE.of(steps, 0);
    if serves {
        left = do_what_is_due(fired, unowned_slots::ask(ctx, left));
        // Clients hear what has happened before the test clock advances.
        left = notify::tell(fired, left);
        while left > 0 && test_clock::step(ctx, next_instant, &mut left) {
            left = do_what_is_due(fired, left);
            left = notify::tell(fired, left);
        }
    } else if !is_paused {
        // A replica's queues wait for their master, whatever its own clock says.
        while left > 0 && test_clock::step(ctx, || None, &mut left) {}
    }
    left = notify::tell(fired, Share::TELLING.of(steps, left));
    let before = Share::WAITS.of(steps, left);
    left = end_waits(fired, before, serves);
    if serves && left < before {
        // A queue kept only for clients whose wait ended is removed before they see their reply.
        left = run_turns(fired, Share::AFTER_WAITS.of(steps, left));
    }
    // Freeing memory comes last, but always gets some steps.
    left = purged::free_purged(ctx, Share::PURGED.of(steps, left));
    left = trimmed::sweep(ctx, Share::TRIMMED.of(steps, left));
    reclaim::free_some(Share::RECLAIM.of(steps, left));
    agenda::free_some(Share::AGENDA.of(steps, left));
    sleep::go_on(ctx);
    if is_paused {
        return Next::InMs(PAUSED_RETRY_MS);
    }
    next()
}

/// Brings figures up to date, and processes the queues that are due.
fn do_what_is_due(fired: Fired<'_>, steps: usize) -> usize {
    let left = figures::catch_up(fired.ctx(), steps);
    run_turns(fired, left)
}

/// Processes all keys that are due. Each has a turn before any has a second one, so a key with much
/// to do does not delay the others.
fn run_turns(fired: Fired<'_>, mut steps: usize) -> usize {
    let share = (steps / 4).max(1);
    let mut order = Order::default();
    let mut unfinished = VecDeque::new();
    agenda::begin_turns();
    while steps > 0 {
        let now = clock::now();
        let due = order.next().or_else(|| agenda::take_due(now.ms()));
        let Some(due) = due.or_else(|| unfinished.pop_front()) else {
            break;
        };
        let turn = match caught(|| run_turn(fired, &due, now, share.min(steps), &order)) {
            Ok(turn) => turn,
            Err(panic) => {
                log_bug(
                    &format!("the timer's work on '{}'", shown(&due.name)),
                    &panic,
                );
                // Not at once, when it would panic again; but it is tried again.
                agenda::set(due.db, &due.name, now.ms() + timer::AFTER_PANIC_MS);
                Turn {
                    steps: share,
                    ..Turn::default()
                }
            }
        };
        steps -= turn.steps.clamp(1, steps);
        if !turn.before.is_empty() {
            order.defer(due, turn.before);
        } else if turn.is_unfinished {
            agenda::set(due.db, &due.name, after_turn(now));
            unfinished.push_back(due);
        }
    }
    steps
}

/// Arms the timer for what comes next.
pub fn rearm() {
    timer::set(next());
}

/// The next instant at which there is anything to do.
fn next() -> Next {
    if test_clock::has_work() {
        return Next::InMs(0);
    }
    let frees = !reclaim::is_empty() || agenda::has_discarded();
    let searches = renamed::has_work() || async_load::has_misplaced();
    if frees || searches || !trimmed::is_empty() {
        return Next::InMs(1);
    }
    let of_master = agenda::is_master().then(|| (next_to_wake_for(), unowned_slots::next_ask()));
    let (deadline, ask) = of_master.unwrap_or_default();
    let waits = waits::next_until().into_iter().chain(awaits::next_turn());
    let instants = [deadline, ask, waits.min(), sleep::next()];
    match instants.into_iter().flatten().min() {
        Some(instant) if instant <= clock::real().ms() => Next::InMs(1),
        Some(instant) => Next::At(instant),
        None => Next::Never,
    }
}

/// The next instant at which something is due in a queue.
fn next_instant() -> Option<u64> {
    [agenda::next(), figures::next()]
        .into_iter()
        .flatten()
        .min()
}

/// The instant that the timer must be set to for queues. A test clock does not advance by itself,
/// so only what is due already counts.
fn next_to_wake_for() -> Option<u64> {
    let next = next_instant()?;
    if !clock::is_for_tests() {
        return Some(next);
    }
    (next <= clock::now().ms()).then_some(0)
}

/// Ends waits that have expired, except of clients that may still be served: one of their keys is
/// still to have its turn.
fn end_waits(fired: Fired<'_>, mut steps: usize, serves: bool) -> usize {
    let ctx = fired.ctx();
    let mut redirects = unowned_slots::Redirects::new(ctx);
    while steps > 0 {
        let now_ms = clock::real().ms();
        let Some((ticket, db, key)) = waits::first_expired(now_ms) else {
            break;
        };
        if redirects.has(db, &key) {
            waits::postpone(ticket, now_ms + REDIRECTED_RETRY_MS);
        } else if serves
            && (blocked::waits_on(ticket, is_to_come) || awaits::waits_on(ticket, is_to_come))
        {
            waits::postpone(ticket, now_ms + 1);
        } else if serves && blocked::fill_is_over(ticket) {
            waits::postpone(ticket, now_ms);
        } else {
            notify::end(fired, ticket, db, &key);
        }
        steps -= 1;
    }
    steps
}

fn is_to_come(db: c_int, key: &[u8]) -> bool {
    agenda::needs_attention(db, key, after_turn(clock::now()))
}

/// When a key is due again whose turn was not finished: after the others that are due now. A test
/// clock does not reach the next millisecond by itself.
fn after_turn(now: Now) -> u64 {
    now.ms() + u64::from(!clock::is_for_tests())
}

/// What processing one key took.
#[derive(Default)]
struct Turn {
    steps: usize,
    is_unfinished: bool,
    /// The turns of these keys come first; then this key continues.
    before: Vec<Name>,
}

/// Processes one key, with at most `share` steps for overdue expirations and as many for waiting clients.
fn run_turn(fired: Fired<'_>, due: &Due, now: Now, share: usize, order: &Order) -> Turn {
    let ctx = fired.ctx();
    let (db, name) = (due.db, &*due.name);
    let nothing_there = || {
        agenda::remove(db, name);
        Turn::default()
    };
    if !ctx.select_db(db) {
        return nothing_there();
    }
    let raw_name = OwnString::new(name);
    if ctx.flags().is_cluster() && !ctx.serves(&[raw_name.name()]) {
        // Clients may wait on a name without a key: then nothing is parked.
        if OpenKey::db_of_queue(ctx, raw_name.name()).is_none() {
            return nothing_there();
        }
        unowned_slots::park(db, name);
        return Turn::default();
    }
    let Ok(mut open) = OpenKey::open(ctx, raw_name.name()) else {
        return nothing_there();
    };
    let Some(value) = open.value() else {
        return nothing_there();
    };
    let waking = if value.is_asleep() {
        STEPS_OF_WAKING
    } else {
        0
    };
    let mut served = Served {
        occasion: Occasion::of_timer(fired),
        clients: Vec::new(),
    };
    replicate::with_effects(|effects| {
        open.change(now, effects, |value, effects| {
            let value = there(value, "a queue that was there");
            value.armed_for = u64::MAX;
            value.announce(now, effects);
            let queue = value.queue();
            let left = queue.expire_overdue(now, share, effects);
            let followed = share - queue.follow_up(left, now, effects);
            let mut left = share;
            let may = |ticket| blocked::is_allowed(ctx, ticket, raw_name.name());
            let serving = Serving {
                due,
                order,
                may: &may,
                now,
            };
            let before = serve(value, serving, &mut left, effects, &mut served.clients);
            Turn {
                steps: waking + followed + share - left,
                is_unfinished: followed == share
                    || left == 0
                    || value.queue().parts().has_flow_work(),
                before,
            }
        })
    })
}

/// The key whose turn it is, and whom it serves.
struct Serving<'a> {
    due: &'a Due,
    order: &'a Order,
    /// Whether a client, by its ticket, may still pop from this key.
    may: &'a dyn Fn(u64) -> bool,
    now: Now,
}

/// Takes jobs for the clients that wait, while there are both. Stops where a client named other keys
/// first that are due, too; returns those keys.
fn serve(
    value: &mut Value,
    serving: Serving<'_>,
    steps: &mut usize,
    effects: &mut Effects,
    served: &mut Vec<(BlockedClient, WaitEnd)>,
) -> Vec<Name> {
    let Serving { due, now, .. } = serving;
    let (db, name) = (due.db, &*due.name);
    while *steps > 0 {
        let only_noack = value.queue().serving().serves_only_noack(now);
        let queue = value.queue();
        let first = blocked::first_in_line((db, name), only_noack, queue, now);
        let Some(First {
            ticket, request, ..
        }) = first
        else {
            break;
        };
        let delivery = value.queue().serving().next_delivery(now, request.noack);
        let Some(since) = delivery.filter(|&instant| instant <= now.ms()) else {
            break;
        };
        let (before, named) = serving.order.before(due, ticket, since);
        if !before.is_empty() {
            return before;
        }
        let end = if (serving.may)(ticket) {
            let jobs = serve::pop(value, request, now, steps, effects);
            if jobs.is_empty() {
                break;
            }
            serve::jobs_of(Arc::clone(&due.name), request, jobs)
        } else {
            *steps = steps.saturating_sub(1);
            WaitEnd::Denied(name.to_vec())
        };
        *steps = steps.saturating_sub(named / KEYS_OF_STEP);
        served.extend(blocked::take(ticket, Some(name)).map(|client| (client, end)));
    }
    Vec::new()
}

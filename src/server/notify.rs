//! What the timer does for clients that wait for ends: it checks names that may hold something else
//! now, and answers clients that no command could answer.

use super::api::OwnString;
use super::awaits::{self, Found};
use super::clock;
use super::key::OpenKey;
use super::timer::Fired;
use super::unowned_slots::Redirects;
use super::waits::{self, Occasion, WaitEnd};
use std::ffi::c_int;

/// Within a second the server redirects all clients that wait for slots it gave away.
const RETRY_MS: u64 = 100;

/// Checks names and answers clients, in at most `steps` steps; returns how many are left.
pub fn tell(fired: Fired<'_>, steps: usize) -> usize {
    if awaits::next_turn().is_none_or(|at| at > clock::real().ms()) {
        return steps;
    }
    let mut redirects = Redirects::new(fired.ctx());
    let left = check_doubtful(fired, steps, &mut redirects);
    let left = tell_ready(fired, left, &mut redirects);
    let at = if left > 0 {
        clock::real().ms() + RETRY_MS
    } else {
        0
    };
    awaits::retry_at(at);
    left
}

/// Checks doubtful names. Keys of a slot that is being moved may be at the other node already:
/// these are left for later.
fn check_doubtful(fired: Fired<'_>, mut steps: usize, redirects: &mut Redirects<'_>) -> usize {
    let ctx = fired.ctx();
    let mut after = None;
    while steps > 0 {
        let Some(name) = awaits::next_doubtful(after.as_ref()) else {
            break;
        };
        steps -= 1;
        let (db, key) = (name.0, OwnString::new(&name.1));
        if !redirects.may_be_elsewhere(db, &name.1) {
            let now = clock::now();
            let check = |found: &Found<'_>| awaits::check(&name, found, steps, now);
            steps = match ctx.select_db(db).then(|| OpenKey::peek(ctx, key.name())) {
                Some(Ok(mut open)) => match open.queue() {
                    Some(queue) => check(&Found::Queue(queue)),
                    None => check(&Found::Nothing),
                },
                Some(Err(_)) => check(&Found::Other),
                None => check(&Found::Nothing),
            };
        }
        after = Some(name);
    }
    steps
}

fn tell_ready(fired: Fired<'_>, mut steps: usize, redirects: &mut Redirects<'_>) -> usize {
    let mut from = 0;
    while steps > 0 {
        let Some((ticket, db, key)) = awaits::next_ready(from) else {
            break;
        };
        steps -= 1;
        if !redirects.has(db, &key) {
            end(fired, ticket, db, &key);
        }
        from = ticket + 1;
    }
    steps
}

/// Ends a wait: with what was noted for the client, or without a result.
pub fn end(fired: Fired<'_>, ticket: u64, db: c_int, key: &[u8]) {
    let (ctx, occasion) = (fired.ctx(), Occasion::of_timer(fired));
    let name = OwnString::new(key);
    let mut open = match ctx.select_db(db) {
        true => OpenKey::peek(ctx, name.name()).ok(),
        false => None,
    };
    let queue = open.as_mut().and_then(|open| open.queue());
    if !awaits::answer(
        ctx,
        ticket,
        name.name(),
        queue.map(|queue| &*queue),
        occasion,
    ) {
        if let Some(client) = waits::take(ticket, None) {
            client.answer(occasion, WaitEnd::Nothing);
        }
    }
}

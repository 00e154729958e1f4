//! Keys in slots of the cluster that this node does not serve: on their way to us, or left behind. They
//! are parked in `deadlines`, and one key per slot is asked for all of them, so that what it costs does
//! not grow with the queues.

use super::api::{Ctx, OwnString};
use super::{agenda, clock};
use crate::slots::slot_of;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;

/// Between two sweeps of asking; so long may queues wait whose slot has become ours.
const PAUSE_MS: u64 = 100;
/// Slots asked about at a time: about as many microseconds. As a rule there is one, the one that moves.
const SLOTS_AT_ONCE: usize = 100;

#[derive(Clone, Copy)]
struct Asking {
    /// The instant at which to go on, or u64::MAX where nothing is parked.
    at: u64,
    /// The slot to go on from.
    from: u16,
    /// A slot has become ours, so others may have, too: their turn comes without a pause, until a
    /// sweep has found none.
    hurries: bool,
    /// Whether this sweep has found one.
    found: bool,
}

thread_local! {
    static ASKING: Cell<Asking> = const {
        Cell::new(Asking { at: u64::MAX, from: 0, hurries: false, found: false })
    };
}

/// The key's slot is not ours: it comes back when it is.
pub fn park(db: c_int, name: &[u8]) {
    agenda::park(db, name, slot_of(name));
    let mut asking = ASKING.get();
    if asking.at == u64::MAX {
        asking.at = clock::real().ms() + PAUSE_MS;
        ASKING.set(asking);
    }
}

/// When to ask again.
pub fn next_ask() -> Option<u64> {
    Some(ASKING.get().at).filter(|&at| at < u64::MAX)
}

/// Slots have become ours: asks about all, now.
pub fn slots_have_come() {
    let mut asking = ASKING.get();
    if asking.at < u64::MAX {
        asking = Asking {
            at: 0,
            from: 0,
            hurries: true,
            found: false,
        };
        ASKING.set(asking);
        agenda::arm(0);
    }
}

/// Asks, if it is time, and gives the keys of slots that are ours now to the timer. Takes at most so
/// many steps, and returns how many are left.
pub fn ask(ctx: Ctx<'_>, mut steps: usize) -> usize {
    let mut asking = ASKING.get();
    let now_ms = clock::real().ms();
    if now_ms < asking.at || steps == 0 {
        return steps;
    }
    for _ in 0..SLOTS_AT_ONCE {
        let Some((slot, db, name)) = agenda::parked_from(asking.from) else {
            end_sweep(&mut asking);
            break;
        };
        if steps == 0 {
            break;
        }
        steps -= 1;
        if is_ours(ctx, db, &name) {
            asking.hurries = true;
            asking.found = true;
            let came = agenda::unpark(slot, steps);
            steps -= came;
            if steps == 0 {
                // The slot may have more.
                asking.from = slot;
                break;
            }
        }
        asking.from = slot + 1;
    }
    if asking.at < u64::MAX {
        asking.at = now_ms + if asking.hurries { 1 } else { PAUSE_MS };
    }
    ASKING.set(asking);
    steps
}

fn end_sweep(asking: &mut Asking) {
    asking.hurries &= asking.found;
    asking.found = false;
    asking.from = 0;
    if agenda::parked_from(0).is_none() {
        asking.at = u64::MAX;
        asking.hurries = false;
    }
}

fn is_ours(ctx: Ctx<'_>, db: c_int, name: &[u8]) -> bool {
    ctx.select_db(db) && ctx.serves(&[OwnString::new(name).name()])
}

/// Those who wait on keys of slots that went to another node: the server answers them with a
/// redirection, by its cron. That may come just behind the timer, in the same turn of the event loop,
/// in which a client whose wait the timer has ended still counts as blocked: it would be answered a
/// second time, and take all replies that follow for those of the commands before. So such waits are
/// not for the timer to end. Only in a slot that is being imported nobody else ends them.
pub struct Redirects<'a> {
    ctx: Ctx<'a>,
    is_cluster: bool,
    /// What is known of slots, for as long as nothing else happens.
    slots: BTreeMap<u16, bool>,
}

impl<'a> Redirects<'a> {
    pub fn new(ctx: Ctx<'a>) -> Self {
        Redirects {
            ctx,
            is_cluster: ctx.flags().is_cluster(),
            slots: BTreeMap::new(),
        }
    }

    pub fn has(&mut self, db: c_int, key: &[u8]) -> bool {
        if !self.is_cluster {
            return false;
        }
        let ctx = self.ctx;
        let slot = slot_of(key);
        let is_redirected = || {
            if !ctx.flags().is_master() {
                return !ctx.masters_serve(slot);
            }
            !is_ours(ctx, db, key) && !ctx.imports_slot(slot)
        };
        *self.slots.entry(slot).or_insert_with(is_redirected)
    }

    /// Whether there is no key because its slot is on its way, or has gone. A replica does not know of the first.
    pub fn may_be_elsewhere(&mut self, db: c_int, key: &[u8]) -> bool {
        if self.is_cluster && self.ctx.flags().is_master() {
            return !is_ours(self.ctx, db, key);
        }
        self.has(db, key)
    }
}

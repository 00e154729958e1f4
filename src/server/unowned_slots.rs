//! Keys in slots of the cluster that this node does not serve: they are arriving, or were left
//! behind. They are parked on the agenda, and one key per slot is asked about for all of them. So
//! the cost does not grow with the number of queues.

use super::api::{Ctx, OwnString};
use super::{agenda, clock};
use crate::slots::slot_of;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;

/// The pause between two sweeps. Queues whose slot became ours may wait that long.
const PAUSE_MS: u64 = 100;
/// How many slots are asked about at a time; each takes about a microsecond. Usually there is one
/// slot, the one that moves.
const SLOTS_AT_ONCE: usize = 100;

#[derive(Clone, Copy)]
struct Asking {
    /// The instant at which to continue, or u64::MAX if nothing is parked.
    at: u64,
    /// The slot to continue from.
    from: u16,
    /// A slot has become ours, so others may have, too: the sweeps go on without a pause until one
    /// has found none.
    hurries: bool,
    /// Whether this sweep has found a slot that became ours.
    found: bool,
}

thread_local! {
    static ASKING: Cell<Asking> = const {
        Cell::new(Asking { at: u64::MAX, from: 0, hurries: false, found: false })
    };
}

/// Parks a key whose slot is not ours; it returns when the slot is.
pub fn park(db: c_int, name: &[u8]) {
    agenda::park(db, name, slot_of(name));
    let mut asking = ASKING.get();
    if asking.at == u64::MAX {
        asking.at = clock::real().ms() + PAUSE_MS;
        ASKING.set(asking);
    }
}

/// When to ask about slots again.
pub fn next_ask() -> Option<u64> {
    Some(ASKING.get().at).filter(|&at| at < u64::MAX)
}

/// Slots have become ours: asks about all slots, now.
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

/// Asks about slots if it is time to, and makes the keys of slots that are ours now due. Takes at
/// most `steps` steps, and returns how many are left.
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
                // The slot may have more keys.
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

/// Finds waits that the server's cron ends with a redirection, because their slot went to another
/// node. The timer must not end them. The cron may run just after the timer, in the same turn of
/// the event loop. Then a client whose wait the timer ended still counts as blocked. It would be
/// answered twice, and take each later reply for that of the command before. Only in a slot that is
/// being imported does nothing else end waits.
pub struct Redirects<'a> {
    ctx: Ctx<'a>,
    is_cluster: bool,
    /// Answers by slot, valid for as long as nothing else happens.
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

    /// Whether the key may be missing because its slot is moving, or has moved, to another node. A
    /// replica knows only of the latter.
    pub fn may_be_elsewhere(&mut self, db: c_int, key: &[u8]) -> bool {
        if self.is_cluster && self.ctx.flags().is_master() {
            return !is_ours(self.ctx, db, key);
        }
        self.has(db, key)
    }
}
